# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# shellcheck disable=SC2016,SC2154 # conditions are looked at later; names are of what is sourced
#
# Raises in the guest the switches that guestswitches.py planned. Sourced after guestfabric.sh.
schema=/usr/share/openvswitch/vswitch.ovsschema
collector=172.31.0.1:6343

# Each is a namespace with a database and a daemon of its own.
raise_switches()
{
    local switch
    modprobe openvswitch || return 1
    # Before, Open vSwitch 3.1 believes that there is no processor, and forwards nothing.
    until_ '[ "$(uptime_s)" -gt 10 ]' || return 1
    while read -r switch; do
        raise_switch "$switch" || { say "$switch does not start" && return 1; }
    done <"$plan/switches"
}

uptime_s()
{
    local up
    read -r up _ </proc/uptime
    echo "${up%.*}"
}

raise_switch() # SWITCH
{
    local folder=/run/$1 port number
    local -a ports=()
    # It routes, and LLDP says so.
    mkdir "$folder" && within "$1" sh -e "$plan/switch.sysctl" && ip -n "$1" -batch "$plan/$1.batch" || return 1
    export OVS_RUNDIR=$folder OVS_LOGDIR=$folder OVS_DBDIR=$folder OVS_SYSCONFDIR=$folder
    while read -r port number; do
        ports+=(-- add-port br0 "$port" -- set interface "$port" "ofport_request=$number")
    done <"$plan/$1.ports"
    ovsdb-tool create "$folder/conf.db" $schema &&
        ovsdb-server "--remote=punix:$folder/db.sock" "--unixctl=$folder/db.ctl" "--pidfile=$folder/db.pid" \
            "--log-file=$folder/db.log" --detach --no-chdir "$folder/conf.db" 2>"$out/ovs-$1.log" &&
        vsctl "$1" --no-wait init &&
        vsctl "$1" --no-wait set open_vswitch . other_config:n-handler-threads=1 \
            other_config:n-revalidator-threads=1 &&
        within "$1" ovs-vswitchd "unix:$folder/db.sock" "--unixctl=$folder/vs.ctl" "--pidfile=$folder/vs.pid" \
            "--log-file=$folder/vs.log" --detach --no-chdir 2>>"$out/ovs-$1.log" &&
        vsctl "$1" add-br br0 -- set bridge br0 fail_mode=secure protocols=OpenFlow15 "${ports[@]}" &&
        ovs-ofctl -O OpenFlow15 add-groups "unix:$folder/br0.mgmt" "$plan/$1.groups" &&
        ovs-ofctl -O OpenFlow15 add-flows "unix:$folder/br0.mgmt" "$plan/$1.flows" &&
        vsctl "$1" -- --id=@sflow create sflow agent=mgmt0 "target=\"$collector\"" header=128 \
            "sampling=$(<"$plan/sampling")" polling=5 -- set bridge br0 sflow=@sflow >/dev/null
}

vsctl() { ovs-vsctl "--db=unix:/run/$1/db.sock" "${@:2}"; } # SWITCH WORD...

# snmpd with LLDP-MIB from lldpd. Each switch has a host name and a /run/lldpd of its own.
start_management()
{
    local switch
    while read -r switch; do
        cp "$plan/$switch"/{snmpd,lldpd}.conf "/run/$switch/"
        in_switch "$switch" snmpd -f -C -c "/run/$switch/snmpd.conf" -Le >"$out/snmpd-$switch.log" 2>&1 &
    done <"$plan/switches"
    while read -r switch; do
        until_ "[ -e /run/$switch/agentx ]" 30 || return 1
        in_switch "$switch" lldpd -d -x -X "/run/$switch/agentx" -u "/run/$switch/lldpd.sock" -I 'Ethernet*' \
            -C Ethernet1 -m "$(<"$plan/$switch.address")" -S 'guest switch' -O "/run/$switch/lldpd.conf" \
            >"$out/lldpd-$switch.log" 2>&1 &
    done <"$plan/switches"
}

in_switch() # SWITCH WORD...
{
    # shellcheck disable=SC2016 # for the inner shell
    MIBS='' SNMP_PERSISTENT_DIR=/run/$1/persist SNMPCONFPATH=/run/$1 within "$1" unshare --uts --mount bash -c '
        echo "$0" >/proc/sys/kernel/hostname
        mkdir "/run/$0/lldpd-$BASHPID" /run/lldpd -p && mount --bind "/run/$0/lldpd-$BASHPID" /run/lldpd
        exec "$@"' "$@"
}
