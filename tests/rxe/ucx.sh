# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# shellcheck disable=SC1091,SC2034,SC2154,SC2317 # conditions are looked at later; names are of what is sourced
#
# Runs in the guest, in the folder shared with the host: the queue pairs of UCX, which it makes by itself, get
# the source ports of a plan, and without an agent that of UCX's own flow label. What the wire and the rdma tool
# say goes into out/ for the judge on the host.
. ./common.sh
. ./guestrouter.sh

# Soft-RoCE's UD packets carry no address that UCX's check of them takes for its own.
ucx() # DEVICE NAME PORT [SERVER]
{
    LD_LIBRARY_PATH=/mnt/host/lib LD_PRELOAD=/mnt/host/libibverbs.so UCX_MODULE_DIR=/mnt/host/lib/ucx \
        UCX_TLS=rc_verbs,ud_verbs:aux UCX_NET_DEVICES="$1:1" UCX_UD_ETH_DGID_CHECK=n UCX_IB_GID_INDEX=1 \
        ./ucx_perftest ${4:+"$4"} -t tag_bw -s 4096 -n 1500 -w 1 -p "$3" >"$out/$2.log" 2>&1
}

run() # NAME PORT
{
    local server client
    start_capture "$1" || return 1
    ucx rxe_h2 "$1-server" "$2" &
    server=$!
    until_ "listening $2" || return 1
    ucx rxe_h1 "$1-client" "$2" 127.0.0.1 &
    client=$!
    until_ "connected rxe_h1 1 && connected rxe_h2 1" || return 1
    rdma -j resource show qp -d >"$out/qp-$1.json"
    wait $client && wait $server
    echo "$?" >"$out/$1-status"
    kill "$capture"
    wait "$capture"
    say "$1"
}

rc=0
say "kernel $(uname -r)"
network 2 || exit 1
# So slow that its queue pairs are there for seconds, however fast the machine is.
modprobe sch_tbf && tc -n router qdisc replace dev r2 root tbf rate 20mbit burst 16k limit 1m || exit 1
mkdir -m 1777 /tmp/plans
export FABRICTRACE_JOB=planned FABRICTRACE_PLAN_SOCKET=/tmp/plan.sock FABRICTRACE_PLAN_WAIT_MS=1000
cp plan.json "/tmp/plans/0@planned@guest.plan"
start_agent first || exit 1
run planned 18520 || rc=1
kill "$agent"
wait "$agent"
run alone 18521 || rc=1
cp /tmp/*.pcap /tmp/*.ndjson "$out"/
say "done, $rc"
exit $rc
