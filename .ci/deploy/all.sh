#!/usr/bin/env bash
# Everything in deploy/ that can be shown without a container daemon, a cluster or a running systemd: the container's files
# and the program among them, the systemd units, the Kubernetes manifests, the compose file.
#
#   .ci/deploy/all.sh BINARY
set -euo pipefail
cd "$(dirname "$0")/../.."
here=.ci/deploy

# Whatever is listed, installed once for each content of the list.
tools=target/deploy-tools/$(sha256sum "$here/tools.txt" | cut -c 1-16)
if [[ ! -e $tools/whole ]]; then
    rm -rf target/deploy-tools
    python3 -m venv "$tools"
    "$tools/bin/pip" install --quiet --disable-pip-version-check --no-deps -r "$here/tools.txt"
    touch "$tools/whole"
fi

"$here/container.sh" "$1"
"$here/units.sh" "$1"
"$tools/bin/python" "$here/manifests.py" "$1"
"$tools/bin/python" "$here/compose.py" "$1"
