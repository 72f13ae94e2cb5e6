#!/usr/bin/env bash
# Checks the packages of deploy/packages/build.sh: two builds in different directories have the same bytes, and the .deb and the
# .rpm are installed, run, upgraded and removed, each in a root of its own: an overlay of this system, whose changes are then
# exactly the changes of the package. systemd need not be running. With SCOREGATE_FULL=1 the SBOM is built too.
#
#   .ci/deploy/packages.sh BINARY
set -euo pipefail
cd "$(dirname "$0")/../.."
umask 022
if [[ -z ${SCOREGATE_OWN_MOUNTS:-} ]]; then
    exec unshare --mount --propagation unchanged env SCOREGATE_OWN_MOUNTS=1 "$0" "$@"
fi
unset SCOREGATE_OWN_MOUNTS
state=$(mktemp -d)
server=
clean() {
    [[ -z $server ]] || { kill -KILL "$server" && wait "$server"; } 2>/dev/null || true
    umount --recursive "$state" || true
    rmdir "$state"
}
trap clean EXIT
# An overlay needs a file system for its changes that is not an overlay itself.
mount -t tmpfs -o mode=0755 tmpfs "$state"
mount --make-private "$state"
readonly data=/var/lib/scoregate configuration=/etc/scoregate/scoregate.toml unit=/usr/lib/systemd/system/scoregate.service
# Maximum exposure in percent, as for the unit itself.
readonly max_exposure=15

fail() {
    echo "$1" >&2
    [[ ! -s $state/log ]] || tail -n 15 "$state/log" >&2
    exit 1
}

# Two builds, then a later version with another default configuration.
program=$state/program
strip --strip-debug -o "$program" "$1"
version=$("$program" version | cut -d ' ' -f 2)
mkdir "$state/tree"
cp -r deploy LICENSE CHANGELOG.md Cargo.toml Cargo.lock src crates "$state/tree/"
export SOURCE_DATE_EPOCH=1700000000
options=()
[[ ${SCOREGATE_FULL:-} != 1 ]] || options=(--sbom)
deploy/packages/build.sh --binary "$program" --to "$state/first" "${options[@]}" >/dev/null
if [[ ${SCOREGATE_FULL:-} == 1 ]]; then
    mkdir -p "$state/tree/target"
    cp -r target/tools "$state/tree/target/"
    grep -q 'pkg:cargo/hyper@' "$state"/first/*.cdx.json || fail 'the SBOM lacks a dependency'
fi
(umask 077 && "$state/tree/deploy/packages/build.sh" --binary "$program" --to "$state/second" "${options[@]}" >/dev/null)
diff -r "$state/first" "$state/second" || fail 'two builds of one program differ'
(cd "$state/first" && sha256sum --quiet --check SHA256SUMS) || fail 'a checksum is wrong'
[[ $(wc -l <"$state/first/SHA256SUMS") -ge 3 ]] || fail 'not every package has a checksum'
echo '# A later default.' >>"$state/tree/deploy/scoregate.toml"
"$state/tree/deploy/packages/build.sh" --binary "$program" --to "$state/later" --version 99.0.0-rc.1 >/dev/null

# The archive has the same files under one directory, which works where it is unpacked.
tar --extract --directory "$state" --file "$state"/first/*.tar.gz
unpacked=$(echo "$state/scoregate-$version"-*)
# `cargo binstall` looks for the program where Cargo.toml says.
binstall() {
    sed -n "s/^$1 = \"\(.*\)\"/\1/p" Cargo.toml | sed -e "s/{ name }\|{ bin }/scoregate/g" -e "s/{ version }/$version/g" \
        -e "s/{ target }/${unpacked##*/scoregate-"$version"-}/" -e 's/{ binary-ext }//'
}
[[ -e "$state/first/$(basename "$(binstall pkg-url)")" && -x "$state/$(binstall bin-dir)" ]] || fail 'the metadata for cargo binstall is wrong'
[[ $("$unpacked/usr/bin/scoregate" --version) == "scoregate $version" && -s $unpacked/LICENSE ]] || fail 'the archive is incomplete'

