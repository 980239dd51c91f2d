#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# In a virtual machine that systemd booted and in which the packages are installed: the units as an
# operator uses them, an upgrade under load, and the purge. Judges by what systemd and the journal say.
# Ends with "N passed, N failed, N skipped". For machine.py; without a network but loopback.
set -u
export DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8 TZ=UTC SYSTEMD_PAGER='' SYSTEMD_COLORS=0
units=(fabrictraced fabrictrace-switchpoll fabrictrace-agent)
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

# Waits for a state; says what was awaited when it did not come. An emulated machine is slow.
await() # COMMAND...
{
    local n
    for ((n = 0; n < 300; n++)); do
        ! "$@" || return 0
        sleep 1
    done
    echo "awaited in vain: $*"
    journalctl -q -b -n 20 -o cat
    return 1
}

property() { systemctl show -P "$2" "$1"; }
pid_of() { property "$1" MainPID; }
active() { [ "$(systemctl is-active "$@" | sort -u)" = active ]; }
inactive() { [ "$(systemctl is-active "$@" | sort -u)" = inactive ]; }
another_pid() { active "$1" && [ "$(pid_of "$1")" != "$2" ] && [ "$(pid_of "$1")" != 0 ]; }
logged() { journalctl -q -u "$1" --after-cursor="$since" -o cat | grep -q -- "$2"; }
mark() { since=$(journalctl -q -n 1 --show-cursor -o cat | sed -n 's/^-- cursor: //p'); }

is_up() { await systemctl -q is-system-running; }
nothing_runs() { inactive "${units[@]}" fabrictrace.target && ! systemctl -q is-enabled "${units[@]}"; }

configure()
{
    cp /packages/lab/topology.yaml /etc/fabrictrace/topology.yaml
    cat >>/etc/fabrictrace/fabrictraced.yaml <<'YAML'
topology: /etc/fabrictrace/topology.yaml
window: 7s
sinks:
  - file:/var/lib/fabrictrace/records.ndjson
YAML
    printf 'interfaces: [lo]\ndaemon:\n  endpoint: 127.0.0.1:9477\n' >>/etc/fabrictrace/fabrictrace-agent.yaml
    fabrictraced --check && fabrictrace-agent --check
}

start()
{
    systemctl enable --now fabrictrace-switchpoll.socket && systemctl enable "${units[@]}" fabrictrace.target &&
        systemctl start fabrictrace.target && await active "${units[@]}"
}

# systemd's own figure of what a unit could do to the machine.
exposure_below() # UNIT MOST
{
    local figure
    figure=$(systemd-analyze security "$1" | sed -n 's/.*Overall exposure level for [^:]*: \([0-9.]*\).*/\1/p')
    echo "$1: $figure" | tee -a /tmp/exposure
    awk -v figure="$figure" -v most="$2" 'BEGIN { exit !(figure != "" && figure <= most) }'
}
exposed_little()
{
    exposure_below fabrictraced 1.5 && exposure_below fabrictrace-switchpoll 1.5 &&
        exposure_below fabrictrace-agent 2.5
}

bounded()
{
    local unit
    for unit in "${units[@]}"; do
        echo "$unit $(property "$unit" MemoryMax) $(property "$unit" WatchdogUSec) $(property "$unit" User)"
        [ "$(property "$unit" MemoryMax)" != infinity ] && [ "$(property "$unit" WatchdogUSec)" = 30s ] &&
            [ "$(ps -o user:32= -p "$(pid_of "$unit")")" = fabrictrace ] || return
    done
}

