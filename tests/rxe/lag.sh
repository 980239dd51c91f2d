# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# shellcheck disable=SC1091,SC2154 # what is sourced, and what it sets
#
# Runs in the guest: a leaf-spine of namespaces in which leaf1 has an aggregate of two links to each
# spine, made by the kernel's bonding driver, and a real sFlow exporter in each switch. spine1 has an
# aggregate too and names it in its samples; spine2 names the port that a packet came by. What the
# exporters sent, and what went over each member, goes into out/ for the judge on the host.
cd /mnt/host || exit 1
. ./common.sh
collector=172.31.0.254
declare -A agents=([leaf1]=172.31.0.1 [leaf2]=172.31.0.2 [spine1]=172.31.0.11 [spine2]=172.31.0.12)
pids=()
within() { ip netns exec "$@"; }

# Ports have the same name and ifIndex at both ends.
wire() # SWITCH SWITCH PORT IFINDEX
{
    ip link add name "$3" index "$4" netns "$1" type veth peer name "$3" index "$4" netns "$2"
}

bond() # SWITCH NAME IFINDEX MODE MEMBER...
{
    local switch=$1 name=$2 index=$3 mode=$4 member
    shift 4
    ip -n "$switch" link add name "$name" index "$index" type bond mode "$mode" xmit_hash_policy layer3+4 \
        miimon 50 || return 1
    for member in "$@"; do
        ip -n "$switch" link set dev "$member" master "$name" || return 1
    done
    ip -n "$switch" link set dev "$name" up
}

links()
{
    local name
    for name in gpu1 gpu2 "${!agents[@]}"; do
        ip netns add "$name"
        echo 1 | within "$name" tee /proc/sys/net/ipv4/ip_forward >/dev/null
        ip -n "$name" link set lo up
    done
    ip link add name host index 101 netns leaf1 type veth peer name eth0 netns gpu1
    ip link add name host index 101 netns leaf2 type veth peer name eth0 netns gpu2
    wire leaf1 spine1 a1 111 && wire leaf1 spine1 a2 112 && wire leaf1 spine2 b1 121 &&
        wire leaf1 spine2 b2 122 && wire leaf2 spine1 c 131 && wire leaf2 spine2 d 141 || return 1
    bond leaf1 po1 201 802.3ad a1 a2 && bond spine1 po9 209 802.3ad a1 a2 &&
        bond leaf1 po2 202 balance-xor b1 b2 || return 1
    # What comes by either port is for spine2.
    for name in b1 b2; do
        ip -n spine2 link set dev $name address 02:00:00:00:00:22
    done
}

address() # NAMESPACE DEVICE ADDRESS/LENGTH
{
    ip -n "$1" addr add "$3" dev "$2" && ip -n "$1" link set dev "$2" up
}

addresses()
{
    address gpu1 eth0 10.0.1.1/24 && address leaf1 host 10.0.1.254/24 &&
        address gpu2 eth0 10.0.2.1/24 && address leaf2 host 10.0.2.254/24 &&
        address leaf1 po1 10.1.1.1/30 && address spine1 po9 10.1.1.2/30 &&
        address leaf1 po2 10.1.2.1/30 && address spine2 b1 10.1.2.2/30 &&
        address spine1 c 10.2.1.1/30 && address leaf2 c 10.2.1.2/30 &&
        address spine2 d 10.2.2.1/30 && address leaf2 d 10.2.2.2/30 || return 1
    ip -n spine2 link set dev b2 up
    ip -n leaf1 neigh add 10.1.2.2 lladdr 02:00:00:00:00:22 dev po2 nud permanent
    ip -n gpu1 route add default via 10.0.1.254
    ip -n leaf1 route add 10.0.2.0/24 nexthop via 10.1.1.2 nexthop via 10.1.2.2
    echo 1 | within leaf1 tee /proc/sys/net/ipv4/fib_multipath_hash_policy >/dev/null
    ip -n spine1 route add 10.0.2.0/24 via 10.2.1.2
    ip -n spine2 route add 10.0.2.0/24 via 10.2.2.2
}

