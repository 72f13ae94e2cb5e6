#!/usr/bin/env bash
# Checks the systemd units: systemd-analyze verifies them and rates their exposure, and the program makes only system calls
# that they allow. systemd need not be running.
#
#   .ci/deploy/units.sh BINARY
set -euo pipefail
cd "$(dirname "$0")/../.."
binary=$(realpath "$1")
state=$(mktemp -d)
# Maximum exposure in percent, by systemd's own weights.
readonly max_exposure=15
trap 'rm -rf "$state"' EXIT

fail() {
    echo "$1" >&2
    exit 1
}

# The units with the path of this program instead of the installed one.
mkdir "$state/units"
for unit in deploy/systemd/*.{service,socket,timer}; do
    sed "s|/usr/bin/scoregate|$binary|g" "$unit" >"$state/units/${unit##*/}"
done
verify() {
    systemd-analyze verify --man=no "$state"/units/* 2>&1 | grep -F "$state" || true
}
result=$(verify)
[[ -z $result ]] || fail "$result"
# An unknown directive must be detected.
sed 's/^MemoryDenyWriteExecute=/MemoryDenyWriteExecution=/' deploy/systemd/scoregate.service >"$state/units/scoregate.service"
result=$(verify)
[[ $result == *MemoryDenyWriteExecution* ]] || fail 'systemd-analyze verify does not detect an unknown directive'

for service in deploy/systemd/*.service; do
    systemd-analyze security --offline=yes --no-pager --threshold=$max_exposure "$service" >"$state/exposure" || {
        cat "$state/exposure" >&2
        fail "$service: the exposure is above $max_exposure %"
    }
    tail -n 1 "$state/exposure"
done

# The system calls of the program, started as the unit starts it.
python3 .ci/deploy/kernel_calls.py deploy/systemd/scoregate.service "$binary"
