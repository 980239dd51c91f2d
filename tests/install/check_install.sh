#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# What README says of Install, followed in a fresh copy of the sources; then ./check and ./demo in that
# same tree, whose build must stay as it was. Ends with "N passed, N failed, N skipped".
#
# usage: check_install.sh SRCDIR [ahead]     ahead: compiles the same, for the cache of the compiler, and no more
set -u
srcdir=$(cd "$1" && pwd)
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
tree=$work/fabrictrace
passed=0
failed=0

# Runs a command; a failure shows the end of what it said, set off.
judge() # WHAT COMMAND...
{
    local what=$1
    shift
    if "$@" >"$work/log" 2>&1; then
        passed=$((passed + 1))
        echo "ok   $what"
    else
        failed=$((failed + 1))
        echo "FAIL $what"
        tail -n 40 "$work/log" | sed 's/^/    | /'
    fi
}

# The commands of README's section, but that it is not this machine on which it is installed.
build_as_told()
{
    autoreconf -i && ./configure -q --prefix=/usr --sysconfdir=/etc --localstatedir=/var && make -s -j"$(nproc)"
}
install_as_told() { build_as_told && make -s install DESTDIR="$work/root"; }

told()
{
    local line
    for line in 'packaging/install-deps' \
        'autoreconf -i && ./configure --prefix=/usr --sysconfdir=/etc --localstatedir=/var && make' \
        'sudo make install && sudo systemd-sysusers && sudo systemd-tmpfiles --create && sudo systemctl daemon-reload'; do
        grep -qxF "$line" README.md || { echo "README.md does not say: $line" && return 1; }
    done
}

installed() { "$work/root/usr/sbin/fabrictraced" --version && "$work/root/usr/bin/fabrictrace" --version; }

# Configured as before, and the same programs.
state() { cat config.status daemon/fabrictraced agent/fabrictrace-agent cli/fabrictrace | sha256sum; }
untouched() { [ "$(state)" = "$before" ]; }

as_root()
{
    if [ "$(id -u)" -eq 0 ]; then
        "$@"
    else
        sudo -n "$@"
    fi
}

# What was built is no source.
sources_named() { packaging/list-sources | diff "$work/list" -; }

mkdir "$tree" && cd "$srcdir" && packaging/list-sources >"$work/list" &&
    xargs -d '\n' -a "$work/list" cp -p --parents -t "$tree" && cd "$tree" || exit 1
if [ "${2:-}" = ahead ]; then
    build_as_told
    exit
fi
judge "README tells these commands" told
judge "README's Install, to a folder" install_as_told
judge "the programs run from there" installed
before=$(state)
# First as from a tarball, then as in a clone.
judge "./check in the configured tree" ./check headers
if [ -e .gitignore ]; then
    git init -q && git add -A
    judge "git knows what is a source in the tree, and what was built" sources_named
    judge "./check in the configured tree, of git" ./check gpu # the shortest step
fi
judge "its build is as it was" untouched
judge "./demo in the configured tree" as_root ./demo --seconds 13 --window 5 --flows 8 --elephants 1
judge "its build is as it was after ./demo" untouched
echo "$passed passed, $failed failed, 0 skipped"
[ $failed -eq 0 ]
