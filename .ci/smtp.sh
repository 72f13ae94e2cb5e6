#!/usr/bin/env bash
# Installs the SMTP server of the tests below target/, in the pinned versions.
set -euo pipefail
cd "$(dirname "$0")/.."

pinned=tests/servers/smtp.txt
if ! target/smtp/bin/python -c 'import aiosmtpd' 2>/dev/null || ! cmp -s "$pinned" target/smtp/installed.txt; then
    rm -rf target/smtp
    python3 -m venv target/smtp
    target/smtp/bin/pip install --quiet --disable-pip-version-check --no-deps -r "$pinned"
    cp "$pinned" target/smtp/installed.txt
fi
