#!/usr/bin/env bash
# The program as a new user runs it: `demo`, the printed curl command, and the shutdown.
set -euo pipefail

state=$(mktemp -d)
trap 'kill -KILL "${demo:-}" 2>/dev/null || true; rm -rf "$state"' EXIT
mkfifo "$state/stdout"
TMPDIR=$state "$1" demo --listen 127.0.0.1:0 --admin-listen 127.0.0.1:0 >"$state/stdout" 2>"$state/stderr" &
demo=$!
exec 9<"$state/stdout"
while IFS= read -r line <&9; do
    case $line in
    'curl '*) command=$line ;;
    'metrics '*) metrics=${line##* } ;;
    'state '*) break ;;
    esac
done

count=$(eval "${command:?the demo printed no curl command}" --silent --show-error --fail | python3 -c '
import json, sys
response = json.load(sys.stdin)
assert response["success"] and response["count"] == len(response["data"]) > 0, response
print(response["count"])')
served=$(curl --silent --show-error --fail "${metrics:?the demo printed no metrics URL}")
grep -q 'scoregate_requests_total{endpoint="models",class="2xx"} 1$' <<<"$served"

kill -TERM "$demo"
code=0
wait "$demo" || code=$?
[[ $code -eq 0 ]] || { echo "the demo exited with code $code" >&2; cat "$state/stderr" >&2; exit 1; }
rm "$state/stdout" "$state/stderr"
[[ -z $(ls -A "$state") ]] || { echo "the demo left files:" >&2; ls -A "$state" >&2; exit 1; }
demo=
echo "$count models, and no files left"
