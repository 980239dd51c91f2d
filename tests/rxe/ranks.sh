# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# shellcheck disable=SC2016,SC2034,SC2154,SC2317 # conditions are looked at later; names are of what is sourced
#
# Runs in the guest: training jobs whose queue pairs have the same numbers, with the NCCL plugin and
# without it, and agents that see the kernel's lists alone. At first no switch samples, so that nothing
# but communicators tells which ends belong together; then a rank is killed; then the switches sample.
. ./common.sh
. ./guestfabric.sh
rc=0
jobs=()

# The exporters cannot start while there are packets for them: they run from the beginning, and get
# none before the switches sample.
in_switches() # COMMAND...
{
    local switch
    while read -r switch; do
        within "$switch" "$@" || return 1
    done <"$plan/switches"
}

start_job() # NAME PLUGIN COMM FIRST STEP HOST...
{
    local host name=$1
    local -a args=("${@:2:4}")
    shift 5
    for host in "$@"; do
        args+=("rxe_$host" "/tmp/$host.sock")
    done
    SLURM_JOB_ID=$name /tmp/ranks "${args[@]}" >"/tmp/ranks-$name" 2>"$out/ranks-$name.log" &
    jobs+=($!)
}

# A job takes the numbers after those of the waves before it.
start_jobs()
{
    local wave line name
    for wave in 1 2 3; do
        while read -r _ line; do
            # shellcheck disable=SC2086
            start_job $line
        done < <(grep "^$wave " "$plan/jobs")
        while read -r _ name _; do
            until_ "says ready /tmp/ranks-$name" 30 || return 1
        done < <(grep "^$wave " "$plan/jobs")
    done
}

# What the rdma tool says, and whose threads those are. The shell's own read would come back for the next
# line at an offset, and a thread that went to sleep meanwhile has made the line before it longer.
snapshot()
{
    local tid
    rdma -j resource show qp -d >"$out/qp.json"
    grep -o '"pid":[0-9]*' "$out/qp.json" | sort -u | while IFS=: read -r _ tid; do
        awk -v tid="$tid" '/^Tgid:/ { print tid, $2 }' "/proc/$tid/status"
    done >"$out/threads"
}

# Looks at all ends anew. TEXT FEWEST: so many have it, and nobody is undecided.
look() { /tmp/fabrictrace qps --limit 1000 --json >/tmp/qps.json 2>>"$out/qps.log"; }
decided() # TEXT FEWEST
{
    look && ! grep -qE '"state": ?"(waiting|incomplete)"' /tmp/qps.json && [ "$(grep -c "$1" /tmp/qps.json)" -ge "$2" ]
}
# No end of a process is listed, and so many others are known to have lost theirs: why an end has no pair is
# judged once a second.
gone() # PID BEREFT
{
    look && ! grep -qE "\"pid\": ?$1\\b" /tmp/qps.json && [ "$(grep -c '"peer_gone"' /tmp/qps.json)" -ge "$2" ]
}
# So many flows have a published path by communicator that says this too.
told() # TEXT FEWEST
{
    [ "$(grep '"by":"communicator"' /tmp/records.ndjson | grep "$1" | grep -o '"flow":{[^}]*}' | sort -u | wc -l)" -ge "$2" ]
}
known() { [ "$(/tmp/fabrictrace ranks --json | grep -c "$1")" -ge "$2" ]; } # COMMUNICATOR RANKS
resolved() # FEWEST
{
    [ "$(/tmp/fabrictrace paths --state resolved --limit 1000 --json | grep -c '"both_hosts"')" -ge "$1" ]
}

say "kernel $(uname -r)"
load_programs && cp "$share"/{ranks,libnccl-profiler-fabrictrace.so} /tmp/ || exit 1
raise_fabric && start_exporters && in_switches /tmp/nft flush ruleset || exit 1
start_programs || exit 1
start_captures || exit 1
say "programs"
start_jobs || { cat "$out"/ranks-*.log && exit 1; }
snapshot
say "jobs"
read -r named flows ranks bereft sampled <"$plan/due"
# What is missing then, the judge says.
until_ 'decided "\"communicator\"" "$named"' 60
until_ 'told "" "$flows" && told "\"src_rank\"" "$ranks"' 30
cp /tmp/qps.json "$out/qps-named.json"
say "named"
# The first job makes another communicator, as jobs do as they go: no pair minds.
read -r first members another <"$plan/another"
kill -USR1 "${jobs[first]}"
until_ 'known "$another" "$members"' 30
say "another communicator"
read -r name rank <"$plan/victim"
read -r _ _ victim _ < <(grep "^rank $rank " "/tmp/ranks-$name")
kill -9 "$victim"
until_ 'gone "$victim" "$bereft"' 30
cp /tmp/qps.json "$out/qps-killed.json"
say "killed"
in_switches /tmp/nft -f "$plan/switch.nft" || exit 1
until_ 'decided "\"both_hosts\"" "$sampled"' 60
cp /tmp/qps.json "$out/qps-sampled.json"
until_ 'resolved "$sampled"' 30
say "sampled"
kill "${jobs[@]}"
for job in "${jobs[@]}"; do
    wait "$job" || { say "a job ended with $?" && rc=1; }
done
until_ 'look && [ ! -s /tmp/qps.json ]' 30
cp /tmp/qps.json "$out/qps-ended.json"
end_all || rc=1
cp /tmp/*.pcap /tmp/records.ndjson /tmp/ranks-* "$out"/
say "done, $rc"
exit $rc
