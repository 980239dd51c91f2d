#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Builds the packages, twice the tarball, and has lintian and rpmlint read them; installs Debian's in a
# bare Debian that it makes, runs the programs there, upgrades and purges; then the same in a virtual
# machine with its own systemd. Those of rpm are installed, upgraded and erased by rpm; the role of Ansible
# installs an agent; the steps of the Containerfile are taken. Needs root.
# With SUITE=trixie, Debian's are built there, with what they say that they need and nothing else, and
# installed there; rpm's and the image, which is of a Debian 12, are left to the run without it.
# Ends with "N passed, N failed, N skipped".
#
# usage: check_packages.sh SRCDIR     the Debian is made in build/packages-test; AGAIN=1 installs the packages
#                                     that are in it
set -u
suite=${SUITE:-bookworm}
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

# What leads it to the network goes with it.
bare_debian()
{
    apt_sources "$suite" >"$work/root.sources" && make_debian "$suite" "$work/root" || return
    for file in /etc/apt/auth.conf.d /etc/apt/auth.conf /etc/resolv.conf /etc/ssl/certs/ca-certificates.crt; do
        [ ! -e "$file" ] || (cd / && cp -aL --parents "${file#/}" "$work/root") || return
    done
}
debian()
{
    [ -e "$work/root" ] || bare_debian || return
    mkdir -p "$work/root/packages/next" &&
        cp "$out"/next/*.deb "$work/root/packages/next/" &&
        cp "$here/in_debian.sh" "$work/root/packages/" &&
        cp -r "$srcdir/tests/golden/daemon/lab" "$work/root/packages/lab" || return
    for deb in "$out"/*.deb; do
        case $deb in *-dbgsym_*) continue ;; esac
        cp "$deb" "$work/root/packages/" || return
    done
}

enter() # COMMAND...
{
    local -a words
    mapfile -t words < <(env | grep -E '^[A-Za-z]+_(proxy|PROXY)=')
    unshare --mount --pid --fork --kill-child --uts --ipc --propagation private \
        "$here/../bare/enter.sh" "${root:-$work/root}" env -i HOME=/root LANG=C.UTF-8 \
        DEBIAN_FRONTEND=noninteractive PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
        "${words[@]}" "$@"
}

# Another release has compilers and libraries of its own: built in a copy of the bare one, so that
# nothing of that is there where they are installed.
# shellcheck disable=SC2016 # expanded there
build_there()
{
    local root=$work/builder
    bare_debian && cp -a "$work/root" "$root" && mkdir -p "$root/build/tree" &&
        tar -xf "$(tarball)" --strip-components 1 -C "$root/build/tree" && cp "$(tarball)" "$root/build/" &&
        mkdir "$root/build/tree/debian" && cp "$root/build/tree/packaging/debian/control.in" \
            "$root/build/tree/debian/control" && echo '3.0 (native)' >"$root/build/tree/debian/format" &&
        sed -i 's/@MAINTAINER@/nobody <nobody@localhost>/' "$root/build/tree/debian/control" &&
        enter sh -euc 'cd /build/tree && apt-get -q update &&
            apt-get -q -y --no-install-recommends install build-essential fakeroot &&
            apt-get -q -y --no-install-recommends build-dep . && rm -r debian &&
            env SOURCE_DATE_EPOCH="$1" packaging/build-packages --tarball /build/fabrictrace-*.tar.xz \
                --out /build/out deb' sh "$(stat -c %Y "$srcdir/NEWS")" &&
        mv "$root"/build/out/* "$out"
}
packages_of_debian()
{
    if [ "$suite" = "$machine" ]; then
        pack --tarball "$(tarball)" deb
    else
        build_there
    fi
}
in_debian() { enter /packages/in_debian.sh "$(dpkg-deb -f "$(echo "$out"/fabrictrace-daemon_*.deb)" Version)"; }

# What is in rpm's packages, packed once more by the same spec as another release, with another configuration.
next_rpms()
{
    local top=$work/rpm-next rpm
    rm -rf "$top" && mkdir -p "$top/SPECS" "$top/SOURCES" "$top/was" "$out/next-rpm" &&
        cp "$(tarball)" "$top/SOURCES/" || return
    for rpm in "$out"/*.rpm; do
        case $rpm in *.src.rpm | *-debug*) continue ;; esac
        rpm2cpio "$rpm" | (cd "$top/was" && cpio -idmu --quiet) || return
    done
    for file in "$top"/was/etc/fabrictrace/*.yaml; do
        echo '# next' >>"$file"
    done
    rpm2cpio "$out"/*.src.rpm | (cd "$top/SPECS" && cpio -id --quiet fabrictrace.spec) &&
        awk -v was="$top/was" 'NR == 1 { print "%global debug_package %{nil}" }
            /^Release:/ { $0 = "Release: 2" }
            /^%build$/ { print "%install\ncp -a " was "/. %{buildroot}/"; skip = 1 }
            /^# Nothing starts before/ { skip = 0 }
            !skip' "$top/SPECS/fabrictrace.spec" >"$top/SPECS/next.spec" &&
        rpmbuild -bb --nodeps --define "_topdir $top" "$top/SPECS/next.spec" &&
        find "$top/RPMS" -name '*.rpm' -exec mv -t "$out/next-rpm" {} +
}
# Roots of their own, as bare as the first, for those who install in other ways.
another_debian() # NAME
{
    rm -rf --one-file-system "${work:?}/$1" && cp -a "$work/root" "$work/$1"
}
rpm_debian()
{
    local to=$work/rpm/packages
    another_debian rpm && mkdir "$to/deb" && mv "$to"/*.deb "$to/deb/" && rm "$to"/next/* &&
        cp "$here/in_rpm.sh" "$to/" && cp "$out"/next-rpm/*.rpm "$to/next/" || return
    for file in "$out"/*.rpm; do
        case $file in *.src.rpm | *-debug*) continue ;; esac
        cp "$file" "$to/" || return
    done
}
in_rpm()
{
    local root=$work/rpm needed
    mapfile -t needed < <(for deb in "$root"/packages/deb/*.deb; do dpkg-deb -f "$deb" Depends; done |
        tr ',' '\n' | sed -E 's/^ *([a-z0-9.+-]+).*/\1/' | grep -vE '^(fabrictrace-.*)?$' | sort -u)
    enter /packages/in_rpm.sh "$(rpm -qp --qf '%{VERSION}' "$root"/packages/fabrictrace-daemon-*.rpm)" "${needed[@]}"
}

