#!/usr/bin/env bash
# Opens the pages in a real browser: they render completely, log nothing to the console and request nothing but themselves
# and the icon. browser.py then tests the docs page: search, copy buttons, widths, light and dark scheme;
# browser_try_it.py sends requests from it; browser_account.py tests accounts, and the accessibility of all pages. The browser can reach
# loopback only. Planted pages first show that the checks detect violations.
set -euo pipefail
cd "$(dirname "$0")/.."
. .ci/gateway.sh
export PYTHONDONTWRITEBYTECODE=1

pinned=.ci/axe.txt
if ! cmp -s "$pinned" target/axe/installed.txt; then
    rm -rf target/axe
    python3 -m venv target/axe
    target/axe/bin/pip install --quiet --disable-pip-version-check --no-deps -r "$pinned"
    cp "$pinned" target/axe/installed.txt
fi

browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome)

# visit URL: opens a page and writes its DOM, console output and network log to page.html, console.txt and net.json.
visit() {
    "$browser" --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --disable-extensions --disable-sync \
        --no-first-run --disable-background-networking --disable-component-update \
        --host-resolver-rules='MAP * ~NOTFOUND, EXCLUDE 127.0.0.1' --user-data-dir="$gateway_dir/profile" \
        --log-net-log="$gateway_dir/net.json" --enable-logging=stderr --dump-dom "$1" \
        >"$gateway_dir/page.html" 2>"$gateway_dir/console.txt"
}

# Prints the console output of a page and its requests. Requests of the browser itself have no page as initiator.
findings() {
    grep 'CONSOLE' "$gateway_dir/console.txt" || true
    python3 - "$gateway_dir/net.json" <<'PY'
import json, sys

log = json.load(open(sys.argv[1]))
start = log["constants"]["logEventTypes"]["URL_REQUEST_START_JOB"]
for event in log["events"]:
    params = event.get("params", {})
    if event["type"] == start and params.get("initiator", "not an origin") != "not an origin":
        print("requested", params["url"])
PY
}

pages_served() {
    curl -fsS "http://$gateway_side/metrics" |
        awk '/^scoregate_requests_total\{/ { all += $2 } END { print all + 0 }'
}

gateway_start "$1"

cat >"$gateway_dir/planted.html" <<HTML
<img src="http://$gateway_address/planted"><script>console.error("planted")</script>
HTML
visit "file://$gateway_dir/planted.html"
planted=$(findings)
for sign in CONSOLE requested; do
    if [[ $planted != *"$sign"* ]]; then
        echo "the check does not detect a planted violation ($sign)" >&2
        exit 1
    fi
done

curl -fsS "http://$gateway_address/openapi.json" >"$gateway_dir/openapi.json"
codes=$(python3 -c '
import json, sys
schema = json.load(open(sys.argv[1]))["components"]["schemas"]["Error"]
print("\n".join(schema["properties"]["code"]["enum"]))' "$gateway_dir/openapi.json")

for page in / /docs /openapi.json; do
    before=$(pages_served)
    visit "http://$gateway_address$page"
    found=$(findings)
    # The icon is the only other resource of a page, and browsers cache it for a day.
    icons=$(grep -cxF "requested http://$gateway_address/favicon.ico" <<<"$found" || true)
    found=$(grep -vxF "requested http://$gateway_address/favicon.ico" <<<"$found" || true)
    if [[ -n $found ]]; then
        printf '%s requests or logs more than it should:\n%s\n' "$page" "$found" >&2
        exit 1
    fi
    # A cached icon appears in the network log without a request to the server.
    served=$(($(pages_served) - before))
    if ((served < 1 || served > 1 + icons)); then
        echo "$page: the browser sent $served requests" >&2
        exit 1
    fi
    case $page in
    /) grep -q '<h1' "$gateway_dir/page.html" && grep -q 'href="/docs"' "$gateway_dir/page.html" ;;
    /docs) for code in $codes; do
        grep -q "id=\"$code\"" "$gateway_dir/page.html" || { echo "/docs has no anchor $code" >&2; exit 1; }
    done ;;
    /openapi.json) grep -q '"openapi":"3.1.0"' "$gateway_dir/page.html" ;;
    esac
done
python3 .ci/browser.py "$browser" "http://$gateway_address/docs" "$gateway_dir/devtools"
API_KEY=$(gateway_key pro) LIMITED_KEY=$(gateway_key limited) \
    python3 .ci/browser_try_it.py "$browser" "http://$gateway_address/docs" "$gateway_dir/devtools"
gateway_stop
# With the pictures of the README, but for the time that is in them.
mkdir "$gateway_dir/pictures"
python3 .ci/browser_account.py "$browser" "$1" "$gateway_dir/accounts" --pictures "$gateway_dir/pictures" --days 1
echo "3 pages, $(wc -w <<<"$codes") anchors"
