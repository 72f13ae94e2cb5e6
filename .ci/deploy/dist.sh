#!/usr/bin/env bash
# Checks the script that builds the shipped program. The compiler of these checks only copies BINARY, so that they take seconds;
# with SCOREGATE_FULL=1 the program is also built twice with a profile, in two directories, and both have the same bytes.
#
#   .ci/deploy/dist.sh BINARY
set -euo pipefail
cd "$(dirname "$0")/../.."
state=$(mktemp -d)
trap 'rm -rf "$state"' EXIT
host=$(rustc -vV | sed -n 's/^host: //p')
binary=$state/program
strip --strip-debug -o "$binary" "$1"
llvm=$(rustc -vV | sed -n 's/^LLVM version: \([0-9]*\).*/\1/p')

fail() {
    echo "$1" >&2
    [[ ! -s $state/output ]] || cat "$state/output" >&2
    exit 1
}

# A tree with the script, and tools that record how they are called.
mkdir -p "$state/tree/deploy" "$state/tools" "$state/sysroot"
cp -r deploy/dist "$state/tree/deploy/"
tool() {
    { echo '#!/usr/bin/env bash'; cat; } >"$state/tools/$1"
    chmod +x "$state/tools/$1"
}
# An instrumented program writes its counts when it ends. Settings of Cargo's profile are part of the names of functions, so
# both builds must have the same.
tool cargo <<TOOL
if env | grep ^CARGO_PROFILE; then exit 1; fi
# The program prints them.
[[ -n \$SCOREGATE_COMMIT && \$SCOREGATE_PROFILE == dist ]] || exit 1
while [[ \$1 != --target-dir ]]; do shift; done
mkdir -p "\$2/\$HOST/dist"
tr '\\037' ' ' <<<"\$CARGO_ENCODED_RUSTFLAGS" >>"$state/builds"
if [[ \$CARGO_ENCODED_RUSTFLAGS == *-Cprofile-generate* ]]; then
    printf '#!/usr/bin/env bash\\necho "\$1" >"\${LLVM_PROFILE_FILE/\\%%p/\$\$}"\\nexec "$binary" "\$@"\\n' >"\$2/\$HOST/dist/scoregate"
else
    cp "$binary" "\$2/\$HOST/dist/scoregate"
fi
chmod +x "\$2/\$HOST/dist/scoregate"
TOOL
tool rustc <<TOOL
case \$1 in
-vV) printf 'host: %s\nLLVM version: $llvm.1.2\n' "\$HOST" ;;
--print) echo "$state/sysroot" ;;
*) exec "$(command -v rustc)" "\$@" ;;
esac
TOOL
tool apt-get <<<'exit 1'
tool profdata <<TOOL
case \$1 in
merge) cat "\${@:4}" >"\$3" ;;
show) nm "$binary" | awk '{ print "  file.rs;" \$3 "'"\${OTHER:-}"':" }' ;;
*) echo "LLVM version \$VERSION.1.8" ;;
esac
TOOL
mv "$state/tools/profdata" "$state/tools/llvm-profdata-$llvm"

run() {
    env -u LLVM_PROFDATA PATH="$state/tools:$PATH" DIST_TRAINING_SECONDS=0.5 "$state/tree/deploy/dist/build.sh" "$@" >"$state/output" 2>&1
}
# build ARGUMENT...: runs the script with these tools and the environment of the call.
build() {
    rm -f "$state/builds"
    run "$@" || fail 'the shipped program cannot be built'
    (cd "$state/tree/target/dist" && sha256sum --quiet --check SHA256SUMS) || fail 'a checksum is wrong'
}
says() {
    grep -q -- "$1" "$state/output" || fail "the output lacks: $1"
}
# builds FLAG...: as many compilations as flags, each with its flag.
builds() {
    [[ $(wc -l <"$state/builds") -eq $# ]] || fail "$(cat "$state/builds"): expected $# builds"
    while [[ $# -gt 0 ]]; do
        sed -n "$(($(wc -l <"$state/builds") - $# + 1))p" "$state/builds" | grep -q -- "$1" || fail "$(cat "$state/builds"): expected $1"
        shift
    done
}

HOST=x86_64-unknown-linux-gnu VERSION=$llvm build
builds -Cprofile-generate "-Cprofile-use=$state/tree/target/dist/scoregate.profdata"
for kind in hits compressed 304 401 429 HTTP/2 TLS 'HTTP/2 with TLS'; do
    says "^$kind: [1-9]"
done
[[ $(grep -c serve "$state/tree/target/dist/scoregate.profdata") -eq 2 ]] || fail 'the profile lacks the counts of a gateway'
[[ ! -e $state/tree/target/dist/instrumented && ! -e $state/tree/target/dist/training ]] || fail 'the instrumented build is left'

cp "$state/tree/target/dist/scoregate.profdata" "$state/of_a_release"
HOST=x86_64-unknown-linux-gnu VERSION=$llvm build --profile "$state/of_a_release"
builds "-Cprofile-use=$state/tree/target/dist/scoregate.profdata"

if HOST=x86_64-unknown-linux-gnu VERSION=$llvm OTHER=x run; then
    fail 'a profile of another program is not detected'
fi
says 'the profile is of another program'

HOST=x86_64-unknown-linux-gnu VERSION=1 build
builds /scoregate
says "llvm-profdata of LLVM $llvm is missing: the program is built without a profile"
HOST=aarch64-unknown-linux-gnu VERSION=$llvm build --profile "$state/of_a_release"
builds /scoregate
says 'aarch64-unknown-linux-gnu: the program is built without a profile'
[[ $(cut -c 67- "$state/tree/target/dist/SHA256SUMS") == scoregate ]] || fail 'there is a checksum of a profile'

# The image gets the tool from a package.
[[ $host != x86_64-* ]] || grep -q " llvm-$llvm " deploy/container/Dockerfile || fail "the Dockerfile does not install llvm-$llvm, which rustc needs"

if [[ ${SCOREGATE_FULL:-} == 1 ]]; then
    deploy/dist/build.sh
    mkdir "$state/elsewhere"
    git ls-files -z | tar --create --null --files-from - | tar --extract --directory "$state/elsewhere"
    "$state/elsewhere/deploy/dist/build.sh" --profile target/dist/scoregate.profdata
    cmp target/dist/scoregate "$state/elsewhere/target/dist/scoregate"
fi
echo 'dist: the script trains the program, repeats a release, and builds without a profile where it cannot be made'
