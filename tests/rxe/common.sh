# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# shellcheck disable=SC2034 # used by whoever sources this
#
# What the scenarios' scripts share. Sourced in the guest, in the folder shared with the host.
share=/mnt/host
out=$share/out
mkdir -p "$out"

shopt -s extglob

say()
{
    local up
    read -r up _ </proc/uptime
    echo "[$up] $MACHINE: $*"
}

# Starting a program takes a tenth of a second where the processor is emulated, so what is asked again
# and again is asked of the shell alone where that can be.
mkfifo /tmp/nothing && exec {nothing}<>/tmp/nothing
pause() { read -rt "$1" -u "$nothing" || :; } # SECONDS

now_ms() { echo $((${EPOCHREALTIME/./} / 1000)); }

# What limits of waits grow by is measured in the guest, where neighbours of the machine that emulates
# it show: a piece of work on both processors, in percent of what it takes there beside nobody.
work()
{
    local i
    for ((i = 0; i < 10000; i++)); do :; done
}
slowness()
{
    local begun took other
    begun=$(now_ms)
    work &
    other=$!
    work
    wait $other
    took=$(($(now_ms) - begun))
    took=$((took * 100 / work_ms))
    echo $((took < 100 ? 100 : took > 1000 ? 1000 : took))
}
work_ms=400
slow=$(slowness)
say "limits of waits are at $slow %"

# A condition may leave in $awaited what it lacks. When the time is over the machine is measured once
# more, for neighbours that came later.
until_() # CONDITION [SECONDS]
{
    local begun=$SECONDS limit=$((${2:-60} * slow / 100)) now
    awaited=
    while :; do
        eval "$1" && return 0
        if [ $((SECONDS - begun)) -gt $limit ]; then
            now=$((${2:-60} * $(slowness) / 100))
            [ $now -gt $limit ] || break
            limit=$now
        fi
        pause 0.1
    done
    say "gave up waiting for $limit s: $1${awaited:+: $awaited}"
    return 1
}

says() { [ -e "$2" ] && [[ $(<"$2") == *"$1"* ]]; } # TEXT FILE

listening() # PORT
{
    local port
    port=$(printf ':%04X 0' "$1")
    [[ $(</proc/net/tcp) == *"$port"*([0:])" 0A"* || $(</proc/net/tcp6) == *"$port"*([0:])" 0A"* ]]
}

# Queue pairs that are connected: a writer's peer stays ready to receive (RTR).
in_use() # [LINK]
{
    rdma resource show qp ${1:+link "$1"} | grep -cE 'type RC state RT[RS]'
}
