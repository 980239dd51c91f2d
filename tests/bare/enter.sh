#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Runs in mount and process namespaces of its own: makes a folder the root, with what every Debian has
# mounted, and runs a command there.
#
# usage: enter.sh ROOT COMMAND...
set -euo pipefail
root=$1
shift

# A mount of its own, for `ip netns exec` changes the mounts of "/".
mount --bind "$root" "$root"
cd "$root"
mkdir -p .before
mount -t proc proc proc
mount --rbind /sys sys
mount --rbind /dev dev
mount -t tmpfs tmpfs dev/shm
mount -t tmpfs -o mode=755 tmpfs run
mkdir -p run/lock
hostname bare
pivot_root . .before
exec chroot . /bin/sh -c 'umount -l /.before && exec "$@"' sh "$@"
