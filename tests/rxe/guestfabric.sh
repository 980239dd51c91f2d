# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# shellcheck disable=SC2016,SC2154 # conditions are looked at later; names are of what is sourced
#
# Raises in the guest what guestfabric.py planned (in plan/), with our programs in it, and drives
# queue pairs over it. Sourced after common.sh.
plan=$share/plan
libraries=/tmp/lib
rate=2mbit # at which a host sends
window=4   # seconds
uacctds=()
agents=()
captures=()
tests=()
declare -A clients

within() { ip netns exec "$@"; }

# Programs and libraries in memory: the shared folder is slow.
load_programs()
{
    cp -r "$share/lib" "$libraries"
    find "$share" -maxdepth 1 -type f -executable -exec cp -t /tmp {} +
    export LD_LIBRARY_PATH=$libraries
}

# On a slow machine a queue pair sends as seldom: in a window there has to be a packet of each.
longer_windows()
{
    local seconds=$((4 * slow / 100))
    window=$((seconds < 12 ? seconds : 12))
    sed -i "s/^window: .*/window: ${window}s/" "$plan/fabrictraced.yaml"
}

raise_fabric() { raise_links && raise_routers && raise_hosts; }

raise_links()
{
    modprobe -a rdma_rxe ib_uverbs veth sch_tbf sch_netem || return 1
    sh -e "$plan/hosts.sysctl" && ip -batch "$plan/links.batch"
}

# Switches that are the kernel's own routers.
raise_routers()
{
    local switch
    modprobe -a nf_tables nft_log nft_numgen nfnetlink_log || return 1
    while read -r switch; do
        within "$switch" sh -e "$plan/switch.sysctl" && ip -n "$switch" -batch "$plan/$switch.batch" &&
            within "$switch" /tmp/nft -f "$plan/switch.nft" || return 1
    done <"$plan/switches"
}

raise_hosts()
{
    local host
    ip -batch "$plan/hosts.batch" && ip -batch "$plan/rules.batch" && ip -6 -batch "$plan/rules.batch" || return 1
    while read -r host; do
        rdma link add "rxe_$host" type rxe netdev "$host" || return 1
    done <"$plan/hosts"
}

# The packets of these hosts are what a test is about.
prefer() # PERCENT HOST...
{
    local host
    limit_tests loud "$1" || return 1
    shift
    for host in "$@"; do
        echo "${clients[rxe_$host]}" >/sys/fs/cgroup/loud/cgroup.procs || return 1
    done
}

# Soft-RoCE has no rate of its own. Where the processor is no limit, this is.
shape() # RATE HOST...
{
    local rate=$1 host
    shift
    for host in "$@"; do
        tc qdisc replace dev "$host" root tbf rate "$rate" burst 16k limit 1m || return 1
    done
}

start_exporters()
{
    local switch
    while read -r switch; do
        ip netns exec "$switch" /tmp/uacctd -f "$plan/$switch.uacctd" >"$out/uacctd-$switch.log" 2>&1 &
        uacctds+=($!)
    done <"$plan/switches"
    while read -r switch; do
        until_ "within $switch grep -q '^ *5 ' /proc/net/netfilter/nfnetlink_log" 30 || return 1
    done <"$plan/switches"
}

start_captures()
{
    local spine
    while read -r spine; do
        ip netns exec "$spine" tcpdump -Z root -B 16384 -s 100 -i any -w "/tmp/$spine.pcap" udp port 4791 \
            2>"$out/tcpdump-$spine.log" &
        captures+=($!)
    done <"$plan/spines"
    while read -r spine; do
        until_ "says 'listening on' $out/tcpdump-$spine.log" || return 1
    done <"$plan/spines"
}

start_programs()
{
    local host
    cd "$share" || return 1
    /tmp/fabrictraced -c plan/fabrictraced.yaml --sink file:/tmp/records.ndjson 2>"$out/fabrictraced.log" &
    daemon=$!
    until_ 'listening 9477' || return 1
    /tmp/fabrictrace-switchpoll -c plan/fabrictrace-switchpoll.yaml 2>"$out/switchpoll.log" &
    switchpoll=$!
    until_ 'says :18C7 /proc/net/udp' || return 1
    while read -r host; do
        /tmp/fabrictrace-agent -c "plan/$host.yaml" 2>"$out/agent-$host.log" &
        agents+=($!)
    done <"$plan/hosts"
    while read -r host; do
        until_ "says 'rdma: 1 devices' $out/agent-$host.log" 30 || return 1
    done <"$plan/hosts"
}

