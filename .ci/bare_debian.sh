#!/usr/bin/env bash
# Runs the test command on a minimal Debian, which shows that it installs everything it needs: a minbase root made by
# debootstrap with gcc, libc6-dev, ca-certificates and this machine's Rust toolchain. Its / is not a mount point.
#
#   .ci/bare_debian.sh [STEP...]   runs .ci/check
#   .ci/bare_debian.sh demo        runs the first command of the README, and the command that it prints
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
mkdir -p "$work"
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

# demo: runs the first command of the README until it serves, and the command that it prints.
demo() {
    local start=$SECONDS
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends make curl >/dev/null
    cd "$1"
    : >/tmp/demo
    # Its words are a command and arguments.
    $(sed -n 's/^\$ //p' README.md | head -n 1) >/tmp/demo 2>/tmp/demo.log &
    until grep -q '^build' /tmp/demo; do
        kill -0 $! || { tail -n 20 /tmp/demo.log >&2 && return 1; }
        sleep 1
    done
    echo "served after $((SECONDS - start)) s"
    bash -c "$(grep '^curl ' /tmp/demo) --fail --silent --show-error" | head -c 200
    echo
    kill -INT $!
    wait $!
}
if [[ ${1:-} == demo ]]; then
    set -- bash -euo pipefail -c "$(declare -f demo)"$'\n'"apt-get update -qq && demo '$tree'"
else
    set -- "$tree/.ci/check" "$@"
fi

# Starts in /. Of this machine's environment, only the settings of package sources are passed.
env -i HOME="$HOME" CARGO_HOME="$cargo" LANG=C.UTF-8 "${settings[@]}" \
    PATH="$toolchain/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin" \
    chroot "$root" "$@"
