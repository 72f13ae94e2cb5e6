#!/usr/bin/env bash
# Property tests of a running gateway against its own API description, with all checks: as a paid caller with one key
# header and as a free caller with the other; then of one whose backend has endpoints that only settings define. Loopback
# only, with a fixed seed.
set -euo pipefail
cd "$(dirname "$0")/.."
. .ci/gateway.sh

tool=$PWD/target/schemathesis/bin/schemathesis
if ! "$tool" --version 2>/dev/null | grep -q "$(sed -n 's/^schemathesis==//p' .ci/schemathesis.txt)"; then
    rm -rf target/schemathesis
    python3 -m venv target/schemathesis
    target/schemathesis/bin/pip install --quiet --disable-pip-version-check --no-deps -r .ci/schemathesis.txt
fi

# begin BINARY: starts the gateway, and counts its operations whose paths match $paths.
paths=.
begin() {
    gateway_start "$1"
    operations=$(curl -fsS "http://$gateway_address/openapi.json" | python3 -c '
import json, re, sys
paths = json.load(sys.stdin)["paths"]
paths = [item for path, item in paths.items() if re.search(sys.argv[1], path)]
print(sum(method in ("get", "head") for item in paths for method in item))' "$paths")
}

# run SETTING TIER: tests all operations with a key of that tier in the header of that security scheme. The key is in the
# tool's own settings, so that the tool knows the authentication header.
run() {
    printf '[auth.openapi.%s]\n%s = "${SCOREGATE_CI_KEY}"\n' "${1%.*}" "${1#*.}" >"$gateway_dir/schemathesis.toml"
    local key
    key=$(gateway_key "$2")
    # The tool writes files to its working directory.
    if ! (cd "$gateway_dir" && SCOREGATE_CI_KEY=$key "$tool" --config-file "$gateway_dir/schemathesis.toml" \
        run "http://$gateway_address/openapi.json" --include-path-regex "$paths" --checks all --max-examples 15 \
        --seed 20261121 --no-color --generation-database none >"$gateway_dir/report" 2>&1); then
        cat "$gateway_dir/report" >&2
        return 1
    fi
    # The tool also succeeds if it tested nothing.
    if ! grep -q "Tested: $operations\$" "$gateway_dir/report"; then
        cat "$gateway_dir/report" >&2
        echo "not all $operations operations were tested" >&2
        return 1
    fi
    echo "$2 by $1: $(grep 'generated,' "$gateway_dir/report" | xargs)"
}

# occurred CODE...: every kind of response occurred, so each was checked against its description.
occurred() {
    curl -fsS "http://$gateway_side/metrics" >"$gateway_dir/metrics"
    for code in "$@"; do
        if ! grep -Eq "^scoregate_refusals_total\{code=\"$code\"\} [1-9]" "$gateway_dir/metrics"; then
            echo "no request got $code" >&2
            exit 1
        fi
    done
}

begin "$1"
run bearer.bearer pro
run header.api_key free
occurred api_key_required invalid_api_key invalid_period invalid_sort_by invalid_limit invalid_model_id \
    model_not_found latest_requires_plan method_not_allowed
gateway_stop
rm -rf "$gateway_dir"

exec 8< <(exec .ci/stub_backend.py)
gateway_backend=$!
read -r port <&8
gateway_upstream="upstream.url = \"http://127.0.0.1:$port/api/v1\""
gateway_tiers=$(cat .ci/stub_endpoints.toml)
paths='^/(prices|reference)/'
begin "$1"
if [[ $operations -ne 3 ]]; then
    echo "$operations operations of the settings are described, not 3" >&2
    exit 1
fi
run bearer.bearer pro
run header.api_key free
occurred api_key_required invalid_api_key invalid_period invalid_limit invalid_parameter invalid_model_id \
    model_not_found plan_required method_not_allowed
gateway_stop
