# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# shellcheck disable=SC1091,SC2016,SC2034,SC2154,SC2317 # conditions are looked at later; names are of what is sourced
#
# Runs in the guest, in the folder shared with the host: three Soft-RoCE devices behind a router,
# three agents that may see different things, real queue pairs of perftest and rping. What the wire,
# the rdma tool and the agents say goes into out/ for the judge on the host.
. ./common.sh
. ./guestrouter.sh

agent() # NAME SETTING...
{
    local name=$1
    shift
    LD_LIBRARY_PATH=/mnt/host/lib ./fabrictrace-agent --output "/tmp/$name.ndjson" --set host=guest --set http=off \
        --set refresh_interval=2s --set report_interval=1s --set first_report=500ms \
        --set rdma.interval=500ms --set rdma.counters_interval=2s "${@/#/--set=}" 2>"$out/$name.log" &
    agents+=($!)
}

# What the rdma tool of iproute2 says while the queue pairs are in use.
snapshot() # NAME
{
    rdma -j resource show qp -d >"$out/qp-$1.json"
    rdma -j resource show cm_id -d >"$out/cm-$1.json"
}

# Few messages at once: the last queue pair has its turn soon, on a slow machine too.
perftest() # NAME PROGRAM PORT QPS CLIENT
{
    local server client how="-x 1 -q $4 -u 19 -F -s 4096 -t 16 -D $((5 * slow / 100)) -p $3"
    # shellcheck disable=SC2086 # words
    "$2" -d rxe_h2 $how >"$out/$1-server.log" 2>&1 &
    server=$!
    until_ "listening $3" || return 1
    # shellcheck disable=SC2086 # words
    SLURM_JOB_ID=4711 "$2" -d "$5" $how 127.0.0.1 >"$out/$1-client.log" 2>&1 &
    client=$!
    until_ "connected $5 $4" || return 1
    snapshot "$1"
    say "$1: $4 queue pairs"
    wait $client && wait $server
}

rping_pair()
{
    local server client
    rping -s -a 10.2.0.1 -S 64 >"$out"/rping-server.log 2>&1 &
    server=$!
    until_ 'rdma resource show cm_id | grep -q LISTEN' || return 1
    rping -c -a 10.2.0.1 -I 10.1.0.1 -S 64 -C 1000000 >"$out"/rping-client.log 2>&1 &
    client=$!
    until_ 'connected rxe_h1 1' || return 1
    sleep 3
    snapshot rping
    say "rping"
    kill $client
    wait $client $server
    return 0
}

# A known number of messages on each queue pair, between two looks at the devices' own counters.
counted()
{
    local server how="-x 1 -q 2 -u 19 -F -s 4096 -t 16 -n 250 -p 18521"
    # shellcheck disable=SC2086 # words
    ib_write_bw -d rxe_h2 $how >"$out"/counted-server.log 2>&1 &
    server=$!
    until_ 'listening 18521' || return 1
    rdma -j statistic show >"$out"/stat-counted-0.json
    now_ms >"$out"/counted
    # shellcheck disable=SC2086 # words
    ib_write_bw -d rxe_h1 $how 127.0.0.1 >"$out"/counted-client.log 2>&1 || return 1
    wait $server || return 1
    now_ms >>"$out"/counted
    rdma -j statistic show >"$out"/stat-counted-1.json
    say "counted"
}

# A router that loses packets on the way from the first device to the second.
lossy()
{
    ip netns exec router tc qdisc add dev r2 root netem loss 3% || return 1
    now_ms >"$out"/lossy
    perftest lossy ib_write_bw 18517 4 rxe_h1 || return 1
    ip netns exec router tc qdisc del dev r2 root
}

# Processes killed in the middle of their work.
killed()
{
    local server client
    ib_write_bw -d rxe_h2 -x 1 -q 2 -u 19 -F -D 60 -p 18520 >/dev/null 2>&1 &
    server=$!
    until_ 'listening 18520' || return 1
    ib_write_bw -d rxe_h1 -x 1 -q 2 -u 19 -F -D 60 -p 18520 127.0.0.1 >/dev/null 2>&1 &
    client=$!
    until_ 'connected rxe_h1 2' || return 1
    sleep 2
    kill -9 $client $server
    wait $client $server 2>/dev/null
    until_ '! connected rxe_h1 1' || return 1
    say "killed"
}

told() { [ "$(grep -c "rdma: $1 devices" "$out/asking.log")" -ge "$2" ]; } # DEVICES TIMES

# A device that goes away and comes back under its name.
replaced()
{
    rdma link del rxe_h3
    until_ 'told 2 1' || return 1
    rdma link add rxe_h3 type rxe netdev h3
    until_ 'told 3 2' || return 1
    say "replaced"
}

reported() { grep -c '"fabrictrace.host.v1".*"device":"rxe_h3"' /tmp/modest.ndjson; }

agents=()
captures=()
rc=0
say "kernel $(uname -r)"
network 3 || exit 1
say "network"
for n in 1 2; do
    ip netns exec router tcpdump -Z root -B 8192 -U -s 120 -i r$n -w /tmp/r$n.pcap udp port 4791 2>"$out"/r$n.log &
    captures+=($!)
done
until_ '[ -s /tmp/r1.pcap ] && [ -s /tmp/r2.pcap ]' || rc=1
agent packets 'interfaces=[h1, h2, h3]'          # capture, without asking
agent asking rdma.query=true              # no capture
# Neither, nor a device that it may open.
chmod 600 /dev/infiniband/uverbs*
agent modest user=nobody
for name in packets asking modest; do
    until_ "grep -q 'rdma: 3 devices' $out/$name.log" || exit 1
done
if LD_LIBRARY_PATH=/mnt/host/lib ./fabrictrace-agent --output /tmp/none --set 'interfaces=[rxe_h1:1]' \
    2>"$out"/sniffer.log; then
    say "captures on an RDMA device"
    rc=1
fi
# Uses up numbers at one end of what follows, so that those of both ends differ.
perftest skew ib_write_bw 18510 3 rxe_h3 || rc=1
rdma -j statistic show >"$out"/stat-skew.json
perftest write ib_write_bw 18515 8 rxe_h1 || rc=1
perftest read ib_read_bw 18516 4 rxe_h1 || rc=1
counted || rc=1
rping_pair || rc=1
lossy || rc=1
killed || rc=1
replaced || rc=1
# The counters began anew with the device: a report from before it was replaced proves nothing.
before=$(reported)
until_ '[ "$(reported)" -gt "$before" ]' || rc=1
rdma -j statistic show >"$out"/stat.json
for pid in "${agents[@]}"; do
    kill -0 "$pid" || rc=1
    grep -h VmHWM "/proc/$pid/status"
done
kill "${agents[@]}" "${captures[@]}"
wait
cp /tmp/*.pcap /tmp/*.ndjson "$out"/
say "done, $rc"
exit $rc
