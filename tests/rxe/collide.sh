# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# shellcheck disable=SC1091,SC2016,SC2034,SC2154,SC2317 # conditions are looked at later; names are of what is sourced
#
# Runs in the guest: three queue pairs of a job share one of four links, whose kernel hashes by a key.
# A plan, whose ports the switches are asked for, is laid down and the job starts anew; then a spine
# goes, and the job is planned anew. Which link each flow takes the kernel counts; the judge compares.
. ./common.sh
. ./guestfabric.sh
. ./guestjob.sh
rc=0

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
# As oracle-linux does, in few programs: starting one takes a tenth of a second here.
cat >/tmp/oracle <<'END' && chmod +x /tmp/oracle || exit 1
#!/bin/bash
[[ $(ip -n "$1" route get "$4" from "$3" iif "$2" ipproto udp sport "$6" dport "$7") =~ \ dev\ ([^ ]+) ]] || exit 2
echo "${BASH_REMATCH[1]}"
END
raise_slow_fabric || exit 1
say "fabric"
start_exporters && start_programs || exit 1
say "programs"
lay_collision 1 && start_job || exit 1
say "a collision"
measure collided 6
until_ 'full --oracle "leaf*=/tmp/oracle"' 120 || rc=1
until_ "planned planned --apply /tmp/plans && says '\"moves\":' $out/plan-planned.json" 120 || rc=1
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
until_ 'full --oracle "leaf*=/tmp/oracle"' 120 || rc=1
until_ "planned failed --failed leaf1/$down,leaf2/$down --apply /tmp/plans && says '\"moves\":' $out/plan-failed.json" 120 || rc=1
again failed || rc=1
measure failed 6
say "confirmed anew"
end_all || rc=1
cp /tmp/records.ndjson "$out"/
say "done, $rc"
exit $rc