ansible_debian()
{
    another_debian ansible && cp "$here/in_ansible.sh" "$work/ansible/packages/" &&
        cp -r "$srcdir/packaging/ansible" "$work/ansible/packages/"
}
in_ansible() { root=$work/ansible enter /packages/in_ansible.sh; }

# What an instruction of the Containerfile says, on one line.
instruction() # NAME
{
    sed -n -e ':a' -e '/\\$/ { N; s/\\\n//; ba }' -e "s/^$1 //p" "$srcdir/packaging/container/Containerfile"
}
# The files that are copied, as the page has it from the folder of packages, and then what is run.
image()
{
    local root=$work/image from words word file
    from=$(instruction FROM)
    [[ $from = */debian:"$(cut -d. -f1 "$work/root/etc/debian_version")"-slim ]] || return
    another_debian image && rm -r "$root/packages" && read -ra words < <(instruction COPY) || return
    mkdir "$root${words[-1]}"
    for word in "${words[@]::${#words[@]}-1}"; do
        for file in "$out"/$word; do
            cp "$file" "$root${words[-1]}" || return
        done
    done
    enter sh -euc "$(instruction RUN)"
}
# As the image's user, each program that may be the argument of `run`.
image_runs()
{
    local root=$work/image user
    user=$(instruction USER)
    [ ! -e "$root/packages" ] && [ "$(instruction CMD)" = '["fabrictraced"]' ] || return
    # shellcheck disable=SC2016 # expanded there
    enter sh -euc 'for program in fabrictraced fabrictrace-switchpoll fabrictrace-agent fabrictrace; do
            setpriv --reuid="$1" --regid="$1" --clear-groups $program --version
        done
        setpriv --reuid="$1" --regid="$1" --clear-groups fabrictraced --check
        setpriv --reuid="$1" --regid="$1" --clear-groups touch /var/lib/fabrictrace/records' sh "$user"
}

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

# shellcheck disable=SC1091 # of the machine
machine=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
trap 'rm -rf --one-file-system "$work"/{root,builder,rpm,ansible,image} "$work/machine/root.ext4"' EXIT
if [ -z "${AGAIN:-}" ]; then
    rm -rf --one-file-system "$work" && mkdir -p "$out" "$tree" && cd "$srcdir" && copy || exit 1
    judge "the same tree gives the same tarball" same_bytes
    judge "packages of Debian ($suite)" packages_of_debian
    judge "lintian" lintian_says_nothing
    if [ -z "${SUITE:-}" ]; then
        judge "packages of rpm" pack --tarball "$(tarball)" rpm
        judge "rpmlint" rpmlint_says_nothing
        judge "rpm's of a next release" next_rpms
    fi
    judge "the same of a next version" next_version
fi
judge "a bare Debian" debian
if [ -x "$work/root/packages/in_debian.sh" ]; then
    if [ -z "${SUITE:-}" ]; then
        judge "one for rpm" rpm_debian
        in_rpm | tee "$work/log"
        count
        judge "the steps of the Containerfile" image
        judge "what is in the image runs" image_runs
    fi
    judge "one for Ansible" ansible_debian
    in_ansible | tee "$work/log"
    count
    in_debian | tee "$work/log"
    count
    judge "packages and systemd in it" with_systemd
    in_machine 2>&1 | tee "$work/log"
    count
fi
echo "$passed passed, $failed failed, 0 skipped"
[ $failed -eq 0 ]