# The last day of one model.
for hours in $(seq 2 26); do
    printf '{"id":"r-%d","model":{"id":"atlas","name":"Atlas","provider":"meridian","priceInput":5,"priceOutput":20},"suite":"coding","time":"%s","trials":[{"scores":{"correctness":0.9,"spec":0.8,"codeQuality":0.7,"efficiency":0.6,"stability":0.5,"refusal":1,"recovery":0.4},"latencyMs":4200,"cost":0.031}]}\n' \
        "$hours" "$(date -u -d "-$hours hours" +%Y-%m-%dT%H:%M:%SZ)"
done >"$state/runs.jsonl"

# fresh KIND: sets `root`, a root whose changes are in `changes`.
fresh() {
    root=$state/$1/root changes=$state/$1/changes
    mkdir -p "$root" "$changes" "$state/$1/work"
    mount -t overlay -o "lowerdir=/,upperdir=$changes,workdir=$state/$1/work" overlay "$root"
    mount -t proc proc "$root/proc"
    mount --bind /dev "$root/dev"
    mount -t tmpfs tmpfs "$root/run"
    mount -t tmpfs tmpfs "$root/tmp"
    cp -r "$state/first" "$state/later" "$state/runs.jsonl" "$root/tmp/"
}

inside() {
    env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin chroot "$root" "$@" >>"$state/log" 2>&1 </dev/null
}

# as_service ARGUMENT...: the installed program with the user and the environment of the unit. Replaces this shell.
as_service() {
    exec env -i PATH=/usr/sbin:/usr/bin SCOREGATE_DATA_DIR=$data TMPDIR=$data chroot --userspec=scoregate:scoregate --groups= "$root" "$@"
}

# answers: starts the installed program as its unit does, gets a response, and stops it.
answers() {
    local line public= models code=0
    [[ -e $state/pipe ]] || mkfifo "$state/pipe"
    # shellcheck disable=SC2046
    (as_service $(sed -n 's/^ExecStart=//p' "$root$unit") >/dev/null 2>"$state/pipe") &
    server=$!
    exec 9<"$state/pipe"
    while [[ -z $public ]] && IFS= read -r line <&9; do
        echo "$line" >>"$state/log"
        [[ $line != *' public='* ]] || public=$(sed 's/.* public=\([^ ]*\).*/\1/' <<<"$line")
    done
    cat <&9 >>"$state/log" &
    exec 9<&-
    [[ -n $public ]] || fail 'the installed program does not start'
    models=$(curl --silent --show-error --fail --max-time 30 -H "X-API-Key: $key" "http://$public/api/v1/models") ||
        fail 'a request for data fails'
    [[ $models == *'"atlas"'* ]] || fail "unexpected response: $models"
    kill -TERM "$server"
    wait "$server" || code=$?
    server=
    [[ $code -eq 0 ]] || fail "it exited with code $code"
}

# remaining: the files that the package and the program created or changed, without the databases of packages and users.
remaining() {
    local path
    find "$changes" -mindepth 1 \( ! -type d -o -empty \) -printf '/%P\n' |
        grep -vE '^/(etc/(passwd|group|shadow|gshadow)-?|etc/\.pwd\.lock|var/lib/(dpkg|rpm)/.*|var/log/dpkg\.log|var/cache/ldconfig/.*)$' |
        while IFS= read -r path; do
            # A directory of the system in which a file was removed again.
            [[ -d $path && -d $changes$path ]] || echo "$path"
        done | sed "s|^$data/.*|$data|" | sort -u
}

