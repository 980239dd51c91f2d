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

until_() # CONDITION [SECONDS]
{
    local end=$((SECONDS + ${2:-60}))
    while [ $SECONDS -le $end ]; do
        eval "$1" && return 0
        pause 0.1
    done
    say "gave up waiting: $1"
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

now_ms() { date +%s%3N; }
