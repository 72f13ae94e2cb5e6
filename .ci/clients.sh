#!/usr/bin/env bash
# Clients of other projects: linters accept the description, generated clients get a typed error for every code, the caching
# libraries do what the recipes of the docs page promise, and MCP clients call every tool. Loopback only; the packages are
# installed below target/.
set -euo pipefail
cd "$(dirname "$0")/.."
. .ci/gateway.sh
export PYTHONDONTWRITEBYTECODE=1

tools=$PWD/target/clients
if ! cat .ci/clients/requirements.txt .ci/clients/package-lock.json | cmp -s - "$tools/installed"; then
    rm -rf "$tools"
    python3 -m venv "$tools"
    "$tools/bin/pip" install --quiet --disable-pip-version-check --no-deps -r .ci/clients/requirements.txt
    cp .ci/clients/package.json .ci/clients/package-lock.json "$tools"
    npm ci --prefix "$tools" --ignore-scripts --no-audit --no-fund --silent
    cat .ci/clients/requirements.txt .ci/clients/package-lock.json >"$tools/installed"
fi

gateway_tiers='
[tiers.few]
minute = 2
day = 1
paid = false
[tiers.burst]
minute = 30
day = 1000
paid = true
[mcp]
enabled = true
[service]
base_url = "https://api.example.org"
[site]
contact_email = "api@example.org"'
gateway_start "$1"
base=http://$gateway_address/api/v1
for name in pro free burst; do
    export "${name^^}_KEY=$(gateway_key "$name")"
done
for name in {,FETCH_,HEY_}{MINUTE,DAY}; do
    export "${name}_KEY=$(gateway_key few)"
done

"$tools/bin/python" .ci/clients/recipes.py "$base" "$gateway_side" "$tools/node_modules"

# mcp_clients BINARY: the official clients of the Model Context Protocol, and its conformance suite.
mcp_clients() {
    local address=http://$gateway_address/mcp modules=$tools/node_modules folder=$gateway_dir/mcp
    "$tools/bin/python" .ci/clients/mcp_session.py "$address" "$1" "$gateway_dir/scoregate.toml"
    mkdir "$folder"
    cp .ci/clients/mcp_session.mjs "$folder"
    ln -s "$modules" "$folder/node_modules"
    # The inspector writes to the home directory.
    HOME=$folder node "$folder/mcp_session.mjs" "$address" "$modules/.bin/mcp-inspector"
    quiet "$modules/.bin/conformance" server --url "$address" --suite all --expected-failures .ci/clients/conformance.yaml
}

# quiet COMMAND...: runs it, and prints its output only if it fails.
quiet() {
    "$@" >"$gateway_dir/output" 2>&1 || {
        cat "$gateway_dir/output" >&2
        return 1
    }
}
mcp_clients "$1"

description=$gateway_dir/openapi.json
curl -fsS "http://$gateway_address/openapi.json" -o "$description"

programs=$tools/node_modules/.bin
quiet "$programs/spectral" lint "$description" --ruleset .ci/clients/spectral.yaml --fail-severity hint
quiet "$programs/redocly" lint "$description"
# A warning is no failure for it.
if grep -q 'Warning was generated' "$gateway_dir/output"; then
    cat "$gateway_dir/output" >&2
    exit 1
fi

typescript=$gateway_dir/typescript
mkdir "$typescript"
cp .ci/clients/{generated.ts,openapi-ts.config.js,package.json,tsconfig.json} "$typescript"
ln -s "$tools/node_modules" "$typescript/node_modules"
# shown NAME: a program of the docs page with a generated client, for this gateway.
shown() {
    sed "s,BASE_ADDRESS,$base,; s,\./client/,./hey/," "src/pages/docs/generated/$1"
}
for name in client.ts operations.ts; do
    shown "$name" >"$typescript/$name"
done
quiet "$programs/openapi-typescript" "$description" --output "$typescript/api.ts"
(
    cd "$typescript"
    DESCRIPTION=$description quiet "$programs/openapi-ts"
    quiet "$programs/tsc" --project .
)
node "$typescript/compiled/generated.js" "$base" "$description"
for name in client operations; do
    API_KEY=$PRO_KEY node "$typescript/compiled/$name.js" >"$gateway_dir/$name.txt"
done

quiet "$tools/bin/datamodel-codegen" --input "$description" --input-file-type openapi --output "$gateway_dir/api_models.py" \
    --output-model-type pydantic_v2.BaseModel --formatters builtin
PYTHONPATH=$gateway_dir "$tools/bin/python" .ci/clients/models.py "$base" "$description"

printf 'post_hooks: []\n' >"$gateway_dir/generator.yaml"
"$tools/bin/openapi-python-client" generate --path "$description" --config "$gateway_dir/generator.yaml" --meta none \
    --output-path "$gateway_dir/api_client" >"$gateway_dir/generated" 2>&1
# The generator omits what it cannot express, and succeeds.
if grep -Eiq 'warning|unable|omitted' "$gateway_dir/generated"; then
    cat "$gateway_dir/generated" >&2
    exit 1
fi
shown client.py | API_KEY=$PRO_KEY PYTHONPATH=$gateway_dir "$tools/bin/python" - >"$gateway_dir/python.txt"
# The programs print the same models; their languages print the same number differently.
for name in python client operations; do
    sed 's/ [^ ]*$//' "$gateway_dir/$name.txt" >"$gateway_dir/$name.models"
    [[ -s $gateway_dir/$name.models ]]
    cmp "$gateway_dir/python.models" "$gateway_dir/$name.models"
done
PYTHONPATH=$gateway_dir GATEWAY_PID=$gateway_pid GATEWAY_SETTINGS=$gateway_dir/scoregate.toml \
    "$tools/bin/python" .ci/clients/errors.py "$base" "$description"
gateway_stop