# Whether two windows since the start were published with every flow that sends data in them, and without
# samples that came too late, as the judge asks (fabricwire.py, whole_windows): a slow guest has such.
placed()
{
    gawk -v RS='\n' -v start="$(<"$out/start")" -v flows=$(($(<"$plan/ends") / 2)) '
        function value(name, a) { return match($0, "\"" name "\":([0-9]+)", a) ? a[1] + 0 : 0 }
        function late(rest, sum, a) {
            for (rest = $0; match(rest, /"reason":"late","count":([0-9]+)/, a); rest = substr(rest, RSTART + RLENGTH))
                sum += a[1]
            return sum + 0
        }
        /"fabrictrace.loss.v1"/ && /"program":"fabrictraced"/ {
            if (late() > known) {
                from[++spans] = told
                to[spans] = value("time_ms")
            }
            known = late()
            told = value("time_ms")
        }
        /"fabrictrace.imbalance.v1"/ && /"scope":"fabric"/ && value("window_start_ms") >= start &&
            value("flows") >= flows { ends[value("window_start_ms")] = value("window_end_ms") }
        END {
            for (begin in ends) {
                length_ms = ends[begin] - begin
                whole = told >= begin + 3 * length_ms
                for (i = 1; i <= spans; i++)
                    whole = whole && !(from[i] < begin + 3 * length_ms && to[i] > ends[begin])
                windows += whole
            }
            exit windows < 2
        }' /tmp/records.ndjson
}

# The place of an address in a device's table.
gid_index() # DEVICE ADDRESS-AS-GID
{
    local index gid
    for index in 0 1 2 3 4 5 6 7; do
        read -r gid <"/sys/class/infiniband/$1/ports/1/gids/$index" && [ "$gid" = "$2" ] && echo "$index" && return 0
    done
    return 1
}

# ib_write_bw asks for completions without a pause, so all share a part of a processor. It is one and
# the same processor for all, so that packets stay in order: between namespaces they are handled where
# they were sent.
limit_tests() # GROUP PERCENT
{
    local group=/sys/fs/cgroup/$1
    if [ ! -d "$group" ]; then
        echo +cpu +cpuset >/sys/fs/cgroup/cgroup.subtree_control && mkdir "$group" || return 1
        echo 1 >"$group/cpuset.cpus" || return 1
    fi
    echo "$(($2 * 1000)) 100000" >"$group/cpu.max"
}

# Becomes a perftest program.
write_bw() # DEVICE GID QPS PORT [SERVER]
{
    local index
    index=$(gid_index "$1" "$2") || return 1
    exec ib_write_bw -d "$1" -x "$index" -q "$3" -u 20 -F -s 1024 -t 4 -Q 1 -n 5000000 -p "$4" ${5:+"$5"}
}

# A line of plan/pairs: port, queue pairs, server's device and address, client's, client's job.
start_servers()
{
    local port qps sdev sgid
    while read -r port qps sdev sgid _; do
        write_bw "$sdev" "$sgid" "$qps" "$port" >"$out/server-$port.log" 2>&1 &
        tests+=($!)
        echo "$! server $port" >>"$out/tests"
    done <"$plan/pairs"
    while read -r port _; do
        until_ "listening $port" 30 || return 1
    done <"$plan/pairs"
}

# All start with the whole machine and little traffic, then get their limits.
start_clients()
{
    local port qps cdev cgid job pid
    local -a hosts
    mapfile -t hosts <"$plan/hosts"
    shape 256kbit "${hosts[@]}" || return 1
    while read -r port qps _ _ cdev cgid job; do
        SLURM_JOB_ID=$job write_bw "$cdev" "$cgid" "$qps" "$port" 127.0.0.1 >"$out/client-$port.log" 2>&1 &
        tests+=($!)
        clients[$cdev]=$!
        echo "$! client $port" >>"$out/tests"
    done <"$plan/pairs"
    until_ '[ "$(in_use)" -ge "$(<"$plan/ends")" ]' 90 || return 1
    limit_tests tests 40 || return 1
    for pid in "${tests[@]}"; do
        echo "$pid" >/sys/fs/cgroup/tests/cgroup.procs || return 1
    done
    shape "$rate" "${hosts[@]}"
}

# A queue pair is freed when its packets have left its host. Where they are in a shaper's queue Soft-RoCE
# (Linux 6.1) waits for 50 s and frees it all the same, which the packets do not survive.
end_tests()
{
    local host
    [ ${#tests[@]} -gt 0 ] || return 0
    kill -STOP "${tests[@]}"
    while read -r host; do
        tc qdisc del dev "$host" root
    done <"$plan/hosts"
    limit_tests tests 100 # to end, they need a processor again
    kill "${tests[@]}"
    kill -CONT "${tests[@]}"
}

# Ends what was started, in the order in which data flows.
end_all()
{
    local rc=0 pid
    end_tests
    kill "${agents[@]}" "$switchpoll"
    for pid in "${agents[@]}" "$switchpoll"; do
        wait "$pid" || { say "a program ended with $?" && rc=1; }
    done
    kill "$daemon"
    wait "$daemon" || { say "the daemon ended with $?" && rc=1; }
    [ ${#captures[@]} -eq 0 ] || kill "${captures[@]}"
    [ ${#uacctds[@]} -eq 0 ] || kill -9 "${uacctds[@]}"
    wait "${captures[@]}" "${uacctds[@]}" "${tests[@]}" 2>/dev/null
    return $rc
}
