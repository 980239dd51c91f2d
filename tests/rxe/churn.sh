# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# shellcheck disable=SC2016,SC2034,SC2154,SC2317 # conditions are looked at later; names are of what is sourced
#
# Runs in the guest, in the folder shared with the host: queue pairs, processes and devices that come
# and go faster than the agents look, numbers of processes that are used anew, and a device over a
# bond. Nothing is sent: what counts is what the agents say of queue pairs and owners. One agent may
# ask devices, as a user of its own; the other may do nothing. What really was is written down by
# churn.c, the rdma tool and /proc.
. ./common.sh
truth=/tmp/truth
mkdir -p $truth

# Both ends of a pair are here, and what queue pairs send to does not exist: a neighbour that never
# has to answer is enough for the kernel to make them.
device() # NUMBER
{
    local n
    ip link add h"$1" type veth peer name p"$1"
    ip addr add 10."$1".0.1/24 dev h"$1"
    ip link set p"$1" up
    ip link set h"$1" up
    neighbours "$1" h"$1"
    rdma link add rxe_h"$1" type rxe netdev h"$1"
}

neighbours() # NUMBER INTERFACE
{
    local n
    for n in $(seq 128 191); do
        echo "neigh add 10.$1.0.$n lladdr 02:00:00:00:00:$(printf %02x "$n") dev $2 nud permanent"
    done >/tmp/neighbours
    ip -batch /tmp/neighbours
}

bond() # NUMBER MODE
{
    local b=b$1
    ip link add "$b" type bond mode "$2" miimon 50
    for m in "$b"x "$b"y; do
        ip link add "$m" type veth peer name "$m"p
        ip link set "$m"p up
        ip link set "$m" master "$b"
    done
    ip addr add 10."$1".0.1/24 dev "$b"
    ip link set "$b" up
    neighbours "$1" "$b"
    rdma link add rxe_"$b" type rxe netdev "$b"
}

agent() # NAME COMMAND...
{
    local name=$1
    shift
    LD_LIBRARY_PATH=/tmp/bin/lib "$@" /tmp/bin/fabrictrace-agent --output "/tmp/$name.ndjson" --set host=guest \
        --set http=off --set refresh_interval=2s --set report_interval=1s --set first_report=500ms \
        --set rdma.interval=500ms --set rdma.counters_interval=2s --set loss_interval=2s \
        "${settings[@]/#/--set=}" 2>"$out/$name.log" &
    agents+=($!)
}

# One process of its own name and job; who waits for it says when it was gone.
first_remote=1000
churn() # COMM JOB DEVICE SECOND ALIVE RATE SECONDS [unconnected]
{
    ln -sf /tmp/bin/churn "/tmp/bin/$1"
    # Nothing else may take the number between here and the start.
    if [ -n "${number:-}" ]; then
        echo $((number - 1)) >/proc/sys/kernel/ns_last_pid
    fi
    SLURM_JOB_ID=$2 "/tmp/bin/$1" "$3" 1 "10.$4.0.128" "$first_remote" "${@:5}" \
        >"$truth/$1-$2" 2>>"$out"/churn.log &
    pid=$!
    # Past what it can use, so that no two share a number.
    first_remote=$((first_remote + $5 + $6 * 40 + 100))
}

# Memory and descriptors; the fewest of some looks, since a file of /proc is open now and then.
usage() # LABEL
{
    local name i=0
    for name in asking modest; do
        echo "$1 $name $(awk '/VmRSS/ { print $2 }' "/proc/${agents[i]}/status")" \
            "$(for _ in 1 2 3 4 5; do find "/proc/${agents[i]}/fd" -type l | wc -l; done | sort -n | head -1)" >>"$out"/usage
        i=$((i + 1))
    done
}

# What the rdma tool says, and whose threads those are. A thread may end before it is looked at: some
# have to be there.
snapshot()
{
    local tid
    rdma -j resource show qp -d >"$out"/qp.json
    grep -o '"pid":[0-9]*' "$out"/qp.json | sort -u | while IFS=: read -r _ tid; do
        awk -v tid="$tid" '/^Tgid:/ { print tid, $2 }' "/proc/$tid/status" 2>/dev/null
    done >"$out"/threads
    awk '$1 != $2 { n++ } END { exit !n }' "$out"/threads
}

