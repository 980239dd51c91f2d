#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# GPU hosts are arm64, too (Grace). Makes a Debian 12 with the compiler that makes arm64 code and arm64
# libraries beside its own, compiles everything for arm64 there, warnings are errors, and runs the C
# unit tests, the NCCL plugin's harness and some golden tests under qemu's user emulation. Needs root.
#
# What this cannot show: qemu on x86 does not reorder memory accesses as an arm64 processor may, so
# that the compiler's reorderings show and the processor's do not; for those, fences.py looks at what
# the compiler made.
#
# usage: run.sh SRCDIR    KEEP=1 leaves the folder, build/arm64/root; with AGAIN=1 the next run goes on
#                         in it, with the sources as they are by then
set -euo pipefail
srcdir=$(cd "$1" && pwd)
here=$(cd "$(dirname "$0")" && pwd)
root=$srcdir/build/arm64/root
inside=/root/fabrictrace

# shellcheck disable=SC1091 # a file of this tree
. "$here/../bare/apt.sh"

# Those of the machine that compiles, then those that are compiled against.
tools=(gcc-aarch64-linux-gnu ccache make pkg-config autoconf automake protobuf-c-compiler python3
    python3-yaml qemu-user-static procps binutils-aarch64-linux-gnu openssl zstd xz-utils)
libraries=(libc6-dev check libevent-dev libssl-dev libprotobuf-c-dev libyaml-dev libjansson-dev
    libxxhash-dev libpcap-dev libmnl-dev libncurses-dev librdkafka-dev libsnmp-dev libsystemd-dev
    libibverbs-dev zlib1g-dev libzstd-dev libcurl4-openssl-dev)

say() { echo "arm64: $*"; }

make_root()
{
    local include options=()
    include=$(printf '%s,' "${tools[@]}" "${libraries[@]/%/:arm64}")
    rm -rf --one-file-system "$root"
    mkdir -p "${root%/*}"
    apt_settings >"$root.apt" || : # may have none
    [ ! -s "$root.apt" ] || options=("--aptopt=$root.apt")
    apt_sources bookworm >"$root.sources"
    mmdebstrap --quiet --mode=root --variant=minbase --architectures=amd64,arm64 "${options[@]}" \
        --include="${include%,}" bookworm "$root" - <"$root.sources"
}

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
    say "FAIL another ./check arm64 runs in $root"
    exit 1
fi
trap clean_up EXIT
trap 'exit 143' INT TERM HUP
if [ -z "${AGAIN:-}" ] || [ ! -e "$root$inside" ]; then
    make_root
fi
mkdir -p "$root$inside" "$root/ccache"
echo '127.0.0.1 localhost bare' >"$root/etc/hosts"
(cd "$srcdir" && packaging/list-sources | xargs -d '\n' cp -pu --parents -t "$root$inside")

# All mounts go with the namespaces, whose only interface is up. What was compiled is kept outside.
# shellcheck disable=SC2016 # of the shell that mounts
unshare --mount --pid --fork --kill-child --uts --ipc --net --propagation private \
    /bin/sh -c 'ip link set lo up && { [ -z "$1" ] || { mkdir -p "$1" && mount --bind "$1" "$2/ccache"; }; } &&
        shift 2 && exec "$@"' \
    sh "${CCACHE_DIR:-}" "$root" "$here/../bare/enter.sh" "$root" env -i HOME=/root LANG=C.UTF-8 TZ=UTC \
    CCACHE_DIR=/ccache CCACHE_BASEDIR=/root CCACHE_NOHASHDIR=1 JOBS="${JOBS:-$(nproc)}" \
    FT_SLOWNESS="${FT_SLOWNESS:-}" PATH=/usr/lib/ccache:/usr/sbin:/usr/bin:/sbin:/bin \
    "$inside/tests/arm64/inside.sh" "$inside" &
there=$!
rc=0
wait $there || rc=$?
there=
exit $rc
