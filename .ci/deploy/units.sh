#!/usr/bin/env bash
# The systemd units: systemd itself reads them and judges what they leave open, and what the program asks of the kernel is
# what they let it ask. No systemd has to run here.
#
#   .ci/deploy/units.sh BINARY
set -euo pipefail
cd "$(dirname "$0")/../.."
binary=$(realpath "$1")
state=$(mktemp -d)
# Of 100, by systemd's own weights.
readonly most_exposed=15
trap 'rm -rf "$state"' EXIT

fail() {
    echo "$1" >&2
    exit 1
}

# The units as they stand, with this program in the place of the one that is installed.
mkdir "$state/units"
for unit in deploy/systemd/*.{service,socket,timer}; do
    sed "s|/usr/bin/scoregate|$binary|g" "$unit" >"$state/units/${unit##*/}"
done
verify() {
    systemd-analyze verify --man=no "$state"/units/* 2>&1 | grep -F "$state" || true
}
result=$(verify)
[[ -z $result ]] || fail "$result"
# A word that systemd does not know has to be seen.
sed 's/^MemoryDenyWriteExecute=/MemoryDenyWriteExecution=/' deploy/systemd/scoregate.service >"$state/units/scoregate.service"
result=$(verify)
[[ $result == *MemoryDenyWriteExecution* ]] || fail 'systemd-analyze verify sees no mistake'

for service in deploy/systemd/*.service; do
    systemd-analyze security --offline=yes --no-pager --threshold=$most_exposed "$service" >"$state/exposure" || {
        cat "$state/exposure" >&2
        fail "$service leaves more open than $most_exposed of 100"
    }
    tail -n 1 "$state/exposure"
done

# And the program as the unit starts it.
python3 .ci/deploy/kernel_calls.py deploy/systemd/scoregate.service "$binary"
