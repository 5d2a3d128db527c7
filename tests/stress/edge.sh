#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Outside judges of the edge, a minute in all: slowhttptest (slow heads, bodies and readers), wrk and
# hey (floods), each if it is installed (Debian packages of the same names). The server must answer a
# good client all the while.
#
#     sh tests/stress/edge.sh http://127.0.0.1:5376 TOKEN_FILE
set -eu

url=${1:?usage: edge.sh URL TOKEN_FILE}
token=$(cat "${2:?usage: edge.sh URL TOKEN_FILE}")
failed=0

good_client() {
    curl -sf -m 10 -H "Authorization: Bearer $token" -H 'Content-Type: application/json' \
        "$url/v1/run" -d '{"command":["echo","served"]}' | grep -q served
}

# attack NAME PROGRAM ARGUMENTS...
attack() {
    name=$1
    shift
    if ! command -v "$1" >/dev/null; then
        echo "SKIPPED $name: $1 is not installed"
        [ "${MUST_WORK-}" != 1 ] || failed=1
        return
    fi
    "$@" >/dev/null 2>&1 &
    job=$!
    sleep 3
    if good_client; then echo "ok $name"; else
        echo "FAILED $name"
        failed=1
    fi
    wait "$job" || true
}

attack "slow heads" slowhttptest -H -c 200 -i 2 -r 100 -l 10 -u "$url/healthz"
attack "slow bodies" slowhttptest -B -c 200 -i 2 -r 100 -l 10 -u "$url/v1/run"
attack "slow readers" slowhttptest -X -c 100 -r 50 -l 10 -w 1 -y 8 -n 2 -z 8 -u "$url/healthz"
attack "a flood by wrk" wrk -t 2 -c 100 -d 8s "$url/healthz"
attack "a flood by hey" hey -z 8s -c 100 "$url/healthz"
good_client || failed=1
exit "$failed"
