#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Builds the packages, twice the tarball, and has lintian and rpmlint read them; installs Debian's in a
# bare Debian that it makes, runs the programs there, upgrades and purges; then the same in a virtual
# machine with its own systemd. Needs root.
# Ends with "N passed, N failed, N skipped".
#
# usage: check_packages.sh SRCDIR     the Debian is made in build/packages-test
set -u
srcdir=$(cd "$1" && pwd)
here=$(cd "$(dirname "$0")" && pwd)
work=$srcdir/build/packages-test
tree=$work/sources
out=$work/out
passed=0
failed=0
# shellcheck disable=SC1091 # beside us
. "$here/../bare/apt.sh"

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

# What is packed is a copy, so that nobody changes it meanwhile.
copy() { packaging/list-sources | xargs -d '\n' cp -p --parents -t "$tree"; }
pack() { "$tree/packaging/build-packages" --out "$out" "$@"; }
tarball() { echo "$out"/fabrictrace-*.tar.xz; }

same_bytes()
{
    pack tarball && sum=$(sha256sum <"$(tarball)") && sleep 1 && pack tarball &&
        [ "$sum" = "$(sha256sum <"$(tarball)")" ]
}
# No bug of Debian's is closed by it, and nobody is its maintainer there.
lintian_says_nothing()
{
    local says
    # One that could not read them says nothing either, but by its status.
    says=$(lintian --allow-root --suppress-tags initial-upload-closes-no-bugs "$out"/*.changes)
    local status=$?
    [ -z "$says" ] || echo "$says"
    [ $status -eq 0 ] || echo "lintian ends with $status"
    [ -z "$says" ] && [ $status -eq 0 ]
}

rpmlint_says_nothing()
{
    local says
    says=$(rpmlint -c "$tree/packaging/rpm/rpmlint.toml" "$out"/*.rpm 2>&1) || :
    echo "$says"
    ! grep -q ': [EW]: ' <<<"$says" && grep -q ' 0 errors, 0 warnings' <<<"$says"
}

# The same packages of a later version, with another configuration as delivered.
next_version()
{
    local deb tree=$work/deb file
    rm -rf "$out/next" && mkdir "$out/next"
    for deb in "$out"/*.deb; do
        case $deb in *-dbgsym_*) continue ;; esac
        rm -rf "$tree"
        dpkg-deb -R "$deb" "$tree" && sed -i 's/^Version: .*/&.1/' "$tree/DEBIAN/control" || return
        for file in "$tree"/etc/fabrictrace/*.yaml; do
            [ ! -e "$file" ] || echo '# next' >>"$file"
        done
        dpkg-deb --root-owner-group -b "$tree" "$out/next" || return
    done
    rm -rf "$tree"
}

debian()
{
    apt_sources bookworm >"$work/root.sources" && make_debian bookworm "$work/root" &&
        mkdir -p "$work/root/packages/next" &&
        cp "$out"/next/*.deb "$work/root/packages/next/" &&
        cp "$here/in_debian.sh" "$work/root/packages/" &&
        cp -r "$srcdir/tests/golden/daemon/lab" "$work/root/packages/lab" || return
    for deb in "$out"/*.deb; do
        case $deb in *-dbgsym_*) continue ;; esac
        cp "$deb" "$work/root/packages/" || return
    done
    for file in /etc/apt/auth.conf.d /etc/apt/auth.conf /etc/resolv.conf /etc/ssl/certs/ca-certificates.crt; do
        [ ! -e "$file" ] || (cd / && cp -aL --parents "${file#/}" "$work/root") || return
    done
}

enter() # COMMAND...
{
    local -a words
    mapfile -t words < <(env | grep -E '^[A-Za-z]+_(proxy|PROXY)=')
    unshare --mount --pid --fork --kill-child --uts --ipc --propagation private \
        "$here/../bare/enter.sh" "$work/root" env -i HOME=/root LANG=C.UTF-8 DEBIAN_FRONTEND=noninteractive \
        PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "${words[@]}" "$@"
}
in_debian() { enter /packages/in_debian.sh "$(dpkg-deb -f "$(echo "$out"/fabrictrace-daemon_*.deb)" Version)"; }

with_systemd()
{
    enter sh -c 'apt-get -q -y --no-install-recommends install systemd-sysv dbus kmod procps openssl snmpd \
            /packages/*.deb && systemctl disable -q snmpd &&
        apt-get clean'
}
in_machine() { "$here/machine.py" "$work/root" "$work/machine"; }

# Adds what the last run counted.
count()
{
    local counts
    counts=$(sed -n 's/^\([0-9]*\) passed, \([0-9]*\) failed, 0 skipped$/\1 \2/p' "$work/log" | tail -n 1)
    [ -n "$counts" ] || counts="0 1"
    passed=$((passed + ${counts% *}))
    failed=$((failed + ${counts#* }))
}

rm -rf --one-file-system "$work" && mkdir -p "$out" "$tree" && cd "$srcdir" && copy || exit 1
trap 'rm -rf --one-file-system "$work/root" "$work/machine/root.ext4"' EXIT
judge "the same tree gives the same tarball" same_bytes
judge "packages of Debian" pack --tarball "$(tarball)" deb
judge "lintian" lintian_says_nothing
judge "packages of rpm" pack --tarball "$(tarball)" rpm
judge "rpmlint" rpmlint_says_nothing
judge "the same of a next version" next_version
judge "a bare Debian" debian
if [ -x "$work/root/packages/in_debian.sh" ]; then
    in_debian | tee "$work/log"
    count
    judge "packages and systemd in it" with_systemd
    in_machine 2>&1 | tee "$work/log"
    count
fi
echo "$passed passed, $failed failed, 0 skipped"
[ $failed -eq 0 ]
