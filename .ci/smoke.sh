#!/usr/bin/env bash
# The release build as a newcomer meets it: `demo`, the curl that it prints, the end.
set -euo pipefail

state=$(mktemp -d)
trap 'kill -KILL "${demo:-}" 2>/dev/null || true; rm -rf "$state"' EXIT
mkfifo "$state/printed"
TMPDIR=$state "$1" demo --listen 127.0.0.1:0 --admin-listen 127.0.0.1:0 >"$state/printed" 2>"$state/said" &
demo=$!
exec 9<"$state/printed"
while IFS= read -r line <&9; do
    case $line in
    'curl '*) command=$line ;;
    'metrics '*) metrics=${line##* } ;;
    'state '*) break ;;
    esac
done

count=$(eval "${command:?the demo printed no curl}" --silent --show-error --fail | python3 -c '
import json, sys
answer = json.load(sys.stdin)
assert answer["success"] and answer["count"] == len(answer["data"]) > 0, answer
print(answer["count"])')
served=$(curl --silent --show-error --fail "${metrics:?the demo printed no address of metrics}")
grep -q 'scoregate_requests_total{endpoint="models",class="2xx"} 1$' <<<"$served"

kill -TERM "$demo"
code=0
wait "$demo" || code=$?
[[ $code -eq 0 ]] || { echo "the demo ended with $code" >&2; cat "$state/said" >&2; exit 1; }
rm "$state/printed" "$state/said"
[[ -z $(ls -A "$state") ]] || { echo "the demo left something behind:" >&2; ls -A "$state" >&2; exit 1; }
demo=
echo "$count models, and nothing left behind"
