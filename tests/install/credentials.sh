# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# Secrets as credentials of systemd, which only root can read where they lie: certificates for all three,
# made as fabrictrace-security(7) tells, and the SNMP secrets of the poller, which asks a real snmpd.
# Then others take their place. For in_machine.sh, which has started the units.

store=/root/secret
ask_port=1161

drop_in() # UNIT PROGRAM CREDENTIAL...
{
    local folder=/etc/systemd/system/$1.service.d program=$2 name
    shift 2
    mkdir -p "$folder" || return
    {
        echo '[Service]'
        echo "LoadCredential=tls.ca:$store/tls.ca"
        echo "LoadCredential=tls.cert:$store/$program.cert"
        echo "LoadCredential=tls.key:$store/$program.key"
        for name in "$@"; do
            echo "LoadCredential=$name:$store/$name"
        done
    } >"$folder/credentials.conf"
}

# A certificate authority and a certificate for each program, by the commands of the manual.
certificates()
{
    local old=$PWD name also common
    common=(openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes)
    mkdir -p "$store" && chmod 0700 "$store" && cd "$store" || return
    rm -f ./*.ca ./*.cert ./*.key
    "${common[@]}" -days 3650 -subj /CN=fabrictrace -keyout authority.key -out tls.ca || return
    for name in fabrictraced agent switchpoll; do
        also=URI:fabrictrace://$name/$(uname -n)
        [ "$name" != fabrictraced ] || also=IP:127.0.0.1
        "${common[@]}" -days 365 -CA tls.ca -CAkey authority.key -subj "/CN=$name" \
            -addext "subjectAltName=$also" -keyout "$name.key" -out "$name.cert" || return
    done
    chmod 0600 ./*.key && cd "$old" || return
}

# An agent of a switch that knows one user by these secrets.
snmp_agent() # AUTH PRIV
{
    systemctl stop snmpd-asked 2>/dev/null
    rm -rf /run/snmpd-asked && mkdir /run/snmpd-asked || return
    {
        echo "agentaddress udp:127.0.0.1:$ask_port"
        echo "createUser fabrictrace SHA-256 $1 AES $2"
        echo "rouser fabrictrace priv"
    } >/run/snmpd-asked/conf
    systemd-run -q --unit=snmpd-asked --setenv=SNMP_PERSISTENT_DIR=/run/snmpd-asked \
        snmpd -f -Lo -C -c /run/snmpd-asked/conf -I -smux || return
    printf %s "$1" >"$store/snmp.auth" && printf %s "$2" >"$store/snmp.priv" && chmod 0600 "$store"/snmp.*
}

# What the configurations say where files would stand otherwise.
name_credentials()
{
    local tls='  cert: credential:tls.cert
  key: credential:tls.key
  ca: credential:tls.ca'
    printf 'tls:\n%s\n' "$tls" >>/etc/fabrictrace/fabrictraced.yaml
    printf '%s\n' "$tls" >>/etc/fabrictrace/fabrictrace-agent.yaml
    printf 'daemon:\n  endpoint: 127.0.0.1:9477\n%s\nsnmp:\n  switches: %s\n  interval: 1s\n' "$tls" \
        /etc/fabrictrace/switches.yaml >/etc/fabrictrace/fabrictrace-switchpoll.yaml
    cat >/etc/fabrictrace/switches.yaml <<YAML
credentials:
  fabric:
    version: 3
    user: fabrictrace
    auth: SHA-256
    auth_secret_file: credential:snmp.auth
    priv: AES
    priv_secret_file: credential:snmp.priv
switches:
  - {address: 127.0.0.1, port: $ask_port}
YAML
    drop_in fabrictraced fabrictraced && drop_in fabrictrace-agent agent &&
        drop_in fabrictrace-switchpoll switchpoll snmp.auth snmp.priv && systemctl daemon-reload
}

# A series of the poller's page.
polled() # SERIES PATTERN
{
    local http rc
    exec {http}<>/dev/tcp/127.0.0.1/9480 || return
    printf 'GET /metrics HTTP/1.0\r\nHost: 127.0.0.1:9480\r\n\r\n' >&"$http"
    grep -q "^fabrictrace_switchpoll_$1 $2" <&"$http"
    rc=$?
    exec {http}>&-
    return $rc
}
reached() { polled snmp_switches_reachable '1$' 2>/dev/null; }
not_reached() { polled snmp_switches_reachable '0$' 2>/dev/null; }

serial_shown()
{
    openssl s_client -connect 127.0.0.1:9477 </dev/null 2>/dev/null | openssl x509 -noout -serial
}
serial_of() { openssl x509 -noout -serial -in "$1"; }

# shellcheck disable=SC2154 # in_machine.sh has them
restart_all() { systemctl restart fabrictrace.target && await active "${units[@]}"; }

take_credentials()
{
    certificates && snmp_agent first-secret-for-authentication first-secret-for-privacy &&
        name_credentials && restart_all && await reached && await flows_resolved && await host_listed &&
        [ "$(serial_shown)" = "$(serial_of "$store/fabrictraced.cert")" ]
}

handed_to() { echo "/run/credentials/$1.service"; }

# Where they lie root alone reads them, and what a unit was handed its user; nothing shows them. The
# patterns do not match themselves on a command line.
secrets_stay()
{
    local own
    own=$(handed_to fabrictrace-switchpoll)
    setpriv --reuid=fabrictrace --regid=fabrictrace --clear-groups grep -q secret-for "$own/snmp.auth" &&
        ! setpriv --reuid=fabrictrace --regid=fabrictrace --clear-groups cat "$store/snmp.auth" &&
        ! setpriv --reuid=nobody --regid=nogroup --clear-groups cat "$own/snmp.auth" &&
        ! journalctl -q -o export | grep -aE 'secret[-]for-(authentication|privacy)' &&
        ! cat /proc/[0-9]*/cmdline /proc/[0-9]*/environ 2>/dev/null | grep -aqE 'secret[-]for' &&
        CREDENTIALS_DIRECTORY=$own fabrictrace-switchpoll --print-config >/tmp/printed &&
        grep -q switches.yaml /tmp/printed && ! grep 'secret[-]for' /tmp/printed &&
        ! grep -rl 'secret[-]for' /var/lib/fabrictrace
}

# Where a reload hands no credentials over, the old ones stay in use until a restart.
rotate()
{
    local before old
    before=$(pid_of fabrictraced) old=$(serial_shown)
    certificates && snmp_agent second-secret-for-authentication second-secret-for-privacy &&
        await not_reached || return
    mark
    systemctl reload "${units[@]}" && await logged fabrictraced 'reloaded' &&
        [ "$(pid_of fabrictraced)" = "$before" ] && [ "$(serial_shown)" = "$old" ] &&
        grep first-secret "$(handed_to fabrictrace-switchpoll)/snmp.auth" || return
    restart_all && await reached && await flows_resolved && await host_listed &&
        [ "$(serial_shown)" = "$(serial_of "$store/fabrictraced.cert")" ] && [ "$(serial_shown)" != "$old" ]
}

judge "certificates and SNMP secrets come as credentials" take_credentials
judge "credentials are shown nowhere, and their files are not readable" secrets_stay
judge "others take their place at a restart" rotate
