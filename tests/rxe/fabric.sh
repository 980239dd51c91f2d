# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# shellcheck disable=SC2016,SC2154 # conditions are looked at later; names are of what is sourced
#
# Runs in the guest: a whole leaf-spine with 16 hosts, 256 ends of queue pairs, and then a link of a
# spine that loses packets. The judge on the host compares what the daemon published with the wire.
. ./common.sh
. ./guestfabric.sh
seconds=14
rc=0
say "kernel $(uname -r)"
load_programs || exit 1
raise_fabric || exit 1
say "fabric"
start_exporters || exit 1
start_programs || exit 1
say "programs"
start_captures || exit 1
mapfile -t hosts <"$plan/hosts"
shape 600kbit "${hosts[@]}" || exit 1
limit_tests tests 80 || exit 1
start_servers || exit 1
say "servers"
start_clients
until_ '[ "$(in_use)" -ge "$(cat $plan/ends)" ]' 60 || rc=1
say "$(<"$plan/ends") ends of queue pairs"
limit_tests tests 40 || rc=1
now_ms >"$out/start"
rdma -j resource show qp -d >"$out/qp.json"
rdma -j statistic show >"$out/statistic-0.json"
pause $seconds
now_ms >"$out/stop"
say "flows"
rdma -j statistic show >"$out/statistic-1.json"
read -r switch port <"$plan/lossy"
mapfile -t senders <"$plan/senders"
shape 1500kbit "${senders[@]}" && limit_tests tests 15 && prefer 30 "${senders[@]}" || rc=1
now_ms >"$out/lossy"
within "$switch" tc qdisc add dev "$port" root netem loss 10% || rc=1
pause $seconds
now_ms >"$out/healed"
within "$switch" tc -s qdisc show dev "$port" >"$out/netem"
within "$switch" tc qdisc del dev "$port" root
rdma -j statistic show >"$out/statistic-2.json"
say "loss"
# Until the last reports of counters are in.
pause 6
end_all || rc=1
cp /tmp/*.pcap /tmp/records.ndjson "$out"/
free -m | sed -n 2p
say "done, $rc"
exit $rc