# Datagrams go to an address that nobody has, so that nobody refuses them; tcpdump takes them.
exporter() # SWITCH
{
    local switch=$1 agent=${agents[$1]}
    ip link add name mgmt0 index 900 netns "$switch" type veth peer name "m-$switch"
    ip link set "m-$switch" up
    address "$switch" mgmt0 "$agent/24"
    ip -n "$switch" neigh add $collector lladdr 02:00:00:00:00:fe dev mgmt0 nud permanent
    within "$switch" /tmp/nft 'table inet lab { chain forwarded { type filter hook forward priority 0;
        udp dport 4791 log group 5 snaplen 1600 queue-threshold 1; }; }' || return 1
    printf '%s\n' "daemonize: false" "uacctd_group: 5" "uacctd_nl_size: 4194304" "snaplen: 1600" \
        "uacctd_ext_sampling_rate: 1" "plugins: sfprobe[x]" "plugin_buffer_size: 2048" \
        "plugin_pipe_size: 2048000" "sfprobe_receiver[x]: $collector:6343" "sfprobe_agentip[x]: $agent" \
        "sfprobe_source_ip[x]: $agent" >"/tmp/$switch.conf"
    LD_LIBRARY_PATH=/tmp/lib ip netns exec "$switch" /tmp/uacctd -f "/tmp/$switch.conf" >"$out/uacctd-$switch.log" 2>&1 &
    until_ "within $switch grep -q '^ *5 ' /proc/net/netfilter/nfnetlink_log"
}

capture() # FILE COMMAND...
{
    local file=$1
    shift
    "$@" -Z root -B 8192 -U -w "/tmp/$file.pcap" 2>"$out/$file.log" &
    pids+=($!)
    until_ "grep -q 'listening on' $out/$file.log"
}

ready() # SWITCH BOND
{
    [ "$(within "$1" cat "/proc/net/bonding/$2" | grep -c 'MII Status: up')" = 3 ]
}

# Both members are in the aggregator that is in use.
aggregated() # SWITCH BOND
{
    ready "$1" "$2" && [ "$(within "$1" cat "/sys/class/net/$2/bonding/ad_num_ports")" = 2 ]
}

say "kernel $(uname -r)"
modprobe -a veth bonding nf_tables nft_log nfnetlink_log || exit 1
# The driver makes one of its own, which nobody needs.
ip link del bond0 2>/dev/null
cp -r /mnt/host/lib /mnt/host/uacctd /mnt/host/rocegen /tmp/ && cp /mnt/host/nft /tmp/nft.bin || exit 1
printf '#!/bin/sh\nLD_LIBRARY_PATH=/tmp/lib exec /tmp/nft.bin "$@"\n' >/tmp/nft && chmod +x /tmp/nft
links && addresses || exit 1
until_ 'aggregated leaf1 po1 && aggregated spine1 po9 && ready leaf1 po2' || exit 1
say "aggregates"
capture sflow tcpdump -i any -s 0 udp port 6343 || exit 1
for switch in "${!agents[@]}"; do
    exporter "$switch" || exit 1
done
for member in a1 a2 b1 b2; do
    capture $member ip netns exec leaf1 tcpdump -i $member -s 100 udp port 4791 || exit 1
done
say "exporters"
LD_LIBRARY_PATH=/tmp/lib within gpu1 /tmp/rocegen send /mnt/host/flows.txt 6 >"$out/sent.json" || exit 1
say "flows"
sleep 3
for bond in po1 po2; do
    within leaf1 cat /proc/net/bonding/$bond
done >"$out/bonding"
for member in a1 a2 b1 b2; do
    echo "$member $(within leaf1 cat /sys/class/net/$member/statistics/tx_packets)"
done >"$out/counters"
kill "${pids[@]}"
wait "${pids[@]}"
cp /tmp/*.pcap "$out"/
say "done"
