#!/usr/bin/env bash
# Builds the container image, or the same files in a plain directory.
#
#   deploy/container/build.sh [--tag NAME]                 the image, by docker or podman
#   deploy/container/build.sh --tag NAME --from DIR        the image of the files in DIR, which --plain created
#   deploy/container/build.sh --plain DIR [--binary FILE]  the image's files in DIR, and a list of them; FILE skips the build
#
# The image contains only these files: no shell, no package manager. The Dockerfile uses the second form, so both have the
# same content. Without root, the data directory belongs to the calling user.
set -euo pipefail
cd "$(dirname "$0")/../.."
umask 022

# An id without a user on the host, as in other minimal images.
readonly user=65532

usage() {
    sed -n '2,/^#$/!d; s/^# \{0,1\}//p' "$0" >&2
    sed -n 's/^#   //p' "$0" >&2
    exit 2
}

# lay_out DIR BINARY: installs the files that the program and a container runtime need.
lay_out() {
    local root=$1 binary=$2 library
    install -d -m 0755 "$root" "$root"/{etc,etc/scoregate,usr,usr/bin,var,var/lib}
    install -m 0755 "$binary" "$root/usr/bin/scoregate"
    # Function names are kept for backtraces; line numbers are most of the file and are removed. The shipped program has none
    # and keeps its checksum.
    if readelf --sections --wide "$binary" | grep -q '\.debug_'; then
        strip --strip-debug "$root/usr/bin/scoregate"
    fi
    # The C library and its loader, at the paths that the program uses. Name resolution needs no further library.
    ldd "$binary" | grep -o '/[^ ]*' | while IFS= read -r library; do
        install -D -m 0755 "$(readlink -f "$library")" "$root$library"
    done
    install -m 0644 deploy/container/scoregate.toml "$root/etc/scoregate/scoregate.toml"
    printf 'scoregate:x:%d:%d::/var/lib/scoregate:/nonexistent\n' $user $user >"$root/etc/passwd"
    printf 'scoregate:x:%d:\n' $user >"$root/etc/group"
    printf 'hosts: files dns\n' >"$root/etc/nsswitch.conf"
    chmod 0644 "$root"/etc/{passwd,group,nsswitch.conf}
    install -d -m 0700 "$root/var/lib/scoregate"
    [[ $(id -u) -ne 0 ]] || chown $user:$user "$root/var/lib/scoregate"
}

plain() {
    local root=$1 binary=$2
    if [[ -e $root ]] && [[ -n $(ls -A "$root") ]]; then
        echo "$root is not empty" >&2
        exit 1
    fi
    if [[ -z $binary ]]; then
        deploy/dist/build.sh >&2
        binary=target/dist/scoregate
    fi
    lay_out "$root" "$binary"
    find "$root" -mindepth 1 -printf '%M %U:%G %10s /%P\n' | sort -k 4
}

image() {
    local tag=$1 from=$2 daemon='' options=()
    if [[ -n $from ]]; then
        # A context named like the stage of the compiler replaces it.
        context=$(mktemp -d)
        trap 'rm -rf "$context"' EXIT
        cp -a "$from" "$context/image"
        mv "$context/image/var/lib/scoregate" "$context/data"
        options+=(--build-context "build=$context")
    fi
    [[ -z ${GITHUB_REPOSITORY:-} ]] || options+=(--label "org.opencontainers.image.source=$GITHUB_SERVER_URL/$GITHUB_REPOSITORY")
    for daemon in docker podman ''; do
        [[ -n $daemon ]] && "$daemon" info >/dev/null 2>&1 && break
    done
    if [[ -z $daemon ]]; then
        echo "neither docker nor podman is available; --plain DIR creates the same files without them" >&2
        exit 1
    fi
    DOCKER_BUILDKIT=1 "$daemon" build --file deploy/container/Dockerfile --tag "$tag" "${options[@]}" \
        --build-arg VERSION="$(version)" --build-arg REVISION="$(git rev-parse HEAD 2>/dev/null || echo unknown)" .
}

version() {
    sed -n '/^\[workspace.package\]/,/^$/s/^version = "\(.*\)"$/\1/p' Cargo.toml
}

tag='' root='' binary='' from=''
while [[ $# -gt 0 ]]; do
    [[ $# -ge 2 ]] || usage
    case $1 in
    --tag) tag=$2 ;;
    --from) from=$2 ;;
    --plain) root=$2 ;;
    --binary) binary=$2 ;;
    *) usage ;;
    esac
    shift 2
done
if [[ -n $root ]]; then
    plain "$root" "$binary"
else
    [[ -z $binary ]] || usage
    image "${tag:-scoregate:$(version)}" "$from"
fi
