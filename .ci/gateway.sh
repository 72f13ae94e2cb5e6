# Functions for a running gateway on free loopback ports, for steps that test it from outside. To be sourced.
#
# gateway_start BINARY   starts `serve` with the built-in backend, runs to score, and limits that no tool reaches except
#                        in the tier `limited` and the settings in gateway_tiers; or, with the backend in gateway_upstream,
#                        without runs. Sets gateway_address, gateway_side and
#                        gateway_dir. Waits for the log line "serving".
# gateway_key TIER       prints the key of a new application.
# gateway_stop           stops it and fails unless the exit code is 0.

gateway_start() {
    gateway_binary=$1
    gateway_dir=$(mktemp -d)
    local upstream=${gateway_upstream:-'upstream = "built-in"'}
    cat >"$gateway_dir/scoregate.toml" <<TOML
listen = "127.0.0.1:0"
data_dir = "$gateway_dir/state"
$upstream
[admin]
listen = "127.0.0.1:0"
[log]
format = "json"
[guard]
per_minute = 100000000
[tiers.free]
minute = 100000000
day = 100000000
paid = false
[tiers.limited]
minute = 1
day = 10
paid = false
[tiers.pro]
minute = 100000000
day = 100000000
paid = true
${gateway_tiers:-}
TOML
    if [[ -z ${gateway_upstream:-} ]]; then
        .ci/runs.py | "$gateway_binary" scoring import - --config "$gateway_dir/scoregate.toml" >&2
    fi
    mkfifo "$gateway_dir/stderr"
    "$gateway_binary" serve --config "$gateway_dir/scoregate.toml" 2>"$gateway_dir/stderr" >"$gateway_dir/requests" &
    gateway_pid=$!
    trap gateway_clean EXIT
    exec 9<"$gateway_dir/stderr"
    local line
    while IFS= read -r line <&9; do
        printf '%s\n' "$line" >>"$gateway_dir/log"
        if [[ $line == *'"serving"'* ]]; then
            gateway_address=$(printf '%s' "$line" | sed -E 's/.*"public":"([^"]+)".*/\1/')
            gateway_side=$(printf '%s' "$line" | sed -E 's/.*"side":"([^"]+)".*/\1/')
            # The rest of its log must not fill the pipe.
            cat <&9 >>"$gateway_dir/log" &
            exec 9<&-
            return 0
        fi
    done
    echo "the gateway did not start:" >&2
    cat "$gateway_dir/log" >&2
    return 1
}

gateway_key() {
    "$gateway_binary" keys create --config "$gateway_dir/scoregate.toml" --name ci --tier "$1" 2>/dev/null
}

gateway_stop() {
    kill -TERM "$gateway_pid"
    local code=0
    wait "$gateway_pid" || code=$?
    gateway_pid=
    if [[ $code -ne 0 ]]; then
        echo "the gateway exited with code $code" >&2
        return 1
    fi
}

# Runs on exit, also after a failure.
gateway_clean() {
    if [[ -n ${gateway_pid:-} ]]; then
        kill -KILL "$gateway_pid" 2>/dev/null || true
    fi
    if [[ -n ${gateway_backend:-} ]]; then
        kill "$gateway_backend" 2>/dev/null || true
    fi
    rm -rf "$gateway_dir"
}
