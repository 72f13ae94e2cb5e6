#!/usr/bin/env bash
# Checks the files of the container, as deploy/container/build.sh lays them out, and runs the program in them: as an unknown
# user, without capabilities, on a read-only root. Instead of a container runtime, this script creates the mounts, which
# end with it, and the files for name resolution.
#
#   .ci/deploy/container.sh BINARY
set -euo pipefail
cd "$(dirname "$0")/../.."
umask 022
if [[ -z ${SCOREGATE_OWN_MOUNTS:-} ]]; then
    # `unchanged`: changing the propagation of / fails if it is not a mount point, as in a plain chroot.
    exec unshare --mount --propagation unchanged env SCOREGATE_OWN_MOUNTS=1 "$0" "$@"
fi
unset SCOREGATE_OWN_MOUNTS
readonly user=65532 binary=$1
chroot=$(PATH=$PATH:/usr/sbin:/sbin command -v chroot)
state=$(mktemp -d)
root=$state/root
clean() {
    for running in "${server:-}" "${backend:-}"; do
        [[ -z $running ]] || { kill -KILL "$running" && wait "$running"; } 2>/dev/null || true
    done
    umount --recursive "$state" || true
    rm -rf "$state"
}
trap clean EXIT
# Mounts below a private mount stay in this namespace.
mount --bind "$state" "$state"
mount --make-private "$state"

fail() {
    echo "$1" >&2
    [[ ! -s $state/stderr ]] || cat "$state/stderr" >&2
    exit 1
}

# wait_for NAME: reads the log of NAME from its pipe until the line "serving", and sets `line`. Keeps the whole log.
wait_for() {
    exec 9<"$state/$1"
    while IFS= read -r line <&9; do
        printf '%s\n' "$line" >>"$state/stderr"
        if [[ $line == *serving* ]]; then
            # The rest of its log must not fill the pipe.
            cat <&9 >>"$state/stderr" &
            exec 9<&-
            return 0
        fi
    done
    fail "$1 does not serve"
}

# Compares the files with the committed list.
deploy/container/build.sh --plain "$root" --binary "$binary" | awk '{ print $1, $2, $4 }' >"$state/contents"
if [[ $(uname -m) == x86_64 ]]; then
    diff deploy/container/contents.txt "$state/contents" || fail 'deploy/container/contents.txt differs from the built files'
fi

# A backend on loopback, with a day of runs.
for hours in $(seq 2 26); do
    printf '{"id":"r-%d","model":{"id":"atlas","name":"Atlas","provider":"meridian","priceInput":5,"priceOutput":20},"suite":"coding","time":"%s","trials":[{"scores":{"correctness":0.9,"spec":0.8,"codeQuality":0.7,"efficiency":0.6,"stability":0.5,"refusal":1,"recovery":0.4},"latencyMs":4200,"cost":0.031}]}\n' \
        "$hours" "$(date -u -d "-$hours hours" +%Y-%m-%dT%H:%M:%SZ)"
done >"$state/runs.jsonl"
"$binary" scoring import "$state/runs.jsonl" --archive "$state/runs.db" >/dev/null
mkfifo "$state/backend" "$state/gateway"
"$binary" scoring serve --archive "$state/runs.db" --listen 127.0.0.1:0 2>"$state/backend" &
backend=$!
wait_for backend
port=$(grep -oE '127\.0\.0\.1:[0-9]+' <<<"$line" | cut -d: -f2)

# Provided by a runtime: host names, a writable volume, a read-only root.
printf '127.0.0.1 backend.test\n' >"$root/etc/hosts"
mkdir "$state/volume"
cp -a "$root/var/lib/scoregate/." "$state/volume/"
chown --reference "$root/var/lib/scoregate" "$state/volume"
chmod --reference "$root/var/lib/scoregate" "$state/volume"
mount --bind "$root" "$root"
mount -o remount,bind,ro "$root"
mount --bind "$state/volume" "$root/var/lib/scoregate"
if touch "$root/etc/written" 2>/dev/null; then
    fail 'the root is writable'
fi

# inside ARGUMENT…: replaces this shell by the program inside its root.
inside() {
    exec env -i TMPDIR=/var/lib/scoregate SCOREGATE_CONFIG=/etc/scoregate/scoregate.toml \
        SCOREGATE_LISTEN=127.0.0.1:0 SCOREGATE_ADMIN_LISTEN=127.0.0.1:0 \
        SCOREGATE_UPSTREAM_URL="http://backend.test:$port/api/v1" \
        setpriv --no-new-privs "$chroot" --userspec=$user:$user --groups= "$root" /usr/bin/scoregate "$@"
}

key=$( (inside keys create --name container --tier pro 2>>"$state/stderr") ) || fail 'no key can be created'
(inside serve >/dev/null 2>"$state/gateway") &
server=$!
wait_for gateway
public=$(sed -E 's/.*"public":"([^"]+)".*/\1/' <<<"$line")
side=$(sed -E 's/.*"side":"([^"]+)".*/\1/' <<<"$line")

# Its user and its privileges.
[[ $(readlink "/proc/$server/root") == "$root" ]] || fail "its root is not the container's: $(readlink "/proc/$server/root")"
is() {
    grep -qE "^$1:[[:space:]]+$2\$" "/proc/$server/status" || fail "$(grep "^$1:" "/proc/$server/status"), expected $2"
}
is Uid "${user}[[:space:]]+${user}[[:space:]]+${user}[[:space:]]+${user}"
is CapEff 0000000000000000
is CapPrm 0000000000000000
is NoNewPrivs 1

# The health check of the image, and a request. The C library inside the root resolves the host name of the backend.
[[ $( (inside health --admin "$side") ) == ready ]] || fail 'it is not healthy'
curl --silent --show-error --fail --max-time 10 "http://$side/readyz" >/dev/null || fail 'it is not ready'
models=$(curl --silent --show-error --fail --max-time 30 -H "X-API-Key: $key" "http://$public/api/v1/models") ||
    fail 'a request for data fails'
[[ $models == *'"count":1,'*'"atlas"'* ]] || fail "unexpected response: $models"

# A backup of a container is written to standard output.
[[ $( (inside store export - 2>>"$state/stderr") | grep -c '"container"') -ge 1 ]] || fail 'the export does not contain the key'

kill -TERM "$server"
code=0
wait "$server" || code=$?
[[ $code -eq 0 ]] || fail "it exited with code $code"
server=
if (inside health --admin "$side") 2>/dev/null; then
    fail 'a stopped server is reported as healthy'
fi
[[ -s $state/volume/scoregate.db ]] || fail 'there is no store on the volume'
[[ -z $(find "$state/volume" ! -user $user) ]] || fail 'not all files on the volume belong to its user'
echo "container: $(wc -l <"$state/contents") files and directories, $(du -sm --apparent-size --exclude=var "$root" | cut -f1) MB; user $user on a read-only root served $public and exited with code 0"
