# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# shellcheck disable=SC1091,SC2016,SC2154 # conditions are looked at later; names are of what is sourced
#
# Runs in the guest for ./demo --rdma: a small leaf-spine, queue pairs over it, and what the tool says.
. ./common.sh
. ./guestfabric.sh

# What a person would ask.
ask()
{
    local flow
    flow=$(sed -nE 's/.*"flow":\{"src":"(10[0-9.]+)","dst":"([0-9.]+)","sport":([0-9]+),.*"role":"data".*/\1:\3-\2/p' \
        /tmp/records.ndjson | head -n 1)
    echo "$flow" >"$out/flow"
    /tmp/fabrictrace imbalance >"$out/imbalance.txt" && /tmp/fabrictrace explain "$flow" >"$out/explain.txt"
}

rc=0
load_programs || exit 1
raise_fabric || exit 1
say "$(wc -l <"$plan/switches") switches and $(wc -l <"$plan/hosts") hosts with Soft-RoCE, kernel $(uname -r)"
start_exporters || exit 1
start_programs || exit 1
say "an sFlow exporter in each switch, an agent for each host, switchpoll and the daemon"
start_captures || exit 1
start_servers || exit 1
start_clients || exit 1
now_ms >"$out/start"
rdma -j resource show qp -d >"$out/qp.json"
say "$(wc -l <"$plan/pairs") ib_write_bw, $(<"$plan/ends") ends of queue pairs: $(<"$plan/seconds") s of traffic"
pause "$(<"$plan/seconds")"
until_ placed || rc=1
now_ms >"$out/stop"
ask || rc=1
end_all || rc=1
cp /tmp/*.pcap /tmp/records.ndjson "$out"/
exit $rc
