# shellcheck shell=bash disable=SC2034,SC2154
# SPDX-License-Identifier: Apache-2.0
# Sourced by run-in-machine.sh and run-in-container.sh, which set $here: options, the job's folder,
# streams, the verdict.
set -euo pipefail
die() { echo "${0##*/}: $*" >&2; exit 125; }
timeout=300 boot_timeout=120 mem=1536 cpus=2 copies=() envs=() pids=()
while [ $# -gt 0 ]; do
  case $1 in
    --) shift; break ;;
    --help) sed -n '3,/^[^#]/{/^#/s/^# \{0,1\}//p}' "$0"; exit 0 ;;
    --*) [ $# -ge 2 ] || die "$1 needs a value" ;;
    *) break ;;
  esac
  case $1 in
    --copy) copies+=("$2") ;;
    --env) envs+=("$2") ;;
    --chdir) cwd=$2 ;;
    --root-script) root_script=$2 ;;
    --timeout) timeout=$2 ;;
    --boot-timeout) boot_timeout=$2 ;;
    *) die "unknown option $1" ;;
  esac
  shift 2
done
[ $# -gt 0 ] || die "no command"
[ "$(id -u)" = 0 ] || die "run as root"
cache=${KERND_VM_CACHE:-/var/cache/kernd-vm}
"$here/build-rootfs.sh" || die "no root filesystem"

job=$(mktemp -d "${TMPDIR:-/tmp}/kernd-job.XXXXXX")
cleanup() {
  local p
  for p in "${pids[@]}"; do kill "$p" 2>/dev/null || true; done
  rm -rf -- "$job"
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# What the guest reads: its command, where to run it, which folders to copy where.
j=$job/j
mkdir "$j"
chmod 755 "$job" "$j"
{
  for e in "${envs[@]}"; do printf 'export %q\n' "$e"; done
  printf 'exec'
  printf ' %q' "$@"
  echo
} >"$j/cmd"
echo "${cwd-}" >"$j/cwd"
[ -z "${root_script-}" ] || cp "$root_script" "$j/root"
: >"$j/copies"

# The last thing that the guest said of this kind.
said() { sed -n "s/^$1 //p" "$job/$io/control" 2>/dev/null | tail -n 1; }

# new_streams NAME: those of one attempt; FIFOs for the command's output, files for the rest.
new_streams() {
  io=$1
  mkdir "$job/$io"
  mkfifo "$job/$io/out" "$job/$io/err"
  : >"$job/$io/control"
  : >"$job/$io/console"
  cat "$job/$io/out" &
  readers=("$!")
  cat "$job/$io/err" >&2 &
  readers+=("$!")
  pids=("${readers[@]}")
}

# await PID: wait for the guest; given up early if its command has not begun within the boot time.
await() {
  local watcher
  (
    for ((n = 0; n < boot_timeout * 2; n++)); do
      sleep 0.5
      [ -z "$(said ready)" ] || exit 0
    done
    kill "$1" 2>/dev/null
  ) &
  watcher=$!
  pids+=("$1" "$watcher")
  rc=0
  wait "$1" || rc=$?
  kill "$watcher" 2>/dev/null || true
  # A guest that ended before it opened the FIFOs leaves their readers waiting.
  for ((n = 0; n < 20; n++)); do kill -0 "${readers[@]}" 2>/dev/null || break; sleep 0.1; done
  kill "${readers[@]}" 2>/dev/null || true
  wait "${readers[@]}" "$watcher" 2>/dev/null || true
  pids=()
}

verdict() {
  [ -z "$(said exit)" ] || exit "$(said exit)"
  {
    echo "${0##*/}: no result (status $rc)"
    tail -n 40 "$job/$io/console" "$job/qemu.log"
  } >&2 2>/dev/null || true
  [ "$rc" != 124 ] || exit 124
  exit 125
}
