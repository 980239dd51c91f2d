# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# shellcheck disable=SC1091,SC2016,SC2034,SC2154,SC2317 # conditions are looked at later; names are of what is sourced
#
# Runs in the guest: three queue pairs of a job share one of four links, whose kernel hashes by a key.
# A plan, whose ports the switches are asked for, is laid down and the job starts anew; then a spine
# goes, and the job is planned anew. Which link each flow takes the kernel counts; the judge compares.
. ./common.sh
. ./guestfabric.sh
job=train
# Of a host, and of a link up: so little that links are the limit, not the processor.
kbits=$((15000 / slow < 50 ? 50 : 15000 / slow))
rate=${kbits}kbit
run=0
rc=0
export FABRICTRACE_JOB=$job FABRICTRACE_PLAN_WAIT_MS=1000

# What the switch would do, by the kernel's own tool: PORT of the leaf.
kernel_says() # IN SRC DST SPORT
{
    [[ $(ip -n leaf1 route get "$3" from "$2" iif "$1" ipproto udp sport "$4" dport 4791) =~ \ dev\ ([^ ]+) ]] &&
        echo "${BASH_REMATCH[1]}"
}

# The collision: for each client a port that leads by one spine.
lay_collision() # NUMBER-OF-SPINE
{
    local host in src dst sport text
    while read -r host in src dst; do
        for ((sport = 50000; ; sport++)); do
            [ "$(kernel_says "$in" "$src" "$dst" "$sport")" = "Ethernet$((50 + $1))" ] && break
            [ $sport -lt 50200 ] || return 1
        done
        text=$(<"$plan/collision-$host.json")
        text=${text//@SPORT@/$sport} text=${text//@LINK@/$((50 + $1))}
        echo "${text//@SPINE@/$1}" >"/tmp/plans/0@$job@$host.plan"
        chmod 644 "/tmp/plans/0@$job@$host.plan"
    done <"$plan/clients"
}

# Servers and clients with the wrap, then within their part of the processor.
start_job()
{
    local port qps sdev sgid cdev cgid pid
    tests=()
    run=$((run + 1))
    while read -r port qps sdev sgid _; do
        write_bw "$sdev" "$sgid" "$qps" $((port + 100 * run)) >"$out/server-$port-$run.log" 2>&1 &
        tests+=($!)
    done <"$plan/pairs"
    while read -r port _; do
        until_ "listening $((port + 100 * run))" 60 || return 1
    done <"$plan/pairs"
    while read -r port qps _ _ cdev cgid _; do
        SLURM_JOB_ID=$job FABRICTRACE_PLAN_SOCKET=/tmp/plan-${cdev#rxe_}.sock LD_PRELOAD=/tmp/libibverbs.so \
            write_bw "$cdev" "$cgid" "$qps" $((port + 100 * run)) 127.0.0.1 >"$out/client-$port-$run.log" 2>&1 &
        tests+=($!)
    done <"$plan/pairs"
    until_ '[ "$(in_use)" -ge "$(<"$plan/ends")" ]' 90 || return 1
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

# What the daemon answers to the question for a plan, once it knows all three flows and the switches
# agree.
planned() # NAME [OPTION...]
{
    local name=$1
    shift
    /tmp/fabrictrace plan "$job" --json --oracle "leaf*=/tmp/oracle" "$@" \
        >"$out/plan-$name.json" 2>"$out/plan-$name.err" &&
        says '"flows":3,"movable":3' "$out/plan-$name.json"
}

confirmed() # NAME
{
    local time
    [[ $(<"$out/plan-$1.json") =~ \"time_ms\":([0-9]+) ]] && time=${BASH_REMATCH[1]}
    /tmp/fabrictrace plans --json >"$out/plans.json" &&
        gawk -v time="\"time_ms\":$time," 'index($0, time) && /"stage":"confirmed"/ { print; found = 1 }
            END { exit !found }' "$out/plans.json" >"$out/confirmed-$1.json"
}

# Each flow has sent since: one that lost packets with a link waits for its timer.
all_seen() # NAME
{
    within leaf1 /tmp/nft -j list set inet seen flows >"$out/flows-$1.json" &&
        [ "$(grep -o '"Ethernet5[0-9]"' "$out/flows-$1.json" | wc -l)" -ge 3 ]
}

# Bytes that hosts sent, and by which link of the leaf which flow went meanwhile, by the kernel.
measure() # NAME SECONDS
{
    local host
    within leaf1 /tmp/nft flush set inet seen flows
    while read -r host _; do
        echo "$host $(now_ms) $(<"/sys/class/net/$host/statistics/tx_bytes")"
    done <"$plan/clients" >"$out/sent-$1"
    pause "$2"
    while read -r host _; do
        echo "$host $(now_ms) $(<"/sys/class/net/$host/statistics/tx_bytes")"
    done <"$plan/clients" >>"$out/sent-$1"
    until_ "all_seen $1" || rc=1
    /tmp/fabrictrace imbalance --json >"$out/imbalance-$1.json"
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

# The spine by which the first flow goes leaves the fabric.
fail_spine()
{
    local element='"([0-9.]+)", ([0-9]+), "(Ethernet[0-9]+)"'
    [[ $(<"$out/flows-planned.json") =~ $element ]] || return 1
    down=${BASH_REMATCH[3]}
    echo "$down" >"$out/down"
    ip -n leaf1 link set "$down" down && ip -n leaf2 link set "$down" down
}

say "kernel $(uname -r)"
load_programs || exit 1
cp "$share/libibverbs.so" /tmp && mkdir -m 1777 /tmp/plans || exit 1
# As oracle-linux does, in few programs: starting one takes a tenth of a second here.
cat >/tmp/oracle <<'END' && chmod +x /tmp/oracle || exit 1
#!/bin/bash
[[ $(ip -n "$1" route get "$4" from "$3" iif "$2" ipproto udp sport "$6" dport "$7") =~ \ dev\ ([^ ]+) ]] || exit 2
echo "${BASH_REMATCH[1]}"
END
# The daemon knows how fast links are.
sed -i "s/speed_bps: [0-9]*/speed_bps: ${kbits}000/" "$plan/topology.yaml" || exit 1
raise_fabric || exit 1
mapfile -t hosts <"$plan/hosts"
shape $rate "${hosts[@]}" || exit 1
for up in 51 52 53 54; do
    within leaf1 tc qdisc replace dev Ethernet$up root tbf rate $rate burst 4k limit 1m || exit 1
done
within leaf1 /tmp/nft -f "$plan/seen.nft" || exit 1
say "fabric"
start_exporters && start_programs || exit 1
say "programs"
lay_collision 1 && start_job || exit 1
say "a collision"
until_ "planned planned --apply /tmp/plans && says '\"moves\":' $out/plan-planned.json" 120 || rc=1
measure collided 6
say "planned"
again planned || rc=1
measure planned 6
say "confirmed"
fail_spine || exit 1
measure rehashed 6
# Where the kernel happens to give each flow a link of its own there is nothing to plan.
if [ "$(links_taken rehashed)" -eq 3 ]; then
    lay_collision "$([ "$down" = Ethernet51 ] && echo 2 || echo 1)" && stop_job && start_job || exit 1
    measure rehashed 6
fi
say "a spine less"
until_ "planned failed --failed leaf1/$down,leaf2/$down --apply /tmp/plans && says '\"moves\":' $out/plan-failed.json" 120 || rc=1
again failed || rc=1
measure failed 6
say "confirmed anew"
end_all || rc=1
cp /tmp/records.ndjson "$out"/
say "done, $rc"
exit $rc
