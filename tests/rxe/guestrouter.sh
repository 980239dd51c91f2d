# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# shellcheck disable=SC2154,SC2034 # names are of what sources this
#
# Soft-RoCE devices rxe_h1, rxe_h2, ... behind a router, and an agent that gives their queue pairs the ports of a
# plan. Sourced after common.sh.
#
# Soft-RoCE works in the first network namespace alone (Linux 6.1), so all ends are there, and
# rules make their packets go out by the router instead of by the loopback device.
network() # DEVICES
{
    local n h t
    modprobe -a rdma_rxe ib_uverbs rdma_ucm veth || return 1
    sysctl -qw net.ipv4.conf.all.rp_filter=0 net.ipv4.conf.default.rp_filter=0 \
        net.ipv4.conf.all.accept_local=1 net.ipv4.conf.default.accept_local=1 \
        net.ipv4.conf.all.arp_ignore=1 net.ipv4.conf.all.arp_announce=2 \
        net.ipv6.conf.default.disable_ipv6=1 net.core.netdev_max_backlog=100000
    ip netns add router
    ip netns exec router sysctl -qw net.ipv4.ip_forward=1 net.ipv4.conf.all.rp_filter=0 \
        net.ipv4.conf.default.rp_filter=0
    for ((n = 1; n <= $1; n++)); do
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
    for ((n = 1; n <= $1; n++)); do
        rdma link add rxe_h$n type rxe netdev h$n || return 1
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

ready() { says "listening on" "$out/$1.cap"; } # NAME
start_capture()                                # NAME
{
    ip netns exec router tcpdump -Z root -B 8192 -U -s 120 -i r1 -w "/tmp/$1.pcap" udp port 4791 \
        2>"$out/$1.cap" &
    capture=$!
    until_ "ready $1"
}
