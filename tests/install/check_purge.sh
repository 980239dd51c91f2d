#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# What Debian's packages remove at purge, in a mount namespace with folders of its own: each what its
# program wrote, never what another did, and the common folder when the last of the three goes.
set -u
skip()
{
    echo "skipped: $1"
    exit 77
}
if [ $# -eq 0 ]; then
    if [ "$(id -u)" != 0 ] || ! unshare -m true 2>/dev/null; then
        skip "a mount namespace needs root"
    fi
    exec unshare -m "$0" inside
fi
scripts=$(cd "${srcdir:-.}" && pwd)/packaging/debian
state=/var/lib/fabrictrace
if ! mount -t tmpfs tmpfs /var/lib || ! mount -t tmpfs tmpfs /run || ! mkdir /run/bin; then
    skip "a tmpfs needs root"
fi
PATH=/run/bin:/usr/bin:/bin

program() { echo "/run/bin/${1/#fabrictrace-daemon/fabrictraced}"; }
# All are installed, and have written.
begin()
{
    local name
    rm -rf $state /run/fabrictrace
    mkdir -p $state/{spool,agent.spool,switchpoll.spool} /run/fabrictrace
    touch $state/records.ndjson{,.1} $state/history{,.new}
    touch $state/{spool,agent.spool,switchpoll.spool}/1
    for name in fabrictrace-{daemon,switchpoll,agent}; do
        printf '#!/bin/sh\n' >"$(program "$name")" && chmod +x "$(program "$name")"
    done
}
purge() # NAME...
{
    local name
    for name; do
        rm "$(program "$name")" && sh -e "$scripts/$name.postrm" remove && sh -e "$scripts/$name.postrm" purge ||
            echo "purge of $name failed"
    done
}
left() { [ ! -d $state ] || (cd $state && echo . *); }
failed=0
expect() # WHAT IS WANTED
{
    [ "$2" = "$3" ] && echo "ok   $1" && return
    echo "FAIL $1: '$2', not '$3'"
    failed=1
}

shopt -s nullglob
begin
purge fabrictrace-daemon
expect "the daemon's purge leaves the others' spools" "$(left)" ". agent.spool switchpoll.spool"
purge fabrictrace-agent
expect "the agent's purge leaves the poller's" "$(left)" ". switchpoll.spool"
expect "and no folder of sockets" "$(ls /run)" bin
purge fabrictrace-switchpoll
expect "the last takes the folder" "$(left)" ""
begin
purge fabrictrace-switchpoll fabrictrace-agent
expect "others' purge leaves what the daemon wrote" "$(left)" \
    ". history history.new records.ndjson records.ndjson.1 spool"
begin && find $state -mindepth 1 -delete && purge fabrictrace-agent fabrictrace-switchpoll
expect "the daemon's folder is there while it is installed" "$(left)" "."
begin && mkdir $state/mine && purge fabrictrace-agent fabrictrace-switchpoll fabrictrace-daemon
expect "what has another name stays" "$(left)" ". mine"
exit $failed
