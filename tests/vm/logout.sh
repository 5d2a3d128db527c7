#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Run by root of the guest, before the tests: what becomes of a user's service when the user logs
# out, without and with lingering. The last two lines are what test_ondemand.py reads.
set -u
kernd=/home/dev/kernd/build/kernd
chmod 755 /home/dev
mkdir -p /run/systemd/logind.conf.d
# The user's systemd ends a second after the last session instead of ten.
printf '[Login]\nUserStopDelaySec=1\n' >/run/systemd/logind.conf.d/soon.conf
systemctl restart systemd-logind
useradd -m eve

# As at a login: a session of PAM and logind, which is over when the command is.
log_in() { systemd-run --quiet --wait --pipe -p PAMName=login -p User=eve -- /bin/bash -c "$1"; }
# The process that answers, by its own command line; waits until it is gone, at most 20 s.
pid_of() { sed -n 's/^running pid=\([0-9]*\) .*/\1/p' | tail -n 1; }
gone() {
  local n
  for ((n = 0; n < 100; n++)); do [ -d "/proc/$1" ] || return 0; sleep 0.2; done
  return 1
}

pid=$(log_in "$kernd service install >/dev/null && $kernd start" | pid_of)
[ -n "$pid" ] && gone "$pid" && first=gone
loginctl enable-linger eve
pid=$(log_in "$kernd start" | pid_of)
sleep 4
[ -n "$pid" ] && [ -d "/proc/$pid" ] && second=stays
loginctl disable-linger eve
echo "without linger: ${first:-failed}"
echo "with linger: ${second:-failed}"
