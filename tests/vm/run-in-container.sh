#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# As run-in-machine.sh, with the same options, but in a container on the host's own kernel
# (systemd-nspawn --boot in a private mount namespace): seconds instead of tens of seconds, user
# services, socket activation and delegated cgroups are real. Controllers that the host has bound to
# cgroup v1 are missing, and with them the caps.
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$here/common.sh"

new_streams try1
chown 1000:1000 "$job/$io/out" "$job/$io/err"
binds=("--bind-ro=$j:/run/kernd-vm/job" "--bind=$job/$io:/run/kernd-vm/io")
for n in "${!copies[@]}"; do
  host=${copies[n]%%:*}
  binds+=("--bind-ro=${host//:/\\:}:/run/kernd-vm/copy$n")
  printf 'copy%s\t%s\n' "$n" "${copies[n]#*:}" >>"$j/copies"
done
mkdir "$job/mnt"
name=${job##*/}
name=${name//[^A-Za-z0-9]/-}
# Without SYSTEMD_SECCOMP=0 nspawn's own filter would hide Landlock from what runs inside.
# shellcheck disable=SC2016
timeout -k 10 "$timeout" unshare --mount --propagation private bash -c '
  set -e
  mnt=$1 cache=$2 name=$3 console=$4; shift 4
  mount -t cgroup2 cgroup2 /sys/fs/cgroup
  mount -t tmpfs -o mode=755 tmpfs "$mnt"
  mkdir "$mnt/base" "$mnt/up" "$mnt/work" "$mnt/root"
  mount -o loop,ro "$cache/rootfs.ext4" "$mnt/base"
  mount -t overlay -o "lowerdir=$mnt/base,upperdir=$mnt/up,workdir=$mnt/work" overlay "$mnt/root"
  mkdir -p "/sys/fs/cgroup/$name"
  for c in memory pids cpu; do echo "+$c" >/sys/fs/cgroup/cgroup.subtree_control; done 2>/dev/null || true
  set +e
  (
    echo "$BASHPID" >"/sys/fs/cgroup/$name/cgroup.procs"
    SYSTEMD_SECCOMP=0 exec systemd-nspawn --quiet --boot --register=no --keep-unit \
      --private-network --console=pipe --link-journal=no --machine="$name" --hostname=kernd-vm \
      --directory="$mnt/root" "$@" systemd.show_status=0
  ) >"$console" 2>&1 </dev/null &
  p=$!
  trap "kill $p" TERM
  wait $p; rc=$?
  while kill -0 $p 2>/dev/null; do wait $p; rc=$?; done
  for _ in 1 2 3 4 5 6 7 8 9 10; do
    find "/sys/fs/cgroup/$name" -depth -type d -exec rmdir {} + 2>/dev/null && break
    sleep 0.2
  done
  exit $rc' kernd-vm "$job/mnt" "$cache" "$name" "$job/$io/console" "${binds[@]}" &
await "$!"
rmdir "/run/systemd/nspawn/propagate/$name" 2>/dev/null || true
verdict
