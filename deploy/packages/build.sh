#!/usr/bin/env bash
# Packs a built program: a .deb, an .rpm and a .tar.gz, an SBOM, and their checksums in SHA256SUMS.
#
#   deploy/packages/build.sh [--binary FILE] [--to DIR] [--version NUMBER] [--sbom]
#
# FILE is target/dist/scoregate by default, and must run on this machine, since it writes its man pages and completions. DIR is
# target/packages; what is in it is replaced. The packages have the version of the program unless another one is given. --sbom
# lists the dependencies in CycloneDX's format, with cargo-cyclonedx, which is installed below target/tools if it is missing.
#
# The same program, files and SOURCE_DATE_EPOCH (by default the time of the commit) give the same bytes, in any directory and
# with any umask. It needs dpkg-deb, rpmbuild (Debian's package `rpm`) and readelf.
set -euo pipefail
cd "$(dirname "$0")/../.."
umask 022
export LC_ALL=C TZ=UTC
readonly cyclonedx=0.5.9 maintainer="The authors of scoregate <scoregate@localhost>"

binary=target/dist/scoregate out=target/packages version='' sbom=
while [[ $# -gt 0 ]]; do
    case $1 in
    --binary) binary=${2:?} && shift ;;
    --to) out=${2:?} && shift ;;
    --version) version=${2:?} && shift ;;
    --sbom) sbom=yes ;;
    *)
        sed -n '2,/^set/s/^# \{0,1\}//p' "$0" >&2
        exit 2
        ;;
    esac
    shift
done
[[ -n $version ]] || version=$("$binary" version | cut -d ' ' -f 2)
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || echo 0)}
case $(readelf --file-header "$binary" | sed -n 's/^ *Machine: *//p') in
*X86-64) machine=x86_64 debian=amd64 ;;
AArch64) machine=aarch64 debian=arm64 ;;
*) echo "$binary: only x86-64 and AArch64 are packed" >&2 && exit 1 ;;
esac
# In the packages, a version such as 0.2.0-rc.1 is older than 0.2.0. Names of files have no tilde: some services replace it.
readonly package_version=${version/-/\~} file_version=${version/-/.} target=$machine-unknown-linux-gnu
rm -rf "$out"
mkdir -p "$out"
out=$(realpath "$out")
state=$(mktemp -d)
trap 'rm -rf "$state"' EXIT
stage=$state/files

# The newest symbols of the C library that the program uses.
glibc=$(readelf --version-info --wide "$binary" | grep -o 'GLIBC_[0-9.]*' | sort -uV | tail -n 1 | cut -d _ -f 2)
# Units that are disabled before a package is removed.
units=$(cd deploy/systemd && grep -l '^\[Install\]' ./* | sed 's|^\./||' | paste -sd ' ')

# put FILE PATH [MODE]: copies a file, or standard input (-), to its installed path.
put() {
    install -D -m "${3:-0644}" "${1/#-//dev/stdin}" "$stage$2"
}

# The installed files, the same in every package.
lay_out() {
    local unit page
    put "$binary" /usr/bin/scoregate 0755
    # Line numbers are most of a release. The shipped program has none and keeps its checksum.
    if readelf --sections --wide "$binary" | grep -q '\.debug_'; then
        strip --strip-debug "$stage/usr/bin/scoregate"
    fi
    put deploy/scoregate.toml /etc/scoregate/scoregate.toml
    put deploy/packages/sysusers.conf /usr/lib/sysusers.d/scoregate.conf
    put deploy/packages/tmpfiles.conf /usr/lib/tmpfiles.d/scoregate.conf
    for unit in deploy/systemd/*; do
        # A package creates the user, who then also owns files while the service is stopped.
        sed -e 's|/var/lib/private/|/var/lib/|g' -e 's|^# The user exists while the service runs\..*|# sysusers.d and tmpfiles.d create the user and the data directory.|' \
            -e 's|^DynamicUser=yes$|DynamicUser=no|' "$unit" | put - "/usr/lib/systemd/system/${unit##*/}"
    done
    mkdir "$state/man"
    "$binary" man --to "$state/man"
    for page in "$state"/man/*; do
        gzip -9n <"$page" | put - "/usr/share/man/man1/${page##*/}.gz"
    done
    "$binary" completions bash | put - /usr/share/bash-completion/completions/scoregate
    "$binary" completions fish | put - /usr/share/fish/vendor_completions.d/scoregate.fish
    "$binary" completions zsh | put - /usr/share/zsh/site-functions/_scoregate
    put LICENSE /usr/share/doc/scoregate/LICENSE
    gzip -9n <CHANGELOG.md | put - /usr/share/doc/scoregate/CHANGELOG.md.gz
}

# script HEAD BODY: a maintainer script: what a kind of package passes to it, and the steps that both have in common.
script() {
    printf '%s\n' "$1"
    sed -e '/^#/d' -e "s/@UNITS@/$units/" "deploy/packages/$2.sh"
}

same_times() {
    find "$1" -exec touch --no-dereference --date "@$SOURCE_DATE_EPOCH" {} +
}