# Processes that end in the middle, some killed, whose number the next one has at once, with another
# name and job. Each starts after the agents have seen the one before.
reuse()
{
    local i last number
    for i in $(seq 7); do
        churn "brief$i" "7$i" rxe_h2 2 8 0 60
        last=$pid number=$pid
        echo "$i $last" >>"$out"/reused
        until_ "[ \$(grep -c ^made $truth/brief$i-7$i) -ge 8 ]" || return 1
        sleep 1.3
        kill -9 "$last"
        wait "$last" 2>/dev/null
        echo "end $(now_ms)" >>"$truth/brief$i-7$i"
    done
}

told() { [ "$(grep -c "rdma: $1 devices" "$out/asking.log")" -ge "$2" ]; } # DEVICES TIMES

# A device that is taken away under its queue pairs, and comes back under its name.
replaced()
{
    churn lost 80 rxe_h3 3 40 0 60
    until_ "[ \$(grep -c ^made $truth/lost-80) -ge 40 ]" || return 1
    sleep 2
    # The driver lets nobody take a device away from a process: it goes with its last user.
    rdma link del rxe_h3 &
    deleting=$!
    sleep 0.5
    kill -9 "$pid"
    wait "$pid" 2>/dev/null
    echo "end $(now_ms)" >>$truth/lost-80
    wait $deleting
    until_ 'told 4 1' || return 1
    rdma link add rxe_h3 type rxe netdev h3
    until_ 'told 5 2' || return 1
    churn again 81 rxe_h3 3 40 0 3
    wait "$pid"
    say "replaced"
}

# The bonding driver's own words, as the truth of which member is up and which is in use.
bonds()
{
    local when=$1 b
    for b in b8 b9; do
        awk -v when="$when" -v bond="$b" -v ms="$(now_ms)" '
            /^Bonding Mode:/ { mode = $0; sub(/.*: /, "", mode) }
            /^Currently Active Slave:/ { active = $NF }
            /^Slave Interface:/ { member = $NF }
            /^MII Status:/ && member { print when, ms, bond, member, $NF, (active == member) ? "active" : "-" }
        ' "/proc/net/bonding/$b" >>"$out"/bonds
    done
}

members()
{
    churn sixteen 90 rxe_b8 8 16 0 60
    local one=$pid
    churn backup 91 rxe_b9 9 16 0 60
    local two=$pid
    until_ "[ \$(cat $truth/sixteen-90 $truth/backup-91 | grep -c ^made) -ge 32 ]" || return 1
    bonds both
    # Flows are told anew every few seconds: both spans surely hold one such report.
    sleep 8
    bonds before
    ip link set b8xp down
    ip link set b9xp down
    until_ "grep -q 'MII Status: down' /proc/net/bonding/b8 && grep -q 'MII Status: down' /proc/net/bonding/b9"
    bonds down
    sleep 10
    bonds after
    kill -9 $one $two
    wait $one $two 2>/dev/null
    echo "end $(now_ms)" | tee -a $truth/sixteen-90 >>$truth/backup-91
    say "members"
}

agents=()
rc=0
modprobe -a rdma_rxe ib_uverbs veth || exit 1
modprobe bonding max_bonds=0 || exit 1
mkdir -p /tmp/bin
# The shared folder may be the host's root's alone.
cp -r "$share"/fabrictrace-agent "$share"/churn "$share"/lib /tmp/bin/
chmod -R a+rX /tmp/bin
# The first address of a device is made from its MAC, the second is then its IPv4 address.
sysctl -qw net.ipv6.conf.default.disable_ipv6=1
for n in 1 2 3; do
    device $n || exit 1
done
bond 8 balance-xor || exit 1
bond 9 active-backup || exit 1
settings=(user=nobody rdma.query=true)
agent asking env
settings=(user=nobody)
agent modest setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=-all --bounding-set=-all --no-new-privs
for name in asking modest; do
    until_ "grep -q 'rdma: 5 devices' $out/$name.log" || exit 1
done
usage start
say "agents"
churn steady 60 rxe_h1 1 900 250 14
steady=$pid
churn fleeting 61 rxe_h1 1 200 900 14 unconnected
fleeting=$pid
reuse &
reusing=$!
sleep 6
usage full
until_ snapshot 20
wait $reusing || rc=1
wait $steady $fleeting || rc=1
say "steady"
usage later
replaced || rc=1
members || rc=1
sleep 3
usage end
mkdir -p "$out"/truth && cp $truth/* "$out"/truth/
for pid in "${agents[@]}"; do
    kill -0 "$pid" || rc=1
    grep -E "VmHWM|CapEff|^Uid" "/proc/$pid/status"
done
kill "${agents[@]}"
for pid in "${agents[@]}"; do
    wait "$pid" || { say "an agent ended with $?"; rc=1; }
done
cp /tmp/*.ndjson "$out"/
say "done, $rc"
exit $rc
