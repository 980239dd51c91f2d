#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Makes a bare Debian in a folder (12; SUITE=trixie: 13), as small as mmdebstrap makes one, puts a clean
# copy of the sources there and runs ./check in it: what packaging/install-deps lacks shows there. It
# has processes, mounts and a host name of its own, and this machine's kernel and way to the network.
# Needs root.
# Packages come from where this machine's apt gets Debian's; the configuration of apt's transports, of
# proxies, of pip, Maven and npm, and further certificates go with it.
# What ./check prints there is printed here; its logs are left in build/check-logs/bare.
#
# usage: run.sh SRCDIR [STEP...]     KEEP=1 leaves the folder, build/bare/root; with AGAIN=1 the next
#                                    run goes on in it, with the sources as they are by then
set -euo pipefail
srcdir=$(cd "$1" && pwd)
shift
here=$(cd "$(dirname "$0")" && pwd)
root=$srcdir/build/bare/root
logs=$srcdir/build/check-logs/bare
inside=/root/fabrictrace
suite=${SUITE:-bookworm}

# shellcheck disable=SC1091 # beside us
. "$here/apt.sh"

say() { echo "bare: $*"; }

# A file or folder of this machine, to the same place there.
take() # PATH...
{
    local path
    for path in "$@"; do
        [ ! -e "$path" ] || (cd / && cp -aL --parents "${path#/}" "$root")
    done
}

fill_root()
{
    local sources
    take /etc/apt/auth.conf.d /etc/apt/auth.conf /etc/resolv.conf /etc/pip.conf /usr/local/share/ca-certificates
    # Its own will replace it once ca-certificates is installed, and hold the above too.
    take /etc/ssl/certs/ca-certificates.crt
    take "$HOME/.m2/settings.xml" "$HOME/.config/pip/pip.conf" "$HOME/.npmrc" /etc/npmrc
    echo '127.0.0.1 localhost bare' >"$root/etc/hosts"
    mkdir -p "$root$inside"
    if [ -e "$srcdir/.git" ] && [ ! -e "$root$inside/.git" ]; then
        # A clean clone with what is not yet committed: it is that which is to be judged.
        sources=$(git -c safe.directory="$srcdir" -C "$srcdir" rev-parse HEAD)
        git -c safe.directory='*' clone -q --no-hardlinks "$srcdir" "$root$inside"
        git -C "$root$inside" checkout -q "$sources"
        git -C "$root$inside" remote remove origin
    fi
    (cd "$srcdir" && packaging/list-sources | xargs -d '\n' cp -p --parents -t "$root$inside")
}

# What of this environment leads to the network, and what ./check is told.
environment()
{
    env | grep -E '^([A-Za-z]+_(proxy|PROXY)|[A-Z_]*(CA_BUNDLE|CERT_FILE|CAINFO)|PIP_[A-Z_]*|MAVEN_[A-Z_]*|JAVA_TOOL_OPTIONS|NODE_EXTRA_CA_CERTS|npm_config_[a-z_]*|JOBS|FUZZ_SECONDS|FABRIC_ROUNDS)=' ||
        :
}

# All mounts go with the namespace.
run_there()
{
    local -a words
    mapfile -t words < <(environment)
    unshare --mount --pid --fork --kill-child --uts --ipc --propagation private \
        "$here/enter.sh" "$root" env -i HOME=/root LANG=C.UTF-8 TERM="${TERM:-dumb}" \
        PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "${words[@]}" \
        "$inside/check" "$@" &
    there=$!
    wait $there || return
    there=
}

# unshare ignores SIGTERM; with it all ends that runs there.
# shellcheck disable=SC2317 # by trap
clean_up()
{
    [ -z "$there" ] || kill -KILL "$there" 2>/dev/null || :
    wait
    [ -n "${KEEP:-}" ] || rm -rf --one-file-system "$root"
}

there=
mkdir -p "$root"
exec {lock}>"${root%/*}/lock"
if ! flock -n "$lock"; then
    say "FAIL another ./check bare runs in $root"
    exit 1
fi
trap clean_up EXIT
trap 'exit 143' INT TERM HUP
if [ -z "${AGAIN:-}" ] || [ ! -e "$root$inside" ]; then
    apt_sources "$suite" >"$root.sources"
    say "packages from $(awk '{ print $2 }' "$root.sources" | sort -u | tr '\n' ' ')"
    make_debian "$suite" "$root"
fi
fill_root
say "a bare Debian $(<"$root/etc/debian_version"), $(find "$root/var/lib/dpkg/info" -name '*.list' | wc -l) packages"
rc=0
run_there "$@" || rc=$?
rm -rf "$logs"
[ ! -e "$root$inside/build/check-logs" ] || cp -r "$root$inside/build/check-logs" "$logs"
say "logs of that: $logs"
exit $rc