tarball() {
    local name=scoregate-$version-$target
    cp -a "$stage" "$state/$name"
    cp LICENSE "$state/$name/"
    tar --create --directory "$state" --sort=name --owner=0 --group=0 --numeric-owner --format=gnu --mtime="@$SOURCE_DATE_EPOCH" "$name" |
        gzip -n >"$out/$name.tar.gz"
}

deb() {
    local root=$state/deb doc=/usr/share/doc/scoregate
    cp -a "$stage" "$root"
    # Debian's places.
    mkdir "$root/usr/share/zsh/vendor-completions"
    mv "$root/usr/share/zsh/site-functions/_scoregate" "$root/usr/share/zsh/vendor-completions/"
    rmdir "$root/usr/share/zsh/site-functions"
    rm "$root$doc/LICENSE"
    cp deploy/packages/copyright "$root$doc/copyright"
    printf 'scoregate (%s) stable; urgency=medium\n\n  * See CHANGELOG.md.gz.\n\n -- %s  %s\n' "$package_version" "$maintainer" \
        "$(date -R -d "@$SOURCE_DATE_EPOCH")" | gzip -9n >"$root$doc/changelog.gz"
    mkdir "$root/DEBIAN"
    (cd "$root" && find usr etc -type f | sort | xargs md5sum) >"$root/DEBIAN/md5sums"
    echo /etc/scoregate/scoregate.toml >"$root/DEBIAN/conffiles"
    script $'#!/bin/sh\nset -e\n[ "$1" = configure ] || exit 0\nupgraded=${2:+yes}' after-install >"$root/DEBIAN/postinst"
    script $'#!/bin/sh\nset -e\n[ "$1" = remove ] || exit 0' before-remove >"$root/DEBIAN/prerm"
    script $'#!/bin/sh\nset -e\npurged=\n[ "$1" != purge ] || purged=yes' after-remove >"$root/DEBIAN/postrm"
    chmod 0755 "$root"/DEBIAN/{postinst,prerm,postrm}
    cat >"$root/DEBIAN/control" <<CONTROL
Package: scoregate
Version: $package_version
Architecture: $debian
Maintainer: $maintainer
Installed-Size: $(find "$root" -path "$root/DEBIAN" -prune -o -type f -printf '%s\n' | awk '{ sum += int(($1 + 1023) / 1024) } END { print sum }')
Depends: libc6 (>= $glibc), libgcc-s1, systemd | systemd-sysusers
Section: httpd
Priority: optional
Description: gateway of a public data API for AI-model benchmarks
 A read-through caching API gateway in one program: keys, rate limits, daily
 quotas and a cache of documents in front of one slow scoring backend.
CONTROL
    same_times "$root"
    # One thread: the bytes must not depend on the number of cores.
    dpkg-deb --root-owner-group --threads-max=1 -Zgzip --build "$root" "$out/scoregate_${file_version}_$debian.deb" >/dev/null
}

rpm() {
    local spec=$state/scoregate.spec
    {
        sed -e "s/@VERSION@/$package_version/" -e "s|@STAGE@|$stage|" deploy/packages/scoregate.spec
        printf '\n%%post\n' && script $'upgraded=\n[ "$1" -lt 2 ] || upgraded=yes' after-install
        printf '\n%%preun\n' && script '[ "$1" -eq 0 ] || exit 0' before-remove
        printf '\n%%postun\n' && script 'purged=' after-remove
        printf '\n%%files\n%%dir /etc/scoregate\n%%config(noreplace) /etc/scoregate/scoregate.toml\n'
        echo '%license /usr/share/doc/scoregate/LICENSE'
        # Directories that may belong to no other package, and the files.
        (cd "$stage" && find usr/share -mindepth 1 -type d ! -name 'man*' ! -name doc -printf '%%dir /%p\n' | sort)
        (cd "$stage" && find usr -type f ! -name LICENSE -printf '/%p\n' | sort)
    } >"$spec"
    same_times "$stage"
    rpmbuild -bb --quiet --target "$machine" --define "_topdir $state/rpm" --define "_rpmdir $state/built" "$spec" >/dev/null
    mv "$state"/built/*.rpm "$out/scoregate-$file_version-1.$machine.rpm"
}

# The crates that are compiled into the program. Its tool writes beside Cargo.toml and names the directory of the source.
sbom() {
    local tool=$PWD/target/tools/bin/cargo-cyclonedx name=scoregate-$version-$target
    if [[ $("$tool" cyclonedx --version 2>/dev/null) != *" $cyclonedx" ]]; then
        CARGO_PROFILE_DEV_DEBUG=0 cargo install cargo-cyclonedx --quiet --locked --debug --force --version $cyclonedx --root target/tools
    fi
    "$tool" cyclonedx --quiet --format json --spec-version 1.5 --describe binaries --no-build-deps --target "$target"
    sed "s|file://$PWD|file:///scoregate|g" scoregate_bin.cdx.json >"$out/$name.cdx.json"
    rm scoregate_bin.cdx.json
}

lay_out
tarball
deb
rpm
[[ -z $sbom ]] || sbom
cd "$out"
sha256sum -- * >"$state/sums"
mv "$state/sums" SHA256SUMS
cat SHA256SUMS
