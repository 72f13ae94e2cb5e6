#!/usr/bin/env bash
# Everything in deploy/ that can be shown without a container daemon: the container's files and the program among them.
#
#   .ci/deploy/all.sh BINARY
set -euo pipefail
cd "$(dirname "$0")/../.."

.ci/deploy/container.sh "$1"
