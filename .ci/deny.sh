#!/usr/bin/env bash
# deny.sh FILE: checks licences, bans and sources of all dependencies against deny.toml, and published advisories about
# them. If the advisory database cannot be fetched, that part is skipped and reported by a line in FILE.
set -euo pipefail
cd "$(dirname "$0")/.."

version=0.20.2
tool=$PWD/target/tools/bin/cargo-deny
if [[ $("$tool" --version 2>/dev/null) != "cargo-deny $version" ]]; then
    # Not optimised: the build takes a minute, and a check five seconds.
    CARGO_PROFILE_DEV_DEBUG=0 cargo install cargo-deny --quiet --locked --debug --force --version "$version" --root target/tools
fi

# deny MANIFEST ARGUMENT...: runs the checks for one workspace without changing its lock file.
deny() {
    "$tool" --locked --manifest-path "$1" check "${@:2}"
}

# An unused entry of deny.toml is a warning and fails the step. The fuzz targets are a separate workspace with fewer
# dependencies, which does not use every entry.
program=(Cargo.toml -D warnings)
fuzz=(tests/fuzz/Cargo.toml -A license-not-encountered -A unnecessary-skip -A unmatched-skip -A unused-wrapper)

deny "${program[@]}" licenses bans sources
deny "${fuzz[@]}" licenses bans sources
if GIT_TERMINAL_PROMPT=0 timeout 120 "$tool" fetch db; then
    deny "${program[@]}" advisories
    deny "${fuzz[@]}" advisories
else
    echo 'deny advisories (the advisory database cannot be fetched)' >>"$1"
fi
