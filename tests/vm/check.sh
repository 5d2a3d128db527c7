#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs the tests of this folder where limits are the kernel's: as an unprivileged user, in a user
# service of a real systemd, in a container (all but the caps) and in a virtual machine.
#
#   check.sh BUILD_FOLDER [container|machine]...
#
# Tells for each place "N passed, N failed". A guest that got stuck is tried once more; whether the
# first try comes to its end or not, it has a time limit. With TALLY=FILE in the environment the
# counts are added to that file. KERND_VM_PATIENCE multiplies the limits, for a busy host. Where a
# place can't be had (no root, or one that may not mount) that is said, and counts as one skipped
# test; as a failure with MUST_WORK=1. ALSO="NAME..." adds files of ../http and ../escape.
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
build=$(realpath -e -- "$1") || exit 2
shift
[ $# -gt 0 ] || set -- container machine
patience=${KERND_VM_PATIENCE:-1}

stage=$(mktemp -d "${TMPDIR:-/tmp}/kernd-vm.XXXXXX") || exit 1
trap 'rm -rf -- "$stage"' EXIT
chmod 755 "$stage"
tree=$stage/tree
mkdir -p "$tree/build" "$tree/tests/chosen"
for f in kernd kernd-init kernd-shell kernd-template.so kernd-node.so __pycache__; do cp -a "$build/$f" "$tree/build/" || exit 1; done
cp "$build"/*.py "$build"/*.js "$build"/*.mjs "$tree/build/"
cp -a "$here/../http" "$tree/tests/"
cp -a "$here/../../systemd" "$tree/"
cp "$here"/test_*.py "$here"/../http/test_{limits,walls}.py "$tree/tests/chosen/"
cp "$here"/../escape/[!t]*.py "$tree/tests/chosen/"
for name in ${ALSO-}; do cp "$here"/../{http,escape}/"test_$name.py" "$tree/tests/chosen/" 2>/dev/null; done

# count PLACE RESULT: adds the last "N passed, N failed, N skipped" of $stage/output, or one failure.
count() {
  local found
  found=$(sed -n 's/^\([0-9]*\) passed, \([0-9]*\) failed, \([0-9]*\) skipped$/\1 \2 \3/p' "$stage/output" | tail -n 1)
  [ -z "${TALLY-}" ] || echo "${found:-0 1 0}" >>"$TALLY"
  [ -n "$found" ] || echo "check.sh: no result from the $1 (status $2)" >&2
}

# Says what this host lacks for a place, and fails then. Making the guest takes mounts, too.
can_have() {
  if [ "$(id -u)" != 0 ]; then
    echo "needs root, or sudo"
  elif ! unshare --mount --propagation private mount -t tmpfs tmpfs "$stage" 2>/dev/null; then
    echo "may not mount here: a container without CAP_SYS_ADMIN?"
  elif [ "$1" = container ] && ! unshare --mount mount -t cgroup2 cgroup2 "$stage" 2>/dev/null; then
    echo "has no cgroup v2 that it may mount"
  elif [ "$1" = container ] && ! losetup --find >/dev/null 2>&1; then
    echo "has no loop device for the guest's disk"
  else
    return 0
  fi
  return 1
}

code=0
for place; do
  case $place in
    container) run=(run-in-container.sh --timeout $((90 * patience)) --root-script "$here/logout.sh") slow=3 means='' landlock=0 ;;
    machine) run=(run-in-machine.sh --timeout $((240 * patience)) --boot-timeout $((120 * patience))) slow=25 means=cgroup landlock=2 ;;
    *) echo "no such place: $place" >&2; exit 2 ;;
  esac
  if ! lack=$(can_have "$place"); then
    echo "check.sh: no $place: this $(id -un) $lack" >&2
    verdict="0 failed, 1 skipped"
    [ "${MUST_WORK-}" != 1 ] || { verdict="1 failed, 0 skipped"; code=1; }
    echo "0 passed, $verdict" | tee "$stage/output"
    count "$place" skipped
    continue
  fi
  for _ in 1 2; do
    "$here/${run[0]}" "${run[@]:1}" --copy "$stage/tree:/home/dev/kernd" --chdir /home/dev/kernd \
      --env "KERND_TEST_SLOW=$slow" --env "KERND_TEST_ENFORCED=$means" \
      --env "KERND_TEST_LANDLOCK=$landlock" --env MUST_WORK=1 \
      ${KERND_TEST_TEMPLATES:+--env "KERND_TEST_TEMPLATES=$KERND_TEST_TEMPLATES"} \
      -- python3 -B tests/http/run.py --jobs 1 ${ONLY:+--only "$ONLY"} tests/chosen |
      tee "$stage/output"
    rc=${PIPESTATUS[0]}
    [ "$rc" = 124 ] || [ "$rc" = 125 ] || break
    echo "check.sh: the $place got stuck or could not be had ($rc)" >&2
  done
  count "$place" "$rc"
  [ "$rc" = 0 ] || code=1
done
exit "$code"