# life KIND: installs, runs and upgrades a package. The caller removes it.
life() {
    fresh "$1"
    "install_$1" first || fail "$1: it cannot be installed"
    inside scoregate check --config $configuration || fail "$1: the installed configuration is invalid"
    inside systemd-analyze verify --man=no $unit || fail "$1: the installed unit is invalid"
    inside systemd-analyze security --offline=yes --no-pager --threshold=$max_exposure $unit || fail "$1: the exposure is above $max_exposure %"
    inside sh -c 'zcat /usr/share/man/man1/scoregate-keys-create.1.gz | grep -q "^.SH OPTIONS"' || fail "$1: there is no man page"
    [[ $(chroot "$root" stat -c '%a %U %G' $data) == '700 scoregate scoregate' ]] || fail "$1: the data directory does not belong to the service"
    # The operator's settings.
    printf 'listen = "127.0.0.1:0"\ndata_dir = "%s"\nupstream = "built-in"\n[admin]\nlisten = "127.0.0.1:0"\n' $data >"$root$configuration"
    cp "$root$configuration" "$state/edited"
    key=$( (as_service /usr/bin/scoregate keys create --name package --tier pro --config $configuration 2>>"$state/log") ) || fail "$1: no key can be created"
    (as_service /usr/bin/scoregate scoring import /tmp/runs.jsonl --config $configuration >>"$state/log" 2>&1) || fail "$1: no runs can be imported"
    answers
    "install_$1" later || fail "$1: it cannot be upgraded"
    [[ $("version_$1") == 99.0.0~rc.1* ]] || fail "$1: the installed version is $("version_$1")"
    cmp "$state/edited" "$root$configuration" || fail "$1: the upgrade changed the configuration"
    # With the key from before.
    answers
}

# expect KIND PATH...: only these paths remain.
expect() {
    local kind=$1
    shift
    diff <(printf '%s\n' "$@") <(remaining) || fail "$kind: other files remain"
    [[ -s $root$data/scoregate.db ]] || fail "$kind: the data is lost"
}

install_deb() {
    # Without triggers, which would rebuild the index of all man pages.
    inside sh -c "dpkg --no-triggers --force-confold --install /tmp/$1/*.deb"
}
version_deb() {
    dpkg-query --admindir "$root/var/lib/dpkg" --showformat '${Version}' --show scoregate
}
# restarts VERSION: whether the .deb restarts a running service after an upgrade, as recorded in place of systemctl.
restarts() {
    mkdir -p "$root/run/systemd/system" "$root/tmp/recorded"
    printf '#!/bin/sh\necho "$@" >>/tmp/recorded/calls\n' >"$root/tmp/recorded/systemctl"
    chmod 0755 "$root/tmp/recorded/systemctl"
    : >"$root/tmp/recorded/calls"
    inside env PATH=/tmp/recorded:/usr/sbin:/usr/bin sh /var/lib/dpkg/info/scoregate.postinst configure "$1" || fail 'deb: an upgrade fails'
    rm -r "$root/run/systemd"
    grep -q try-restart "$root/tmp/recorded/calls"
}
fresh bare
umount "$root/proc"
install_deb first || fail 'deb: it cannot be installed without /proc'
[[ $(chroot "$root" stat -c '%a %U %G' $data) == '700 scoregate scoregate' ]] || fail 'deb: without /proc there is no data directory'
life deb
restarts 0.1.0 || fail 'deb: an upgrade does not restart the service'
! restarts '' || fail 'deb: an installation starts the service'
echo 'listen = 1' >"$root$configuration"
! restarts 0.1.0 || fail 'deb: a service whose settings are refused is restarted'
cp "$state/edited" "$root$configuration"
inside dpkg --no-triggers --remove scoregate || fail 'deb: it cannot be removed'
expect deb $configuration $configuration.dpkg-dist $data
inside dpkg --no-triggers --purge scoregate || fail 'deb: it cannot be purged'
expect deb $data

# No rpm provides the C library here.
install_rpm() {
    inside sh -c "rpm --dbpath /var/lib/rpm --force-debian --nodeps --upgrade /tmp/$1/*.rpm"
}
version_rpm() {
    rpm --root "$root" --dbpath /var/lib/rpm --query --queryformat '%{VERSION}' scoregate
}
life rpm
inside rpm --dbpath /var/lib/rpm --force-debian --nodeps --erase scoregate || fail 'rpm: it cannot be removed'
expect rpm $configuration.rpmnew $configuration.rpmsave $data

echo "packages: two builds are equal; deb and rpm were installed, answered, kept their settings in an upgrade, and left only $data ($(du -ch --apparent-size "$state"/first/*.deb | tail -n 1 | cut -f 1) deb)"
