#!/usr/bin/env bash
# Runs the test command on a minimal Debian, which shows that it installs everything it needs: a minbase root made by
# debootstrap with gcc, libc6-dev, ca-certificates and this machine's Rust toolchain. Its / is not a mount point.
#
#   .ci/bare_debian.sh [STEP...]
#
# Requires root, debootstrap and up to 15 GB below TMPDIR. The root is deleted at the end; with BARE_DEBIAN=DIR it is
# created in DIR and kept for the next run. Package sources, certificates and proxies are those of this machine.
set -euo pipefail
cd "$(dirname "$0")/.."
readonly suite=bookworm tree=$PWD

# Separate mount and process namespaces, which end with this script.
if [[ -z ${BARE_DEBIAN_INSIDE:-} ]]; then
    exec unshare --mount --propagation private --pid --fork --kill-child env BARE_DEBIAN_INSIDE=1 "$0" "$@"
fi
umask 022
work=${BARE_DEBIAN:-$(mktemp -d)}
root=$work/root
clean() {
    local mounted
    for mounted in "${mounts[@]}"; do
        umount --lazy --recursive "$root$mounted" || true
    done
    [[ -n ${BARE_DEBIAN:-} ]] || rm -rf --one-file-system "$work"
}
mounts=()
trap clean EXIT

# bind DIR: mounts the directory read-only at the same path inside the root.
bind() {
    mkdir -p "$root$1"
    mount --bind "$1" "$root$1"
    mounts=("$1" "${mounts[@]}")
    mount -o remount,bind,ro "$root$1"
}

if [[ ! -e $work/complete ]]; then
    mirror=$(apt-get indextargets --format '$(REPO_URI)' "Codename: $suite" 'Created-By: Packages' | head -n 1)
    rm -rf --one-file-system "$root"
    debootstrap --variant=minbase --include=gcc,libc6-dev,ca-certificates "$suite" "$root" ${mirror:+"$mirror"} >"$work/log" || {
        tail -n 5 "$work/log" >&2
        exit 1
    }
    touch "$work/complete"
fi

# The package sources of this machine.
apt-config dump Acquire >"$root/etc/apt/apt.conf.d/90machine"
for file in /etc/resolv.conf /etc/hosts /etc/pip.conf /etc/ssl/certs/ca-certificates.crt; do
    [[ ! -e $file ]] || cp --dereference "$file" "$root$file"
done
cargo=${CARGO_HOME:-$HOME/.cargo}
for directory in "$cargo/registry" /etc/apt/auth.conf.d /etc/apt/keyrings /usr/local/share/ca-certificates; do
    [[ ! -d $directory ]] || { mkdir -p "$root$directory" && cp -a "$directory/." "$root$directory/"; }
done
[[ ! -e $cargo/config.toml ]] || cp "$cargo/config.toml" "$root$cargo/"
mapfile -t settings < <(env | grep -E '^(PIP_|CARGO_(HTTP|NET|REGISTR|SOURCE)|SSL_CERT_|[A-Za-z]+_(proxy|PROXY)=)' || true)
[[ ! -d ${PIP_FIND_LINKS:-} ]] || bind "$PIP_FIND_LINKS"

# The toolchain without rustup, and the tree as git would commit it.
toolchain=$(rustc --print sysroot)
bind "$toolchain"
mkdir -p "$root$tree" "$root$HOME"
git ls-files -z --cached --others --exclude-standard | tar --create --null --files-from - | tar --extract --directory "$root$tree"

mkdir -p "$root"/{proc,sys,dev}
mount -t proc proc "$root/proc"
mount --rbind /sys "$root/sys"
mount --rbind /dev "$root/dev"
mounts=(/proc /sys /dev "${mounts[@]}")

# Starts in /. Of this machine's environment, only the settings of package sources are passed.
env -i HOME="$HOME" CARGO_HOME="$cargo" LANG=C.UTF-8 "${settings[@]}" \
    PATH="$toolchain/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin" \
    chroot "$root" "$tree/.ci/check" "$@"
