#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Makes a small virtual machine from Debian's own kernel and packages: downloads them with apt,
# installs nothing, needs no root. The kernel is Debian's generic one (the cloud kernel has no
# rdma_rxe).
#
# usage: build-guest.sh FOLDER    makes FOLDER/{vmlinux,initrd,root.ext4}; nothing when they are new
set -euo pipefail
umask 022
here=$(cd "$(dirname "$0")" && pwd)
work=$1
mkdir -p "$work"
cd "$work"

recipe=$(cat "$here"/{build-guest.sh,guest-packages,guest-init,guest-stage2} | sha256sum | cut -d' ' -f1)
if [ "$(cat recipe 2>/dev/null)" = "$recipe" ] && [ -s vmlinux ] && [ -s initrd ] && [ -s root.ext4 ]; then
    exit 0
fi
rm -rf recipe root initrd.d kernel

# In the guest before and after its root is there.
boot_modules=(virtio_pci virtio_blk ext4 crc32c_generic)
root_modules=(virtio_rng virtio_net 9p 9pnet_virtio veth rdma_rxe crc32_generic ib_uverbs rdma_ucm)
root_modules+=(af_packet sch_netem sch_tbf)
# Aggregates, and what gives packets to an exporter.
root_modules+=(bonding nf_tables nft_log nft_numgen nfnetlink_log openvswitch)

download()
{
    local kernel
    mkdir -p apt/lists/partial apt/archives/partial debs
    : >apt/status
    kernel=$(apt-cache depends linux-image-amd64 | awk '/Depends: linux-image/ { print $2; exit }')
    rm -f debs/*.deb apt/archives/*.deb
    (cd debs && apt-get -q download "$kernel")
    # An empty status file makes apt fetch everything that the packages depend on.
    # shellcheck disable=SC2046 # names are words
    apt-get -q -y -o Dir::State::status="$work/apt/status" -o Dir::Cache::archives="$work/apt/archives" \
        -o APT::Install-Recommends=false -o APT::Sandbox::User="$(id -un)" -o Debug::NoLocking=true \
        --download-only install $(grep -v "^#" "$here/guest-packages")
}

# vmlinuz is a loader around a compressed ELF file (Linux Documentation/x86/boot.rst), of which QEMU
# boots the inside faster.
unpack_kernel()
{
    dpkg-deb -x debs/linux-image-*.deb kernel
    version=$(ls kernel/lib/modules)
    python3 - "kernel/boot/vmlinuz-$version" vmlinux <<'PYTHON'
import lzma, struct, subprocess, sys, zlib
image = open(sys.argv[1], "rb").read()
start, length = struct.unpack_from("<II", image, 0x248)
at = ((image[0x1F1] or 4) + 1) * 512 + start
payload = image[at:at + length - 4]
if payload.startswith(b"\xfd7zXZ"):
    kernel = lzma.LZMADecompressor().decompress(payload)
elif payload.startswith(b"\x1f\x8b"):
    kernel = zlib.decompress(payload, 31)
else:
    kernel = subprocess.run(["zstd", "-dcq"], input=payload, stdout=subprocess.PIPE, check=True).stdout
assert kernel[:4] == b"\x7fELF"
open(sys.argv[2], "wb").write(kernel)
PYTHON
}

unpack_root()
{
    local deb folder
    mkdir -p root/usr/{bin,sbin,lib,lib64}
    for folder in bin sbin lib lib64; do
        ln -s usr/$folder root/$folder
    done
    for deb in apt/archives/*.deb; do
        dpkg-deb --fsys-tarfile "$deb" | tar -x -C root --keep-directory-symlink --no-same-owner \
            --exclude='./usr/share/doc*' --exclude='./usr/share/man*' --exclude='./usr/share/locale*' \
            --exclude='./usr/share/info*' --exclude='./usr/share/perl*' --exclude='./usr/lib/*/perl*' \
            --exclude='./usr/*/python3*'
    done
    # Each program that uses verbs loads every driver named here.
    find root/etc/libibverbs.d -name '*.driver' ! -name 'rxe.driver' -delete
    ln -sf bash root/usr/bin/sh
    ln -sf gawk root/usr/bin/awk
    ln -s ../lib/openvswitch-switch/ovs-vswitchd root/usr/sbin/ovs-vswitchd
    mkdir -p root/{proc,sys,dev,run,tmp,root,mnt/host,var/run,var/log}
    printf 'root:x:0:0:root:/root:/bin/bash\nnobody:x:65534:65534::/:/bin/false\n' >root/etc/passwd
    printf '_lldpd:x:101:101::/run/lldpd:/bin/false\n' >>root/etc/passwd
    printf 'root:x:0:\nnogroup:x:65534:\n_lldpd:x:101:\n' >root/etc/group
    printf '127.0.0.1 localhost\n' >root/etc/hosts
    /sbin/ldconfig -r root
    install -m 755 "$here/guest-stage2" root/stage2
}

# Paths of a module and of those it needs, in the order of loading.
module() { /sbin/modprobe -d "$work/kernel" -S "$version" --show-depends -q "$1" | awk '$1 == "insmod" { print $2 }'; }

pack_modules()
{
    local name path base
    /sbin/depmod -b kernel "$version"
    for name in "${root_modules[@]}"; do
        module "$name"
    done | sort -u | while read -r path; do
        base=usr/lib/modules/$version/${path#*"/lib/modules/$version/"}
        mkdir -p "root/${base%/*}"
        cp "$path" "root/$base"
    done
    cp kernel/lib/modules/"$version"/modules.{builtin,builtin.modinfo,order} "root/usr/lib/modules/$version/"
    /sbin/depmod -b root "$version"
    mkdir -p initrd.d/{bin,m,proc,sys,dev,n}
    cp root/bin/busybox initrd.d/bin/
    for name in "${boot_modules[@]}"; do
        module "$name"
    done | awk '!seen[$0]++' | while read -r path; do
        base=${path##*/}
        case $base in
        *.xz) base=${base%.xz} && xz -dc "$path" >"initrd.d/m/$base" ;;
        *) cp "$path" "initrd.d/m/$base" ;;
        esac
        echo "$base" >>initrd.d/m/order
    done
    install -m 755 "$here/guest-init" initrd.d/init
    (cd initrd.d && find . | ./bin/busybox cpio -o -H newc 2>/dev/null) >initrd
}

make_image()
{
    local mib
    mib=$(du -sm root | cut -f1)
    rm -f root.ext4
    truncate -s $((mib * 13 / 10 + 40))M root.ext4
    /sbin/mkfs.ext4 -q -O ^has_journal -d root root.ext4
}

download
unpack_kernel
unpack_root
pack_modules
make_image
rm -rf root initrd.d kernel apt debs
echo "$recipe" >recipe
