#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2016
# Builds, once, and keeps the guest of run-in-machine.sh and run-in-container.sh. As root on Debian;
# installs what it needs for that.
#
#   build-rootfs.sh [--force]     --force: anew, with today's packages
#
# Makes $KERND_VM_CACHE/{vmlinux,initrd.gz,rootfs.ext4} (/var/cache/kernd-vm). The kernel is
# linux-image-amd64: the cloud flavour has no 9p. It is kept unpacked, because an emulated CPU takes
# seconds to unpack it.
set -euo pipefail
export LC_ALL=C DEBIAN_FRONTEND=noninteractive
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cache=${KERND_VM_CACHE:-/var/cache/kernd-vm}
suite=bookworm
kernel=linux-image-amd64

# The last line is what kernd is linked with.
base=systemd,systemd-sysv,dbus,dbus-user-session,libpam-systemd,kmod,util-linux,procps
base+=,python3,bash,bubblewrap,busybox-static
base+=,libmicrohttpd12,libjson-c5,libsqlite3-0,libarchive13,libseccomp2,libsystemd0,libnettle8,libinih1,zlib1g

force=0
[ "${1-}" != --force ] || force=1
[ "$(id -u)" = 0 ] || { echo "build-rootfs: run as root" >&2; exit 1; }

# What the cached result depends on.  --force also picks up newer packages.
want=$( { cat "$here/build-rootfs.sh" "$here"/guest/*
          echo "$suite|$kernel"; } | sha256sum | cut -c1-64)

mkdir -p "$cache"
exec 9>"$cache/.lock"
flock 9
if [ "$force" = 0 ] && [ "$(cat "$cache/stamp" 2>/dev/null || true)" = "$want" ] &&
   [ -s "$cache/vmlinux" ] && [ -s "$cache/initrd.gz" ] && [ -s "$cache/rootfs.ext4" ]; then
  exit 0
fi

# --- host tools ---------------------------------------------------------
need=()
for p in qemu-system-x86:qemu-system-x86_64 mmdebstrap:mmdebstrap e2fsprogs:mke2fs \
         cpio:cpio xz-utils:xz lz4:lz4 zstd:zstd \
         python3:python3 systemd-container:systemd-nspawn; do
  command -v "${p#*:}" >/dev/null || need+=("${p%%:*}")
done
if [ ${#need[@]} -gt 0 ]; then
  apt-get -qq update
  apt-get -qq -o DPkg::Lock::Timeout=300 install -y --no-install-recommends "${need[@]}" >/dev/null
fi

work=$(mktemp -d "$cache/build.XXXXXX")
# What was mounted there, when it ends half-way, is the host's.
trap 'rm -rf --one-file-system -- "$work"' EXIT
root=$work/root

# --- root filesystem ----------------------------------------------------
t0=$SECONDS
mmdebstrap --quiet --mode=root --variant=minbase --format=directory \
  --include="$base" \
  --dpkgopt='path-exclude=/usr/share/doc/*' \
  --dpkgopt='path-exclude=/usr/share/man/*' \
  --dpkgopt='path-exclude=/usr/share/locale/*' \
  --customize-hook='k=$(chroot "$1" apt-cache depends '"$kernel"' | sed -n "s/.*Depends: \(linux-image-[0-9].*\)/\1/p" | head -n1) && chroot "$1" sh -c "cd /tmp && apt-get -qq download ${k:-'"$kernel"'} >/dev/null" && mv "$1"/tmp/linux-image-*.deb "$1"/kernel.deb' \
  "$suite" "$root"
mv "$root/kernel.deb" "$work/kernel.deb"
echo "build-rootfs: packages in place after $((SECONDS - t0)) s" >&2

# --- kernel: uncompressed vmlinux (PVH entry) and a subset of modules -----
dpkg-deb -x "$work/kernel.deb" "$work/k"
vmlinuz=$(echo "$work"/k/boot/vmlinuz-*)
kver=${vmlinuz##*/vmlinuz-}
python3 - "$vmlinuz" "$work/vmlinux" <<'PY'
import struct, subprocess, sys
d = open(sys.argv[1], 'rb').read()
assert d[0x202:0x206] == b'HdrS', d[0x202:0x206]
off = (d[0x1f1] + 1) * 512 + struct.unpack_from('<I', d, 0x248)[0]
length = struct.unpack_from('<I', d, 0x24c)[0]
p = d[off:off + length]
tools = {b'\xfd7zX': ['xz', '-dc', '--single-stream'], b'\x02!L\x18': ['lz4', '-dc'],
         b'\x28\xb5\x2f\xfd': ['zstd', '-dc'], b'\x1f\x8b\x08\x00': ['gzip', '-dc']}
# the last four bytes are the unpacked size, so the unpacker may grumble at the end
out = subprocess.run(tools[p[:4]], input=p[:-4], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
if out[:4] != b'\x7fELF':
    sys.exit('no ELF in the kernel image')
open(sys.argv[2], 'wb').write(out)
PY
src=$work/k/lib/modules/$kver
[ -d "$src" ] || src=$work/k/usr/lib/modules/$kver
dst=$root/usr/lib/modules/$kver
mkdir -p "$dst"
cp "$src"/modules.builtin* "$src"/modules.order "$dst"/
( cd "$src" && find kernel/fs/9p kernel/fs/netfs kernel/fs/fscache \
    kernel/fs/ext4 kernel/fs/jbd2 kernel/fs/mbcache.ko* \
    kernel/net/9p kernel/net/core kernel/net/packet kernel/net/unix \
    kernel/drivers/virtio kernel/drivers/block/virtio_blk.ko* \
    kernel/drivers/char/virtio_console.ko* kernel/drivers/char/hw_random/virtio-rng.ko* \
    kernel/crypto kernel/arch/x86/crypto kernel/lib \
    -name '*.ko*' 2>/dev/null; : ) > "$work/modules"
( cd "$src" && cpio -pdm --quiet "$dst" < "$work/modules" )
chroot "$root" depmod "$kver"

# --- guest configuration --------------------------------------------------
echo kernd-vm > "$root/etc/hostname"
printf '127.0.0.1 localhost kernd-vm\n::1 localhost\n' > "$root/etc/hosts"
: > "$root/etc/fstab"
: > "$root/etc/machine-id"; echo 0123456789abcdef0123456789abcdef > "$root/etc/machine-id"
chroot "$root" useradd -m -u 1000 -U -s /bin/bash dev
grep -q '^dev:' "$root/etc/subuid" || echo 'dev:100000:65536' >> "$root/etc/subuid"
grep -q '^dev:' "$root/etc/subgid" || echo 'dev:100000:65536' >> "$root/etc/subgid"
mkdir -p "$root/var/lib/systemd/linger"; : > "$root/var/lib/systemd/linger/dev"
install -m 755 "$here/guest/kernd-vm-run" "$root/usr/local/sbin/kernd-vm-run"
install -m 644 "$here/guest/kernd-vm.service" "$root/etc/systemd/system/kernd-vm.service"
mkdir -p "$root/etc/systemd/journald.conf.d" "$root/etc/systemd/system/multi-user.target.wants" \
         "$root/etc/systemd/system/user@.service.d"
printf '[Journal]\nStorage=volatile\n' > "$root/etc/systemd/journald.conf.d/kernd-vm.conf"
# Debian 12 delegates "pids memory cpu" to user managers by itself; say it, so that the tests do not depend on it.
printf '[Service]\nDelegate=pids memory cpu\n' > "$root/etc/systemd/system/user@.service.d/kernd-vm.conf"
ln -sf ../kernd-vm.service "$root/etc/systemd/system/multi-user.target.wants/kernd-vm.service"
ln -sf /usr/lib/systemd/system/multi-user.target "$root/etc/systemd/system/default.target"
for u in getty@tty1.service console-getty.service serial-getty@ttyS0.service getty.target \
         apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer e2scrub_all.timer fstrim.timer \
         systemd-timesyncd.service systemd-pstore.service e2scrub_reap.service systemd-random-seed.service \
         systemd-update-utmp.service systemd-update-utmp-runlevel.service systemd-machine-id-commit.service \
         sys-kernel-debug.mount sys-kernel-tracing.mount dev-hugepages.mount dev-mqueue.mount \
         systemd-journal-flush.service systemd-tmpfiles-clean.timer modprobe@.service remote-fs.target \
         systemd-binfmt.service proc-sys-fs-binfmt_misc.automount systemd-remount-fs.service systemd-modules-load.service \
         systemd-sysusers.service systemd-initctl.socket systemd-ask-password-console.path systemd-ask-password-wall.path \
         systemd-firstboot.service systemd-update-done.service ldconfig.service; do
  ln -sf /dev/null "$root/etc/systemd/system/$u"
done
rm -rf "$root"/var/cache/apt/* "$root"/var/lib/apt/lists/* "$root"/tmp/*

# --- initrd: busybox and the modules that reach the root disk -------------
ird=$work/initrd
mkdir -p "$ird"/{bin,dev,proc,sys,newroot,mod}
cp "$root/bin/busybox" "$ird/bin/busybox"
ln -s busybox "$ird/bin/sh"
mknod "$ird/dev/console" c 5 1
n=10
for m in virtio_pci virtio_blk ext4; do
  chroot "$root" modprobe -S "$kver" --show-depends "$m"
done | awk '$1 == "insmod" && !seen[$2]++ { print $2 }' > "$work/insmod"
while read -r f; do
  f=${f#/}; b=${f##*/}
  case $b in
    *.xz) xz -dc "$root/$f" > "$ird/mod/$n-${b%.xz}" ;;
    *.zst) zstd -qdc "$root/$f" > "$ird/mod/$n-${b%.zst}" ;;
    *) cp "$root/$f" "$ird/mod/$n-$b" ;;
  esac
  n=$((n + 1))
done < "$work/insmod"
install -m 755 "$here/guest/init" "$ird/init"
( cd "$ird" && find . | LC_ALL=C sort | cpio -o -H newc --quiet | gzip -1 ) > "$work/initrd.gz"

# --- disk -----------------------------------------------------------------
mke2fs -q -t ext4 -O ^has_journal -E lazy_itable_init=1,nodiscard -m 0 -L kernd-vm \
  -d "$root" "$work/rootfs.ext4" 2G >/dev/null

rm -f "$cache/stamp"
mv -f "$work/vmlinux" "$work/initrd.gz" "$work/rootfs.ext4" "$cache/"
( cd "$root" && chroot . dpkg-query -W -f '${Package} ${Version}\n' 2>/dev/null; echo "kernel $kver" ) > "$cache/packages.txt"
echo "$want" > "$cache/stamp"
echo "build-rootfs: built in $((SECONDS - t0)) s, kernel $kver," \
     "disk $(du -m "$cache/rootfs.ext4" | cut -f1) MiB used" >&2
