#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs a command in a throw-away Debian machine (QEMU without KVM): systemd as PID 1, cgroup v2 with
# every controller, as an unprivileged user in a service of that user's own systemd. The output and
# the exit status are the command's own.
#
#   run-in-machine.sh [options] -- COMMAND [ARGUMENT...]
#
#   --copy HOST:GUEST       copy a folder onto the guest's disk, owned by its user; may be repeated
#   --env NAME=VALUE        set a variable; may be repeated
#   --chdir FOLDER          of the guest, where the command starts  (the user's home)
#   --root-script FILE      the guest's root runs it before the command; /run/kernd-vm/root.log
#   --timeout SECONDS       life of the machine, boot included      (300; exit status 124)
#   --boot-timeout SECONDS  then boot again, once, with one CPU     (120)
#
# Exit status: the command's; 124: too late; 125: the machine could not be had.
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$here/common.sh"

fs=(-virtfs "local,path=$j,mount_tag=job,security_model=none,id=job,multidevs=remap,readonly=on")
for n in "${!copies[@]}"; do
  host=${copies[n]%%:*}
  fs+=(-virtfs "local,path=${host//,/,,},mount_tag=copy$n,security_model=none,id=copy$n,multidevs=remap,readonly=on")
  printf 'copy%s\t%s\n' "$n" "${copies[n]#*:}" >>"$j/copies"
done

for try in 1 2; do
  new_streams "try$try"
  port() { printf '%s' "file,id=$1,path=$job/$io/$1"; }
  timeout -k 5 "$timeout" qemu-system-x86_64 -accel tcg,thread=multi,tb-size=512 -cpu Nehalem,+rdrand \
    -M pc -m "$mem" -smp "$cpus" \
    -nodefaults -no-user-config -display none -no-reboot -nic none \
    -kernel "$cache/vmlinux" -initrd "$cache/initrd.gz" \
    -append "console=ttyS0 loglevel=4 panic=-1 mitigations=off audit=0 psi=1 no_timer_check systemd.show_status=0 systemd.log_level=notice" \
    -drive "file=$cache/rootfs.ext4,if=none,id=disk,format=raw,snapshot=on,cache=unsafe" \
    -device virtio-blk-pci,drive=disk -device virtio-serial-pci \
    -chardev "$(port out)" -device virtserialport,chardev=out,name=kernd.out \
    -chardev "$(port err)" -device virtserialport,chardev=err,name=kernd.err \
    -chardev "$(port control)" -device virtserialport,chardev=control,name=kernd.control \
    -serial "file:$job/$io/console" "${fs[@]}" >"$job/qemu.log" 2>&1 </dev/null &
  await "$!"
  if [ -n "$(said ready)" ] || [ "$rc" = 124 ] || [ "$try" = 2 ]; then break; fi
  echo "${0##*/}: the command had not begun after $boot_timeout s (status $rc): once more" >&2
  cpus=1
done
verdict
