# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# shellcheck disable=SC1091,SC2034,SC2154,SC2317 # conditions are looked at later; names are of what is sourced
#
# Runs in the guest, in the folder shared with the host: perftest's queue pairs get the source ports
# of a plan, over two Soft-RoCE devices behind a router; the plan is withdrawn; the agent is killed.
# What the wire and the rdma tool say goes into out/ for the judge on the host.
. ./common.sh
. ./guestrouter.sh


# As an owner would start them: the library preloaded, the job named.
perftest() # NAME PORT QPS SECONDS
{
    local server client
    start_capture "$1" || return 1
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
    kill "$capture"
    wait "$capture"
    say "$1: $3 queue pairs"
}

rc=0
say "kernel $(uname -r)"
network 2 || exit 1
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
