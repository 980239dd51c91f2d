# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# shellcheck disable=SC1091,SC2034,SC2154,SC2317 # conditions are looked at later; names are of what is sourced
#
# Runs in the guest: leaf1 chooses among four links by CRC32, as a switch's chip does. What it does is learnt
# from queue pairs that come and go; then three of a job share a link, a plan by what was learnt is laid down, and the
# job starts anew. Which link each flow takes the kernel counts; the judge compares.
. ./common.sh
. ./guestfabric.sh
. ./guestjob.sh
rc=0

# Columns of the hash as rules that mark packets, and a table of routes for each mark.
hash_by_crc()
{
    within leaf1 /tmp/nft -f "$plan/crc.nft" && ip -n leaf1 -batch "$plan/crc.batch"
}

# Of leaf1, from so many flows. So few queue pairs at once that they leave the guest some processor.
observed() # FLOWS
{
    /tmp/fabrictrace hash --json >"$out/hash.json" 2>/dev/null &&
        gawk -v least="$1" '/"switch":"leaf1"/ && match($0, /"observations":([0-9]+)/, a) { n = a[1] + 0 }
            END { exit n < least }' "$out/hash.json"
}

learnt() { gawk '/"switch":"leaf1"/ && /"trusted":true/ { found = 1 } END { exit !found }' "$out/hash.json"; }

learn() # QUEUE-PAIRS-OF-EACH
{
    local flows=0
    shape 256kbit "${hosts[@]}" || return 1
    until learnt; do
        job=many start_job "$1" || return 1
        flows=$((flows + 3 * $1 * 9 / 10))
        until_ "observed $flows" 180 && all_seen learn && stop_job || return 1
        say "$flows flows"
    done
    shape "$rate" "${hosts[@]}"
}

planned() # NAME [OPTION...]
{
    local name=$1
    shift
    /tmp/fabrictrace plan "$job" --json "$@" >"$out/plan-$name.json" 2>"$out/plan-$name.err" &&
        says '"flows":3,"movable":3' "$out/plan-$name.json"
}

# With a link down, of which nothing was learnt.
refused()
{
    /tmp/fabrictrace plan "$job" --json --failed leaf1/Ethernet52 --apply /tmp/plans >"$out/plan-failed.json" 2>/dev/null
    [ $? -eq 65 ] && says '"refused":' "$out/plan-failed.json"
}

say "kernel $(uname -r)"
raise_slow_fabric && hash_by_crc || exit 1
say "fabric"
start_exporters && start_programs || exit 1
say "programs"
/tmp/fabrictrace hash --json >"$out/hash.json"
learn "$(<"$plan/learn")" || exit 1
say "learnt"
cp -t /tmp/plans "$plan"/*.plan && start_job || exit 1
say "a collision"
measure collided 6
until_ full 120 || rc=1
until_ "planned planned --apply /tmp/plans && says '\"moves\":' $out/plan-planned.json" 120 || rc=1
refused || rc=1
say "planned"
again planned || rc=1
measure planned 6
say "confirmed"
end_all || rc=1
cp /tmp/records.ndjson "$out"/
say "done, $rc"
exit $rc
