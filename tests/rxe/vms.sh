# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# shellcheck disable=SC1091,SC2015,SC2016,SC2154,SC2317 # conditions are looked at later; names are of what is sourced
#
# Runs in three guests on one shared folder: a router with the daemons and tcpdump, and two hosts with
# a Soft-RoCE device and agents of their own, all over the hosts' one network. One agent asks where
# queue pairs send to, the other sees the kernel's lists alone; each has its daemon.
. ./common.sh
export LD_LIBRARY_PATH=/tmp/lib
queue_pairs=(4 3) # of the first host's writer and of the second's

# Other guests' files: this folder is not cached.
there() { [ -e "$out/$1" ]; }
tell() { : >"$out/$1"; }

load() # PROGRAM...
{
    cp -r "$share/lib" /tmp/lib && cp "$@" /tmp/
}

# Nobody here uses link-local addresses, which leaves each host one.
daemon() # NAME PORT
{
    /tmp/fabrictraced --set "listen=10.0.1.254:$2" --set listen_plain=true --set "http=127.0.0.1:$(($2 + 10))" --set window=2s --set grace=500ms \
        --set path_refresh=2s --set pairing.link_local=false --set "topology=$share/topology.yaml" --sink "file:/tmp/$1.ndjson" 2>"$out/$1.log" &
    daemons+=($!)
}

router()
{
    local n daemons=() captures=() rc=0
    load fabrictraced || return 1
    echo 1 >/proc/sys/net/ipv4/ip_forward
    for n in 1 2; do
        ip addr add "10.0.$n.254/24" dev "eth$((n - 1))" && ip link set "eth$((n - 1))" up || return 1
        tcpdump -Z root -B 8192 -U -s 120 -i "eth$((n - 1))" -w "/tmp/r$n.pcap" udp port 4791 2>"$out/tcpdump-$n.log" &
        captures+=($!)
    done
    daemon asking 9477
    daemon lists 9478
    until_ 'listening 9477 && listening 9478' 30 || return 1
    until_ "says 'listening on' $out/tcpdump-1.log && says 'listening on' $out/tcpdump-2.log" || return 1
    # For how long queue pairs send: a slow machine needs more time to pair them.
    n=$((9 * slow / 100))
    echo $((n < 60 ? n : 60)) >"$out/seconds"
    tell router-up
    until_ 'there done-host1 && there done-host2' 180 || rc=1
    pause 3
    for n in "${daemons[@]}" "${captures[@]}"; do
        kill "$n" && wait "$n" || { say "$n ended with $?" && rc=1; }
    done
    cp /tmp/*.pcap /tmp/*.ndjson "$out"/
    return $rc
}

agent() # NAME PORT QUERY
{
    /tmp/fabrictrace-agent --set "host=$MACHINE" --set "source_id=$MACHINE-$1" --set http=off \
        --set "daemon.endpoint=10.0.1.254:$2" --set rdma.interval=500ms --set first_report=500ms \
        --set refresh_interval=2s --set report_interval=1s --set "rdma.query=$3" 2>"$out/agent-$1-$MACHINE.log" &
    agents+=($!)
}

write_bw() # QPS [SERVER]
{
    SLURM_JOB_ID=${2:+job-$MACHINE} ib_write_bw -d rxe0 -x 1 -q "$1" -u 19 -F -s 4096 -D "$(<"$out/seconds")" \
        -p "2000$1" ${2:+"$2"} >"$out/write-$MACHINE-$1.log" 2>&1 &
    tests+=($!)
}

host() # OWN-NUMBER PEER'S
{
    local agents=() tests=() rc=0 pid mine=${queue_pairs[$1 - 1]} theirs=${queue_pairs[$2 - 1]}
    load fabrictrace-agent || return 1
    ip link set eth0 up && ip addr add "10.0.$1.1/24" dev eth0 && ip route add default via "10.0.$1.254" || return 1
    rdma link add rxe0 type rxe netdev eth0 || return 1
    until_ 'there router-up' 60 || return 1
    agent asking 9477 true
    agent lists 9478 false
    # Numbers that are used up here alone, so that those of both ends differ.
    if [ "$1" = 1 ]; then
        ib_write_bw -d rxe0 -x 1 -q 2 -F -n 5 -p 20009 >/dev/null 2>&1 &
        pid=$!
        until_ 'listening 20009' && ib_write_bw -d rxe0 -x 1 -q 2 -F -n 5 -p 20009 10.0.1.1 >/dev/null 2>&1
        wait $pid || return 1
    fi
    write_bw "$theirs"
    until_ "listening 2000$theirs" && tell "up-$MACHINE"
    until_ "there up-host$2" 60 || return 1
    write_bw "$mine" "10.0.$2.1"
    until_ "[ \$(in_use) -ge $((mine + theirs)) ]" 30 || rc=1
    rdma -j resource show qp -d >"$out/qp-$MACHINE.json"
    say "$((mine + theirs)) ends of queue pairs"
    for pid in "${tests[@]}"; do
        wait "$pid" || { say "a test ended with $?" && rc=1; }
    done
    pause 2
    for pid in "${agents[@]}"; do
        kill "$pid" && wait "$pid" || { say "an agent ended with $?" && rc=1; }
    done
    return $rc
}

modprobe -a virtio_net rdma_rxe ib_uverbs af_packet
case $MACHINE in
router) router ;;
host1) host 1 2 ;;
host2) host 2 1 ;;
esac
rc=$?
tell "done-$MACHINE"
say "done, $rc"
exit $rc
