#!/bin/sh
# Makes the secrets of compose.yaml that are not there yet. They are files because nothing of them is then seen in the
# settings of a container, nor among the processes. Their directory is closed to others; within it they have to be readable
# for the containers' users, which are none of this machine's.
set -eu
cd "$(dirname "$0")"
mkdir -p secrets
chmod 0700 secrets
for name in admin-token grafana-password; do
    [ -s "secrets/$name" ] && continue
    (umask 022 && od -An -N24 -tx1 /dev/urandom | tr -d ' \n' >"secrets/$name")
done
