#!/bin/sh
# Creates the missing secrets of compose.yaml. As files they appear neither in the settings of a container nor in the list
# of processes. Only the owner can enter their directory; the files in it must be readable by the users of the containers,
# which do not exist on this machine.
set -eu
cd "$(dirname "$0")"
mkdir -p secrets
chmod 0700 secrets
for name in admin-token grafana-password database-password database-owner-password database-gateway-password; do
    [ -s "secrets/$name" ] && continue
    (umask 022 && od -An -N24 -tx1 /dev/urandom | tr -d ' \n' >"secrets/$name")
done
