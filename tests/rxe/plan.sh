# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# shellcheck disable=SC1091,SC2034,SC2154,SC2317 # conditions are looked at later; names are of what is sourced
#
# Runs in the guest, in the folder shared with the host: perftest's queue pairs get the source ports
# of a plan, over two Soft-RoCE devices behind a router; the plan is withdrawn; the agent is killed.
# What the wire and the rdma tool say goes into out/ for the judge on the host.
. ./common.sh

network()
{
    local n h t
    modprobe -a rdma_rxe ib_uverbs veth || return 1
    sysctl -qw net.ipv4.conf.all.rp_filter=0 net.ipv4.conf.default.rp_filter=0 \
        net.ipv4.conf.all.accept_local=1 net.ipv4.conf.default.accept_local=1 \
        net.ipv4.conf.all.arp_ignore=1 net.ipv4.conf.all.arp_announce=2 \
        net.ipv6.conf.default.disable_ipv6=1 net.core.netdev_max_backlog=100000
    ip netns add router
    ip netns exec router sysctl -qw net.ipv4.ip_forward=1 net.ipv4.conf.all.rp_filter=0 \
        net.ipv4.conf.default.rp_filter=0
    for n in 1 2; do
        h=h$n t=$((10 + n))
        ip link add $h type veth peer name r$n netns router
        ip addr add 10.$n.0.1/24 dev $h noprefixroute
        ip link set $h up
        ip -n router addr add 10.$n.0.254/24 dev r$n
        ip -n router link set r$n up
        ip route add 10.$n.0.0/24 dev $h src 10.$n.0.1 table $t
        ip route add default via 10.$n.0.254 dev $h table $t
        ip rule add pref 10 oif $h lookup $t
        ip rule add pref 20 iif $h lookup local
    done
    ip rule add pref 1000 lookup local
    ip rule del pref 0
    for h in h1 h2; do
        rdma link add rxe_$h type rxe netdev $h || return 1
    done
}

start_agent()
{
    LD_LIBRARY_PATH=/mnt/host/lib ./fabrictrace-agent --output "/tmp/agent-$1.ndjson" \
        --set host=guest --set http=off --set plan.socket=/tmp/plan.sock \
        --set plan.folder=/tmp/plans 2>"$out/agent-$1.log" &
    agent=$!
    until_ '[ -S /tmp/plan.sock ]'
}

connected() { [ "$(in_use "$1/1")" -ge "$2" ]; } # DEVICE QPS
ready() { says "listening on" "$out/$1.cap"; }   # NAME

# As an owner would start them: the library preloaded, the job named.
perftest() # NAME PORT QPS SECONDS
{
    local server client capture
    ip netns exec router tcpdump -Z root -B 8192 -U -s 120 -i r1 -w "/tmp/$1.pcap" udp port 4791 \
        2>"$out/$1.cap" &
    capture=$!
    until_ "ready $1" || return 1
    LD_PRELOAD=/mnt/host/libibverbs.so ib_write_bw -d rxe_h2 -x 1 -q "$3" -u 19 -F -s 4096 \
        -D "$4" -p "$2" >"$out/$1-server.log" 2>&1 &
    server=$!
    until_ "listening $2" || return 1
    LD_PRELOAD=/mnt/host/libibverbs.so ib_write_bw -d rxe_h1 -x 1 -q "$3" -u 19 -F -s 4096 \
        -D "$4" -p "$2" 127.0.0.1 >"$out/$1-client.log" 2>&1 &
    client=$!
    until_ "connected rxe_h1 $3 && connected rxe_h2 $3" || return 1
    rdma -j resource show qp -d >"$out/qp-$1.json"
    if [ "$1" = killed ]; then
        kill -9 "$agent"
        wait "$agent"
    fi
    wait $client && wait $server
    echo "$?" >"$out/$1-status"
    kill $capture
    wait $capture
    say "$1: $3 queue pairs"
}

rc=0
say "kernel $(uname -r)"
network || exit 1
mkdir -m 1777 /tmp/plans
export FABRICTRACE_JOB=planned FABRICTRACE_PLAN_SOCKET=/tmp/plan.sock FABRICTRACE_PLAN_WAIT_MS=1000
cp plan.json "/tmp/plans/0@planned@guest.plan"
start_agent first || exit 1
perftest planned 18515 4 4 || rc=1
perftest killed 18516 4 4 || rc=1
perftest alone 18517 4 4 || rc=1
rm -f /tmp/plan.sock
start_agent second || exit 1
rm "/tmp/plans/0@planned@guest.plan"
perftest withdrawn 18518 4 4 || rc=1
kill "$agent"
wait "$agent"
cp /tmp/*.pcap /tmp/*.ndjson "$out"/
say "done, $rc"
exit $rc
