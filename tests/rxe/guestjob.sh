# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# shellcheck disable=SC2016,SC2034,SC2119,SC2120,SC2154,SC2317 # conditions are looked at later; names are of what sources this
#
# A job of perftest's queue pairs with the wrap, in the guest, which starts anew with the ports of a plan;
# how fast its hosts send and by which links of leaf1 the kernel sends. Sourced after guestfabric.sh.
job=train
# Of a host, and of a link up: so little that links are the limit, not the processor.
kbits=$((15000 / slow < 50 ? 50 : 15000 / slow))
rate=${kbits}kbit
run=0
export FABRICTRACE_JOB=$job FABRICTRACE_PLAN_WAIT_MS=1000

# Programs, and the fabric with links that are slow enough, as the daemon knows.
raise_slow_fabric()
{
    local up
    load_programs && cp "$share/libibverbs.so" /tmp && mkdir -m 1777 /tmp/plans || return 1
    sed -i "s/speed_bps: [0-9]*/speed_bps: ${kbits}000/" "$plan/topology.yaml" && raise_fabric || return 1
    mapfile -t hosts <"$plan/hosts"
    shape $rate "${hosts[@]}" || return 1
    for up in 51 52 53 54; do
        within leaf1 tc qdisc replace dev Ethernet$up root tbf rate $rate burst 4k limit 1m || return 1
    done
    within leaf1 /tmp/nft -f "$plan/seen.nft"
}

# Servers and clients with the wrap, then within their part of the processor.
start_job() # [QUEUE-PAIRS-OF-EACH]
{
    local port qps sdev sgid cdev cgid pid ends=0
    tests=()
    run=$((run + 1))
    while read -r port qps sdev sgid _; do
        SLURM_JOB_ID=$job write_bw "$sdev" "$sgid" "${1:-$qps}" $((port + 100 * run)) \
            >"$out/server-$port-$run.log" 2>&1 &
        tests+=($!)
        ends=$((ends + 2 * ${1:-qps}))
    done <"$plan/pairs"
    while read -r port _; do
        until_ "listening $((port + 100 * run))" 60 || return 1
    done <"$plan/pairs"
    while read -r port qps _ _ cdev cgid _; do
        SLURM_JOB_ID=$job FABRICTRACE_PLAN_SOCKET=/tmp/plan-${cdev#rxe_}.sock LD_PRELOAD=/tmp/libibverbs.so \
            write_bw "$cdev" "$cgid" "${1:-$qps}" $((port + 100 * run)) 127.0.0.1 >"$out/client-$port-$run.log" 2>&1 &
        tests+=($!)
    done <"$plan/pairs"
    until_ "[ \$(in_use) -ge $ends ]" 90 || return 1
    limit_tests tests 40 || return 1
    for pid in "${tests[@]}"; do
        echo "$pid" >/sys/fs/cgroup/tests/cgroup.procs || return 1
    done
}

stop_job()
{
    kill "${tests[@]}"
    wait "${tests[@]}" 2>/dev/null
    until_ '[ "$(in_use)" -eq 0 ]' 60
}

# By a whole window: what the daemon measured of the fullest link is about what that can carry.
full() # [OPTION...]
{
    /tmp/fabrictrace plan "$job" --json "$@" >"$out/plan-full.json" 2>/dev/null &&
        gawk 'match($0, /"before":\{"worst":\{[^}]*\},"worst_load":([0-9.]+)/, a) { load = a[1] + 0 }
            END { exit load < 0.7 }' "$out/plan-full.json"
}

# Whether samples confirmed the port of each client; queue pairs get theirs one after the other.
confirmed() # NAME
{
    local time clients
    mapfile -t clients <"$plan/clients"
    [[ $(<"$out/plan-$1.json") =~ \"time_ms\":([0-9]+) ]] && time=${BASH_REMATCH[1]}
    /tmp/fabrictrace plans --json >"$out/plans.json" &&
        gawk -v time="\"time_ms\":$time," -v all="\"ports_confirmed\":${#clients[@]}," '
            index($0, time) && index($0, all) && /"stage":"confirmed"/ { print; found = 1 }
            END { exit !found }' "$out/plans.json" >"$out/confirmed-$1.json"
}

# Each flow has sent since: one that lost packets with a link waits for its timer.
all_seen() # NAME
{
    within leaf1 /tmp/nft -j list set inet seen flows >"$out/flows-$1.json" &&
        [ "$(grep -o '"Ethernet5[0-9]"' "$out/flows-$1.json" | wc -l)" -ge 3 ]
}

# A window that began since.
measured() # NAME MS
{
    /tmp/fabrictrace imbalance --json >"$out/imbalance-$1.json"
    gawk -v begin="$2" '/"name":"leaf1\/up"/ && match($0, /"window_start_ms":([0-9]+)/, a) { since = a[1] }
        END { exit since + 0 < begin + 0 }' "$out/imbalance-$1.json"
}

# Bytes that hosts sent, and by which link of the leaf which flow went meanwhile, by the kernel.
measure() # NAME SECONDS
{
    local host begin
    begin=$(now_ms)
    within leaf1 /tmp/nft flush set inet seen flows
    while read -r host _; do
        echo "$host $(now_ms) $(<"/sys/class/net/$host/statistics/tx_bytes")"
    done <"$plan/clients" >"$out/sent-$1"
    pause "$2"
    while read -r host _; do
        echo "$host $(now_ms) $(<"/sys/class/net/$host/statistics/tx_bytes")"
    done <"$plan/clients" >>"$out/sent-$1"
    until_ "all_seen $1" || rc=1
    until_ "measured $1 $begin" 60 || rc=1
}

# By how many links of the leaf flows went.
links_taken() # NAME
{
    grep -o '"Ethernet5[0-9]"' "$out/flows-$1.json" | sort -u | wc -l
}

# The job anew, with the ports of a plan.
again() # NAME
{
    stop_job && start_job && until_ "confirmed $1" 120
}
