#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# In a bare Debian, whose libraries they were built with: installs rpm's packages of /packages by rpm, runs
# the programs, upgrades to those of /packages/next, erases. What they depend on has Debian's names here and
# is given as words. Ends with "N passed, N failed, N skipped". For check_packages.sh.
#
# usage: in_rpm.sh VERSION PACKAGE...
set -u
export DEBIAN_FRONTEND=noninteractive TZ=UTC
version=$1
shift
needed=("$@")
daemons=(fabrictrace-daemon fabrictrace-switchpoll fabrictrace-agent)
state=/var/lib/fabrictrace
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

# A scriptlet that fails is a warning to rpm.
by_rpm() # WORD...
{
    local says
    says=$(rpm --force-debian --nodeps "$@" 2>&1)
    local rc=$?
    echo "$says"
    [ $rc -eq 0 ] && ! grep -iE 'scriptlet|failed' <<<"$says"
}
names() { rpm -qa --qf '%{NAME}\n' 'fabrictrace*' | sort; }
set_up()
{
    apt-get -q update && apt-get -q -y --no-install-recommends install rpm systemd "${needed[@]}" &&
        ! getent passwd fabrictrace
}
installed()
{
    by_rpm -i /packages/*.rpm && [ "$(names | wc -l)" -eq "$(find /packages -maxdepth 1 -name '*.rpm' | wc -l)" ]
}
version_is() { [ "$(rpm -qa --qf '%{VERSION}-%{RELEASE}\n' 'fabrictrace*' | sort -u)" = "$1" ]; }
# Owner, mode, size and sum of each file are those of the package.
verified() { mapfile -t all < <(names) && rpm -V --nodeps "${all[@]}"; }
user_there() { [ "$(id -un fabrictrace)" = fabrictrace ] && [ "$(stat -c %U $state)" = fabrictrace ]; }
not_enabled() { [ -z "$(find /etc/systemd/system -name '*fabrictrace*')" ]; }
# Each daemon's package has its unit, whose program is in the same package, and what its messages mean.
units()
{
    local package unit program
    for package in "${daemons[@]}"; do
        unit=$(rpm -ql "$package" | grep '\.service$') || return
        program=$(sed -n 's/^ExecStart=\([^ ]*\).*/\1/p' "$unit")
        rpm -ql "$package" | grep -x -- "$program" && [ -x "$program" ] || return
        rpm -ql "$package" | grep '^/usr/lib/systemd/catalog/.*\.catalog$' || return
    done
}
check() { "$@" --check; }
analyze()
{
    cd /packages/lab && fabrictrace analyze sflow.pcap --topology topology.yaml >/tmp/text && diff /tmp/text analyze.txt
}
loads()
{
    local file files
    mapfile -t files < <(rpm -ql fabrictrace-nccl-plugin fabrictrace-verbs | grep '\.so$')
    [ "${#files[@]}" -ge 2 ] || return
    for file in "${files[@]}"; do
        ! ldd -r "$file" | grep -E 'not found|undefined' || return
    done
}
# Both kinds of package hold the same files, where each kind's distributions have them.
same_as_debian()
{
    local deb
    for deb in /packages/deb/*.deb; do dpkg-deb -c "$deb"; done | awk '$1 !~ /^d/ { print $6 }' | sed -E 's,^\./,/,' |
        plain >/tmp/of-deb
    names | xargs rpm -ql | while read -r file; do [ -d "$file" ] || echo "$file"; done | plain >/tmp/of-rpm
    [ "$(wc -l </tmp/of-rpm)" -gt 50 ] && diff /tmp/of-deb /tmp/of-rpm
}
plain()
{
    sed -E -e '/^\/usr\/share\/(doc|licenses|lintian)\//d' -e '/\/\.build-id\//d' -e 's,^/lib/,/usr/lib/,' \
        -e 's,^/usr/lib64/,/usr/lib/,' -e 's,^/usr/lib/[a-z0-9_]+-linux-gnu/,/usr/lib/,' \
        -e 's,/zsh/(vendor-completions|site-functions)/,/zsh/,' -e '/\/man\//s/\.gz$//' | sort -u
}

edit() { echo 'window: 7s' >>/etc/fabrictrace/fabrictraced.yaml; }
upgrade() { by_rpm -U /packages/next/*.rpm; }
# %config(noreplace): what an operator wrote stays, the new one lies beside it.
kept()
{
    [ "$(tail -n 1 /etc/fabrictrace/fabrictraced.yaml)" = 'window: 7s' ] &&
        fabrictraced --print-config | grep -Eq '^window: *7s' &&
        grep -q '# next' /etc/fabrictrace/fabrictraced.yaml.rpmnew &&
        grep -q '# next' /etc/fabrictrace/fabrictrace-agent.yaml &&
        [ ! -e /etc/fabrictrace/fabrictrace-agent.yaml.rpmnew ]
}
wrote() { mkdir -p $state/agent.spool && touch $state/records.ndjson $state/agent.spool/1; }
# What an operator wrote stays under another name, and what the programs wrote.
erased()
{
    local all left
    rm -f /etc/fabrictrace/*.rpmnew
    mapfile -t all < <(names)
    by_rpm -e "${all[@]}" && [ -z "$(names)" ] || return
    left=$(find / -xdev \( -path /packages -o -path /proc -o -path /var/log \) -prune -o \
        -iname '*fabrictrace*' -print | sort)
    [ "$left" = "$(printf '%s\n' /etc/fabrictrace /etc/fabrictrace/fabrictraced.yaml.rpmsave $state)" ] || {
        echo "left: $left"
        return 1
    }
    [ "$(find $state -type f | sort | tr '\n' ' ')" = "$state/agent.spool/1 $state/records.ndjson " ]
}
# Without anything of theirs the folder goes, too.
again_and_away()
{
    local all
    rm -r $state/agent.spool $state/records.ndjson /etc/fabrictrace && by_rpm -i /packages/*.rpm &&
        [ -d $state ] || return
    mapfile -t all < <(names)
    by_rpm -e "${all[@]}" && [ ! -e $state ] && [ ! -e /etc/fabrictrace ]
}

judge "a Debian with rpm" set_up
judge "rpm: all packages are installed" installed
judge "rpm: they are of one version" version_is "$version-1"
judge "rpm: files are as packed" verified
judge "rpm: the user is there, and owns the folder of records" user_there
judge "rpm: no unit is enabled before an operator says so" not_enabled
judge "rpm: each daemon has its unit, and what its messages mean" units
judge "rpm: fabrictraced --check" check fabrictraced
judge "rpm: fabrictrace-switchpoll --check" check fabrictrace-switchpoll
judge "rpm: fabrictrace-agent --check" check fabrictrace-agent --set daemon.endpoint=127.0.0.1:9477
judge "rpm: fabrictrace analyze" analyze
judge "rpm: plugin and wrap find their symbols" loads
judge "rpm: the same files as in Debian's packages" same_as_debian
edit
judge "rpm: an upgrade" upgrade
judge "rpm: all are of the next version" version_is "$version-2"
judge "rpm: a changed configuration is kept, an unchanged one is the new one" kept
wrote
judge "rpm: erased, what was written stays" erased
judge "rpm: installed and erased once more, nothing is left" again_and_away
echo "$passed passed, $failed failed, 0 skipped"
[ $failed -eq 0 ]
