#!/usr/bin/env bash
# Everything in deploy/ that can be shown without a container daemon or a running systemd: the container's files and the
# program among them, the systemd units.
#
#   .ci/deploy/all.sh BINARY
set -euo pipefail
cd "$(dirname "$0")/../.."

.ci/deploy/container.sh "$1"
.ci/deploy/units.sh "$1"
