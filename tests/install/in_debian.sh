#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# In a bare Debian: installs the packages of /packages, runs the programs, upgrades to those of
# /packages/next, purges. Ends with "N passed, N failed, N skipped". For check_packages.sh.
set -u
export DEBIAN_FRONTEND=noninteractive
passed=0
failed=0

judge() # WHAT COMMAND...
{
    local what=$1
    shift
    if "$@" >/tmp/log 2>&1; then
        passed=$((passed + 1))
        echo "ok   $what"
    else
        failed=$((failed + 1))
        echo "FAIL $what"
        tail -n 40 /tmp/log | sed 's/^/    | /'
    fi
}

apt() { apt-get -q -y --no-install-recommends "$@"; }
set_up() { apt update && apt install /packages/*.deb; }
version_is()
{
    [ "$(dpkg-query -W -f '${db:Status-Status} ${Version}\n' 'fabrictrace-*' | sed -n 's/^installed //p' |
        sort -u)" = "$1" ]
}
user_there() { getent passwd fabrictrace && [ "$(id -un fabrictrace)" = fabrictrace ]; }
not_enabled() { [ -z "$(find /etc/systemd/system -name '*fabrictrace*')" ]; }
# What a message means is known wherever it is written.
explained()
{
    local name
    for name in daemon switchpoll agent; do
        dpkg -L fabrictrace-$name | grep '^/usr/lib/systemd/catalog/.*\.catalog$' || return
    done
}
check() { "$@" --check; }
as_user() { setpriv --reuid=fabrictrace --regid=fabrictrace --clear-groups "$@"; }

# The lab's capture of sFlow through the installed poller and daemon.
analyze()
{
    cd /packages/lab && TZ=UTC fabrictrace analyze sflow.pcap --topology topology.yaml >/tmp/text &&
        diff /tmp/text analyze.txt
}

# What the daemon answers as the user that the unit names.
serve()
{
    local pid rc=1 n
    mkdir -p /run/test && chown fabrictrace /run/test
    as_user /usr/sbin/fabrictraced --ports /run/test/ports --set http=127.0.0.1:0 --set listen=127.0.0.1:0 &
    pid=$!
    for ((n = 0; n < 600; n++)); do
        [ ! -s /run/test/ports ] || break
        kill -0 "$pid" || return 1
        sleep 0.1
    done
    fabrictrace topology --endpoint "127.0.0.1:$(sed -n 's/^http=//p' /run/test/ports)" --json && rc=0
    kill "$pid" && wait "$pid"
    return "$rc"
}

plugin_loads()
{
    local file
    file=$(dpkg -L fabrictrace-nccl-plugin | grep '\.so$') &&
        ! ldd -r "$file" | grep -E 'not found|undefined'
}

# What the manual names beneath /usr is where a package has put it; the dynamic linker reads $LIB.
named()
{
    local lib path pages missing=0
    lib=$(dpkg -L fabrictrace-nccl-plugin | sed -n 's,^/usr/\(.*\)/fabrictrace/.*\.so$,\1,p')
    mapfile -t pages < <(find /usr/share/man -name '*fabrictrace*.gz')
    [ "${#pages[@]}" -ge 20 ] || return
    while read -r path; do
        compgen -G "${path//\$LIB/$lib}" && continue
        echo "not there: $path"
        missing=1
    done < <(zcat "${pages[@]}" | sed 's/\\&//g' | grep -oE '/usr/[[:alnum:]_./$*-]*[[:alnum:]*/]' | sort -u)
    return $missing
}
# As NCCL and the dynamic linker of a job load them.
loaded_as_told()
{
    local told
    told=$(zcat /usr/share/man/man7/libnccl-profiler-fabrictrace.7.gz |
        sed -n "s/^\.Ev NCCL_PROFILER_PLUGIN .* '\(.*\)'$/\1/p")
    perl -MDynaLoader -e 'DynaLoader::dl_load_file($ARGV[0], 0) or die DynaLoader::dl_error()' "$told" || return
    told=$(zcat /usr/share/man/man7/libibverbs-fabrictrace.7.gz | sed -n "s/^\.Ev LD_PRELOAD .* '\(.*\)'$/\1/p")
    LD_PRELOAD=$told grep fabrictrace/plan /proc/self/maps
}

# What an operator wrote stays; what nobody touched is the new one.
edit() { echo 'window: 7s' >>/etc/fabrictrace/fabrictraced.yaml; }
# As the manual has it: what this machine does not have stays away.
upgrade()
{
    apt purge fabrictrace-verbs && dpkg-deb -x /packages/next/fabrictrace-daemon_*.deb /tmp/new &&
        /tmp/new/usr/sbin/fabrictraced --check && rm -r /tmp/new &&
        apt -o Dpkg::Options::=--force-confold --only-upgrade install /packages/next/*.deb &&
        [ ! -e /usr/share/man/man7/libibverbs-fabrictrace.7.gz ]
}
kept()
{
    [ "$(tail -n 1 /etc/fabrictrace/fabrictraced.yaml)" = 'window: 7s' ] &&
        fabrictraced --print-config | grep -Eq '^window: *7s' &&
        [ -e /etc/fabrictrace/fabrictraced.yaml.dpkg-dist ] &&
        grep -q '# next' /etc/fabrictrace/fabrictrace-agent.yaml
}

removed()
{
    apt remove 'fabrictrace-*' && [ ! -e /usr/sbin/fabrictraced ] &&
        [ "$(tail -n 1 /etc/fabrictrace/fabrictraced.yaml)" = 'window: 7s' ]
}
# Each takes what it wrote, and leaves what the others did; the folder goes with the last.
purged()
{
    local left state=/var/lib/fabrictrace
    mkdir -p $state/spool $state/agent.spool $state/switchpoll.spool && touch $state/records.ndjson &&
        touch $state/agent.spool/1 $state/switchpoll.spool/1 || return
    apt purge fabrictrace-daemon && [ "$(echo $state/*)" = "$state/agent.spool $state/switchpoll.spool" ] || return
    apt purge fabrictrace-agent && [ "$(ls $state)" = switchpoll.spool ] || return
    apt purge 'fabrictrace-*' || return
    # Its user stays, and what apt and dpkg write down of the past.
    left=$(find / -xdev -path /packages -prune -o -path /proc -prune -o -path /var/log -prune -o \
        -iname '*fabrictrace*' -print)
    [ -z "$left" ] || echo "left: $left"
    [ -z "$left" ]
}

judge "all packages are installed" set_up
judge "they are of one version" version_is "$1"
judge "the user is there" user_there
judge "no unit is enabled before an operator says so" not_enabled
judge "each program's package says what its messages mean" explained
judge "fabrictraced --check" check fabrictraced
judge "fabrictrace-switchpoll --check" check fabrictrace-switchpoll
judge "fabrictrace-agent --check" check fabrictrace-agent --set daemon.endpoint=127.0.0.1:9477
judge "fabrictrace analyze" analyze
judge "fabrictraced answers as its own user" serve
judge "the plugin finds its symbols" plugin_loads
judge "plugin and wrap are loaded as their pages say" loaded_as_told
judge "what the manual names is there" named
edit
judge "an upgrade" upgrade
judge "all are of the next version" version_is "$1.1"
judge "a changed configuration is kept, an unchanged one is the new one" kept
judge "removed, the configuration stays" removed
judge "purged, nothing is left" purged
echo "$passed passed, $failed failed, 0 skipped"
[ $failed -eq 0 ]
