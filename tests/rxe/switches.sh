# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# shellcheck disable=SC1091,SC2016,SC2034,SC2154,SC2317 # conditions are looked at later; names are of what is sourced
#
# Runs in the guest: a leaf-spine of Open vSwitch with SNMP and LLDP, and no topology file: the daemon
# finds it while queue pairs send over it.
. ./common.sh
. ./guestfabric.sh
. ./guestswitches.sh
# Open vSwitch hands each packet up, and leaves no time to answer polls where that is more than it can.
rate=$((512 * 100 / slow))kbit
rc=0

topology() { /tmp/fabrictrace topology --json >"$out/topology.json" 2>"$out/topology.log"; }

# Both ends of all links, and all addresses of hosts.
found()
{
    local text address ends
    awaited="an answer: $(tail -n 1 "$out/topology.log" 2>/dev/null)"
    topology || return 1
    text=$(<"$out/topology.json")
    while read -r address; do
        awaited=$address
        [[ $text == *"\"$address\""* ]] || return 1
    done <"$plan/addresses"
    ends=$(grep -o '"peer_port"' <<<"$text" | wc -l)
    awaited="$(<"$plan/link-ends") ends of links, there are $ends"
    [ "$ends" -ge "$(<"$plan/link-ends")" ]
}

# The doctor has nothing to say of a switch. A poll that was not answered in time may be the last.
content()
{
    local answered
    /tmp/fabrictrace doctor --json >"$out/doctor.json" 2>"$out/doctor.log"
    answered=$?
    awaited=$(cat "$out/doctor.log" && grep '"switch"' "$out/doctor.json")
    [ "$answered" -le 1 ] && ! says '"switch"' "$out/doctor.json"
}

say "kernel $(uname -r)"
longer_windows || exit 1
load_programs || exit 1
raise_links && ip -batch "$plan/macs.batch" && raise_hosts || exit 1
raise_switches || exit 1
say "$(ovs-vswitchd --version 2>/dev/null | head -n 1)"
start_management || exit 1
say "snmpd, lldpd"
start_programs || exit 1
say "programs"
start_captures || exit 1
start_servers || exit 1
start_clients || exit 1
say "$(<"$plan/ends") ends of queue pairs"
rdma -j resource show qp -d >"$out/qp.json"
until_ found 90 || rc=1
say "topology"
now_ms >"$out/start"
pause $((7 * window / 2))
until_ placed 60 # the judge tells what lacks
now_ms >"$out/stop"
topology || rc=1
# Where the machine is slow, flows leave polls no time to be answered in.
mapfile -t hosts <"$plan/hosts"
limit_tests tests 10 && shape 64kbit "${hosts[@]}" || rc=1
until_ content 60 || rc=1
say "flows"
end_all || rc=1
say "all ended"
dmesg >"$out/dmesg"
cp /tmp/*.pcap /tmp/records.ndjson "$out"/
while read -r switch; do
    cp "/run/$switch/vs.log" "$out/vswitchd-$switch.log"
done <"$plan/switches"
free -m | sed -n 2p
say "done, $rc"
exit $rc