# The lab's datagrams come in by the socket that systemd made, and flows have paths.
send_samples()
{
    local datagram
    for datagram in /packages/datagrams/*; do
        cat "$datagram" >/dev/udp/127.0.0.1/6343
    done
}
flows_resolved()
{
    send_samples
    [ "$(fabrictrace paths --json | grep -o '"state": *"resolved"' | wc -l)" -ge 20 ]
}
records_written() { grep -q fabrictrace.path.v1 /var/lib/fabrictrace/records.ndjson; }
job_done() { await flows_resolved && await records_written; }
# The daemon lists this host as one that reports.
hosts_listed()
{
    printf 'GET /api/v1/hosts HTTP/1.0\r\nHost: 127.0.0.1:9478\r\n\r\n' >&"$1" && grep -q "\"$(uname -n)\"" <&"$1"
}
host_listed()
{
    local http rc=1
    exec {http}<>/dev/tcp/127.0.0.1/9478 || return
    ! hosts_listed "$http" || rc=0
    exec {http}>&-
    return $rc
}
agent_reports() { await host_listed; }

reload_good()
{
    local before
    before=$(pid_of fabrictraced)
    mark
    systemctl reload fabrictraced && await logged fabrictraced 'reloaded the topology' &&
        [ "$(pid_of fabrictraced)" = "$before" ]
}
reload_bad()
{
    local before rc=0
    before=$(pid_of fabrictraced)
    cp /etc/fabrictrace/fabrictraced.yaml /tmp/good.yaml
    echo 'windwo: 3s' >>/etc/fabrictrace/fabrictraced.yaml
    mark
    systemctl reload fabrictraced && await logged fabrictraced "windwo" &&
        [ "$(pid_of fabrictraced)" = "$before" ] && active fabrictraced || rc=1
    cp /tmp/good.yaml /etc/fabrictrace/fabrictraced.yaml
    return $rc
}

killed_comes_back()
{
    local unit before
    for unit in "${units[@]}"; do
        before=$(pid_of "$unit")
        kill -KILL "$before" && await another_pid "$unit" "$before" || return
    done
}
# What hangs is ended and started anew.
hanging_comes_back()
{
    local before
    before=$(pid_of fabrictraced)
    mark
    kill -STOP "$before" && await another_pid fabrictraced "$before" && await logged fabrictraced atchdog
}

explained() { journalctl -q -x -u "$1" | grep -q 'Documentation: man:fabrictrace'; }
no_errors()
{
    local said
    said=$(journalctl -q -p err -o cat _UID="$(id -u fabrictrace)")
    echo "$said"
    [ -z "$said" ] || ! grep -vE 'windwo|reload failed|sending data|lost' <<<"$said"
}

# Jobs in containers have the folder of the agent's sockets mounted.
keeps_folder()
{
    local before
    before=$(stat -c %i /run/fabrictrace) && systemctl stop fabrictrace-agent &&
        systemctl start fabrictrace-agent && await active fabrictrace-agent &&
        systemctl restart fabrictrace-agent && await active fabrictrace-agent &&
        [ "$(stat -c %i /run/fabrictrace)" = "$before" ]
}

upgrade()
{
    local unit before=() n=0
    for unit in "${units[@]}"; do
        before+=("$(pid_of "$unit")")
    done
    dpkg --force-confold -i /packages/next/*.deb || return
    for unit in "${units[@]}"; do
        await another_pid "$unit" "${before[n]}" || return
        n=$((n + 1))
    done
    [ "$(fabrictraced --print-config | sed -n 's/^window: *//p')" = 7s ] && await flows_resolved
}

stop() { systemctl stop fabrictrace.target && await inactive "${units[@]}"; }
# What stays installed keeps its spool and the meaning of its messages, and goes on.
purge_others()
{
    local state=/var/lib/fabrictrace
    mkdir -p $state/spool $state/agent.spool $state/switchpoll.spool &&
        systemctl start fabrictrace.target && await active "${units[@]}" &&
        dpkg -P fabrictrace-daemon fabrictrace-switchpoll fabrictrace-tools && inactive fabrictraced &&
        [ "$(echo $state/*)" = $state/agent.spool ] &&
        active fabrictrace-agent && explained fabrictrace-agent
}
purge()
{
    dpkg-query -W -f '${Package}\n' 'fabrictrace-*' | xargs dpkg -P || return
    systemctl daemon-reload
    [ "$(systemctl list-units --all --no-legend 'fabrictrace*' | grep -c running)" = 0 ] &&
        ! pgrep -f fabrictrace-agent && [ ! -e /etc/fabrictrace/fabrictraced.yaml ] &&
        [ ! -e /var/lib/fabrictrace ] && [ ! -e /run/fabrictrace ]
}

judge "systemd has booted, and nothing failed" is_up
judge "nothing runs before an operator says so" nothing_runs
judge "a configuration" configure
judge "fabrictrace.target starts all three, which say that they are ready" start
judge "systemd-analyze security" exposed_little
sed 's/^/     /' /tmp/exposure
judge "limit of memory, watchdog, user" bounded
judge "samples come in by systemd's socket, flows have paths, records are written" job_done
judge "the agent reports" agent_reports
judge "a reload keeps the process" reload_good
judge "a bad configuration is refused by name, the old one stays" reload_bad
judge "each that is killed comes back" killed_comes_back
judge "a hanging daemon is ended by the watchdog and comes back" hanging_comes_back
judge "flows have paths again" job_done
judge "the folder of the agent's sockets stays" keeps_folder
# shellcheck disable=SC1091 # beside us
. "$(dirname "$0")/credentials.sh"
judge "the journal names the manual" explained fabrictraced
judge "no errors in the journal but those that were provoked" no_errors
judge "an upgrade restarts what runs and keeps the configuration" upgrade
judge "fabrictrace.target stops all three" stop
judge "a purge of all but the agent leaves what that has written, and what its messages mean" purge_others
judge "a purge ends what runs and leaves nothing" purge
echo "$passed passed, $failed failed, 0 skipped"
[ $failed -eq 0 ]
