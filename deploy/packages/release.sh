#!/usr/bin/env bash
# The steps of a release, one for each step of .github/workflows/release.yml. TAG is `v` with the version of Cargo.toml; NAME is the
# address of the image without a version. The results are below target/packages, and the files of the image in target/image.tar.
#
#   deploy/packages/release.sh check TAG         fails unless the tag is the version, CHANGELOG.md has a section with a date, and the
#                                                commit is part of origin/main, if that branch is known
#   deploy/packages/release.sh notes TAG         prints this section
#   deploy/packages/release.sh build             builds the program, its packages and the files of its image
#   deploy/packages/release.sh login NAME        signs in to the registry with REGISTRY_USER and REGISTRY_TOKEN
#   deploy/packages/release.sh image NAME        builds the image of this machine's architecture from these files and pushes it
#   deploy/packages/release.sh manifest NAME     joins the images of amd64 and arm64, and prints `name=…` and `digest=…`
#   deploy/packages/release.sh collect DIR       checks the packages in the directories below DIR and moves them to target/packages
#   deploy/packages/release.sh chart             packs the Helm chart into target/packages
#   deploy/packages/release.sh sign [IMAGE]      signs the checksums, or an image by its digest, without a key: by the identity of the
#                                                workflow. Without an identity it signs nothing and says so
#   deploy/packages/release.sh publish TAG       creates the release with everything in target/packages
set -euo pipefail
cd "$(dirname "$0")/../.."
readonly packages=target/packages

version() {
    sed -n '/^\[workspace.package\]/,/^$/s/^version = "\(.*\)"$/\1/p' Cargo.toml
}

notes() {
    awk -v heading="## ${1#v}, " 'index($0, "## ") == 1 && found && /^## [0-9]/ { exit }
        found { print }
        index($0, heading) == 1 && /, [0-9]+-[0-9]+-[0-9]+$/ { found = 1 }' CHANGELOG.md
}

check() {
    [[ $1 == "v$(version)" ]] || { echo "the tag is $1, but the version in Cargo.toml is $(version)" >&2 && false; }
    notes "$1" | grep -q . || { echo "CHANGELOG.md has no section \`## ${1#v}, YYYY-MM-DD\`" >&2 && false; }
    if git rev-parse --quiet --verify origin/main >/dev/null && ! git merge-base --is-ancestor HEAD origin/main; then
        echo 'the commit of the tag is not part of origin/main' >&2 && false
    fi
}

build() {
    if [[ -n ${CI:-} && $(id -u) -eq 0 ]]; then
        apt-get update -qq
        DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends openssl rpm
    fi
    # In a container, the checkout belongs to another user.
    export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=safe.directory GIT_CONFIG_VALUE_0=$PWD
    # The compiler of the pinned image, and not the newest one of the channel in rust-toolchain.toml.
    [[ -z ${RUST_VERSION:-} ]] || export RUSTUP_TOOLCHAIN=$RUST_VERSION
    deploy/dist/build.sh
    [[ $(uname -m) != x86_64 || -e target/dist/scoregate.profdata ]] || { echo 'the program was built without a profile' >&2 && false; }
    deploy/packages/build.sh --sbom
    if [[ -e target/dist/scoregate.profdata ]]; then
        cp target/dist/scoregate.profdata "$packages/scoregate-$(version)-$(uname -m).profdata"
        (cd "$packages" && sha256sum -- *.profdata >>SHA256SUMS)
    fi
    rm -rf target/image
    deploy/container/build.sh --plain target/image --binary target/dist/scoregate
    tar --create --file target/image.tar --directory target image
}

# Registries have addresses in lower case, and owners may not.
login() {
    set -- "${1,,}"
    docker login "${1%%/*}" --username "$REGISTRY_USER" --password-stdin <<<"$REGISTRY_TOKEN"
}

image() {
    local arch name
    arch=$(dpkg --print-architecture)
    name=${1,,}:$(version)-$arch
    tar --extract --no-same-owner --file target/image.tar --directory target
    deploy/container/build.sh --tag "$name" --from target/image
    docker push "$name"
}

manifest() {
    set -- "${1,,}"
    local tags=(--tag "$1:$(version)") arch images=()
    [[ $(version) == *-* ]] || tags+=(--tag "$1:latest")
    for arch in amd64 arm64; do
        images+=("$1:$(version)-$arch")
    done
    docker buildx imagetools create "${tags[@]}" "${images[@]}" >&2
    echo "name=$1"
    echo "digest=$(docker buildx imagetools inspect --format '{{.Manifest.Digest}}' "$1:$(version)")"
}

collect() {
    local directory
    mkdir -p "$packages"
    for directory in "$1"/*/; do
        (cd "$directory" && sha256sum --quiet --check SHA256SUMS)
        cat "$directory/SHA256SUMS" >>"$packages/sums"
        rm "$directory/SHA256SUMS"
        mv "$directory"/* "$packages/"
    done
    mv "$packages/sums" "$packages/SHA256SUMS"
}

sign() {
    if [[ -z ${ACTIONS_ID_TOKEN_REQUEST_URL:-}${SIGSTORE_ID_TOKEN:-} ]]; then
        echo 'no identity is available: nothing is signed' >&2
    elif [[ $# -eq 1 ]]; then
        cosign sign --yes "${1,,}"
    else
        cosign sign-blob --yes --bundle "$packages/SHA256SUMS.sigstore.json" "$packages/SHA256SUMS"
    fi
}

publish() {
    local files=("$packages"/*) options=()
    [[ $1 != *-* ]] || options=(--prerelease)
    {
        notes "$1"
        printf '\nThe packages and the image for arm64 are not yet verified: they were built, but no test ran them.\n'
    } | gh release create "$1" --verify-tag --title "${1#v}" --notes-file - "${options[@]}" "${files[@]}"
}

chart() {
    mkdir -p "$packages"
    helm package deploy/helm --version "$(version)" --app-version "$(version)" --destination "$packages"
    (cd "$packages" && sha256sum -- scoregate-*.tgz >>SHA256SUMS)
}

case "${1:-} $#" in
'check 2' | 'notes 2' | 'build 1' | 'login 2' | 'image 2' | 'manifest 2' | 'collect 2' | 'sign 1' | 'sign 2' | 'publish 2' | 'chart 1') "$@" ;;
*)
    sed -n '2,/^set/s/^# \{0,1\}//p' "$0" >&2
    exit 2
    ;;
esac
