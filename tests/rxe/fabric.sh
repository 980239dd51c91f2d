# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# shellcheck disable=SC1091,SC2016,SC2034,SC2154,SC2317 # conditions are looked at later; names are of what is sourced
#
# Runs in the guest: a whole leaf-spine with 16 hosts, 256 ends of queue pairs, and then a link of a
# spine that loses packets. The judge on the host compares what the daemon published with the wire.
. ./common.sh
. ./guestfabric.sh
raised_least=14
looks=0
rc=0

# The devices' counters, every two seconds or so, and between which times they were read.
look()
{
    pause 2
    now_ms >"$out/look-$looks.ms"
    rdma -j statistic show >"$out/look-$looks.json"
    now_ms >>"$out/look-$looks.ms"
    looks=$((looks + 1))
}

# Whether each host's first report since the link was healed is judged: that is when a window closes,
# and the first to close may have begun to before.
judged()
{
    gawk -v RS='\n' -v healed="$(<"$out/healed")" -v hosts="$(wc -l <"$plan/hosts")" '
        function value(name, a) { return match($0, "\"" name "\":([0-9]+)", a) ? a[1] + 0 : 0 }
        /"fabrictrace.host.v1"/ && value("time_ms") > healed && match($0, /"host":"[^"]*"/) {
            name = substr($0, RSTART, RLENGTH)
            reports += !seen[name]++
        }
        /"fabrictrace.imbalance.v1"/ && reports == hosts { windows[value("window_end_ms")] }
        END { exit length(windows) < 2 }' /tmp/records.ndjson
}

# Hosts that lost many packets since there was loss, as their reports tell, and of which one report
# tells more than any before it by far: on a slow machine timers fire without a loss. Those that are
# congestion for sure do not count as before, as with the judge.
raised()
{
    gawk -v RS='\n' -v lossy="$(<"$out/lossy")" -v least="$raised_least" '
        function value(name, a) { return match($0, "\"" name "\":([0-9]+)", a) ? a[1] + 0 : 0 }
        /"fabrictrace.host.v1"/ && match($0, /"host":"[^"]*"/) {
            name = substr($0, RSTART, RLENGTH)
            count = value("out_of_sequence") + value("retransmissions")
            bar = most[name] + 5 * sqrt(most[name] + 1) + 1
            if (value("time_ms") > lossy) {
                sum[name] += count
                told[name] += count >= least && count > bar
                hosts += told[name] && sum[name] >= 4 * least && !seen[name]++
            }
            if (count > most[name] && (count < 10 || count < bar))
                most[name] = count
        }
        END { print hosts + 0 }' /tmp/records.ndjson
}

# Four senders, for a minute; then the one that the judge needs. On a slow machine a queue pair has
# one packet under way, and its timer alone tells of a loss.
enough_raised()
{
    local hosts
    hosts=$(raised)
    awaited="$hosts hosts raised"
    [ "$hosts" -ge 4 ] || { [ "$hosts" -ge 1 ] && [ $((SECONDS - lossy_since)) -ge 60 ]; }
}

# Whether the loss was told of the link. On a slow machine timers fire without a loss and flows send again on all
# links, or so few packets go that chance explains the rest: then it is not, and eight windows are enough.
loss_told()
{
    awaited="packet_loss"
    gawk -v RS='\n' '/"kind":"packet_loss"/ { found = 1 } END { exit !found }' /tmp/records.ndjson ||
        [ $((SECONDS - lossy_since)) -ge $((8 * window)) ]
}

# Losses are as rare as the machine is slow: a report then has to be of longer for them to stand out.
longer_reports()
{
    local seconds=$((10 * slow / 100))
    sed -i "s/counters_interval: 10s/counters_interval: $((seconds < 40 ? seconds : 40))s/" "$plan"/*.yaml
}

say "kernel $(uname -r)"
longer_reports || exit 1
longer_windows || exit 1
load_programs || exit 1
raise_fabric || exit 1
say "fabric"
start_exporters || exit 1
start_programs || exit 1
say "programs"
start_captures || exit 1
start_servers || exit 1
say "servers"
start_clients || exit 1
say "$(<"$plan/ends") ends of queue pairs"
now_ms >"$out/start"
rdma -j resource show qp -d >"$out/qp.json"
enough=$((SECONDS + 7 * window / 2))
until_ 'look && [ $SECONDS -ge $enough ] && placed' || rc=1
now_ms >"$out/stop"
say "flows"
read -r switch port <"$plan/lossy"
mapfile -t senders <"$plan/senders"
limit_tests tests 15 && prefer 40 "${senders[@]}" || rc=1
rdma -j statistic show >"$out/statistic-0.json"
now_ms >"$out/lossy"
within "$switch" tc qdisc add dev "$port" root netem loss 15% || rc=1
lossy_since=$SECONDS
until_ 'look && enough_raised && loss_told' 180 || rc=1
now_ms >"$out/healed"
within "$switch" tc -s qdisc show dev "$port" >"$out/netem"
within "$switch" tc qdisc del dev "$port" root
rdma -j statistic show >"$out/statistic-1.json"
say "loss"
until_ 'look && judged' 60 || rc=1
end_all || rc=1
cp /tmp/*.pcap /tmp/records.ndjson "$out"/
free -m | sed -n 2p
say "done, $rc"
exit $rc
