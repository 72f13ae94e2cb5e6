#!/usr/bin/env bash
# Builds the program that is shipped: Cargo's profile `dist`, optimised by a profile of requests on loopback.
#
#   deploy/dist/build.sh                  builds an instrumented program, runs training.rs against it, and builds the program
#   deploy/dist/build.sh --profile FILE   builds the program with the profile of a release
#   deploy/dist/build.sh --bench          builds the bench `peers` likewise, whose servers are then compared with the program
#
# The results are in target/dist: `scoregate`, `scoregate.profdata` and their checksums in SHA256SUMS. The same commit, profile,
# toolchain and C compiler give the same bytes in any directory. Without a matching llvm-profdata, and on machines other than
# x86-64, the program is built without a profile, and the output says so.
set -euo pipefail
cd "$(dirname "$0")/../.."
out=$PWD/target/dist
# `scoregate version --verbose` prints it.
commit=${SCOREGATE_COMMIT:-$(git describe --always --abbrev=40 --dirty --exclude '*' 2>/dev/null || echo unknown)}
host=$(rustc -vV | sed -n 's/^host: //p')
# The formats of profiles change with LLVM.
llvm=$(rustc -vV | sed -n 's/^LLVM version: \([0-9]*\).*/\1/p')
# Seconds of hits in the training; each other kind of request gets a tenth.
readonly seconds=${DIST_TRAINING_SECONDS:-10}

# compile DIRECTORY [FLAG...]: compiles the program below a directory, with these flags of rustc. With --target, they do not
# apply to build scripts. No path of this machine gets into the program.
compile() {
    local directory=$1 flags
    shift
    flags=("--remap-path-prefix=${CARGO_HOME:-$HOME/.cargo}=/cargo" "--remap-path-prefix=$PWD=/scoregate"
        "--remap-path-prefix=$directory=/target" "$@")
    SCOREGATE_COMMIT=$commit SCOREGATE_PROFILE=dist CARGO_ENCODED_RUSTFLAGS=$(IFS=$'\x1f' && printf '%s' "${flags[*]}") \
        cargo build --profile dist --locked "${target[@]}" --target "$host" --target-dir "$directory"
}

# compiled DIRECTORY: prints the path of what was compiled.
compiled() {
    if [[ $name == scoregate ]]; then
        echo "$1/$host/dist/scoregate"
    else
        find "$1/$host/dist/deps" -name "$name-*" -type f -executable -printf '%T@ %p\n' | sort -n | tail -n 1 | cut -d ' ' -f 2
    fi
}

# profdata: prints the command llvm-profdata that reads the profiles of this rustc. Debian's package is unpacked, not installed.
profdata() {
    local command tools=$out/llvm-$llvm package
    local unpacked=$tools/usr/lib/llvm-$llvm/bin/llvm-profdata
    export LD_LIBRARY_PATH=$tools/usr/lib/x86_64-linux-gnu:$tools/lib/x86_64-linux-gnu:${LD_LIBRARY_PATH:-}
    if [[ -z ${LLVM_PROFDATA:-} && ! -e $unpacked ]] && ! command -v "llvm-profdata-$llvm" >/dev/null; then
        mkdir -p "$tools/archives/partial"
        # Only what is not installed. This needs no privileges.
        apt-get install --download-only --no-install-recommends --yes -o Debug::NoLocking=1 \
            -o "Dir::Cache::archives=$tools/archives" "llvm-$llvm" >"$tools/log" 2>&1 || true
        for package in "$tools"/archives/*.deb; do
            [[ ! -e $package ]] || dpkg-deb --extract "$package" "$tools"
        done
        rm -rf "$tools/archives"
    fi
    for command in ${LLVM_PROFDATA:-} "$(rustc --print sysroot)/lib/rustlib/$host/bin/llvm-profdata" "llvm-profdata-$llvm" "$unpacked"; do
        if "$command" --version 2>/dev/null | grep -q "LLVM version $llvm\\."; then
            # Its libraries may be beside it.
            printf 'LD_LIBRARY_PATH=%s %s\n' "$LD_LIBRARY_PATH" "$command"
            return 0
        fi
    done
    return 1
}

# serve PROGRAM DIRECTORY: starts a gateway with the settings of the directory, and sets `address`.
serve() {
    local line lines=
    mkfifo "$2/log"
    "$1" serve --config "$2/scoregate.toml" >/dev/null 2>"$2/log" &
    gateway=$!
    exec 9<"$2/log"
    address=
    while [[ -z $address ]] && IFS= read -r line <&9; do
        lines+=$line$'\n'
        [[ $line != *' public='* ]] || address=$(sed 's/.* public=\([^ ]*\).*/\1/' <<<"$line")
    done
    # The rest of its log must not fill the pipe.
    cat <&9 >/dev/null &
    exec 9<&-
    rm "$2/log"
    [[ -n $address ]] || { printf 'the program does not start:\n%s' "$lines" >&2 && false; }
}

stop() {
    kill -TERM "$gateway"
    wait "$gateway"
    gateway=
}

# train PROGRAM DIRECTORY: runs the training against the program, with a directory for everything that it leaves.
train() {
    local program=$1 directory=$2 model hour key spent keys=()
    mkdir -p "$directory"
    cat >"$directory/scoregate.toml" <<TOML
listen = "127.0.0.1:0"
admin.listen = "127.0.0.1:0"
data_dir = "$directory/data"
upstream = "built-in"
guard.per_minute = 100000000
freshness.probe = false
server.workers = 1
[tiers.training]
minute = 1000000000
day = 1000000000
paid = true
[tiers.spent]
minute = 1
day = 1000
paid = true
TOML
    # A list of realistic size.
    for model in {10..29}; do
        for hour in 1 2 3; do
            printf '{"id":"%s-%s","model":{"id":"model-%s","name":"Model %s","provider":"meridian","priceInput":1,"priceOutput":4},"suite":"coding","time":"%s","trials":[{"scores":{"correctness":0.%s,"spec":0.8,"codeQuality":0.7,"efficiency":0.6,"stability":0.5,"refusal":1,"recovery":0.4},"latencyMs":900,"cost":0.01}]}\n' \
                "$model" $hour "$model" "$model" "$(date -u -d "-$hour hours" +%Y-%m-%dT%H:%M:%SZ)" "$model"
        done
    done >"$directory/runs.jsonl"
    "$program" scoring import "$directory/runs.jsonl" --config "$directory/scoregate.toml" >/dev/null
    for key in 1 2 3 4; do
        keys+=("$("$program" keys create --name "$key" --tier training --config "$directory/scoregate.toml")")
    done
    spent=$("$program" keys create --name spent --tier spent --config "$directory/scoregate.toml")
    rustc --edition 2024 -O -D warnings -o "$directory/training" deploy/dist/training.rs
    serve "$program" "$directory"
    "$directory/training" "$seconds" "$address" clear "$spent" "${keys[@]}"
    stop
    if ! command -v openssl >/dev/null; then
        echo 'openssl is missing: the training has no TLS' >&2
        return 0
    fi
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=localhost -addext subjectAltName=DNS:localhost \
        -keyout "$directory/key.pem" -out "$directory/certificate.pem" 2>/dev/null
    printf '[tls.default]\ncertificate = "%s"\nkey = "%s"\n' "$directory/certificate.pem" "$directory/key.pem" >>"$directory/scoregate.toml"
    serve "$program" "$directory"
    "$directory/training" "$seconds" "$address" tls "$spent" "${keys[@]}"
    stop
}

# record MERGE: makes the profile in target/dist by an instrumented build and its training.
record() {
    local merge=$1 directory=$out/instrumented program
    # The settings of Cargo's profile are part of the names of functions: with others, the counts would belong to none.
    compile "$directory" -Cprofile-generate
    program=$(compiled "$directory")
    rm -rf "$out/training"
    export LLVM_PROFILE_FILE=$out/training/counts-%p.profraw
    if [[ $name == scoregate ]]; then
        train "$program" "$out/training"
    else
        # The bench itself at its small size. Its servers count as well.
        "$program" --bench 'bare hyper' sketch
    fi
    unset LLVM_PROFILE_FILE
    env $merge merge --output "$out/$name.profdata" "$out"/training/*.profraw
    rm -rf "$out/training" "$directory"
}

# applies MERGE: fails unless the program has functions of the profile. A profile with other names has no effect, and rustc does
# not report that.
applies() {
    local functions known
    nm "$out/$name" | cut -d ' ' -f 3 | sort -u >"$out/functions"
    functions=$(wc -l <"$out/functions")
    known=$(env $1 show --all-functions "$profile" | sed -n 's/^  \([^ ].*\):$/\1/p' | sed 's/.*;//' | sort -u |
        comm -12 - "$out/functions" | wc -l)
    rm "$out/functions"
    echo "the profile has counts for $known of $functions functions"
    ((known * 10 > functions)) || {
        echo 'the profile is of another program' >&2
        return 1
    }
}

clean() {
    [[ -z ${gateway:-} ]] || kill -KILL "$gateway" 2>/dev/null || true
}
trap clean EXIT

name=scoregate target=(--bin scoregate) given=
case "$# ${1:-}" in
'0 ') ;;
'1 --bench') name=peers target=(--bench peers) ;;
'2 --profile') given=$(realpath "$2") ;;
*) false ;;
esac || {
    sed -n '2,/^set/s/^# \{0,1\}//p' "$0" >&2
    exit 2
}
mkdir -p "$out"
merge=
profile=$out/$name.profdata
if [[ $host != x86_64-* ]]; then
    echo "$host: the program is built without a profile, since profiles are made on x86-64" >&2
    rm -f "$profile"
elif [[ -n $given ]]; then
    [[ $given -ef $profile ]] || cp "$given" "$profile"
elif merge=$(profdata); then
    record "$merge"
else
    merge=
    echo "llvm-profdata of LLVM $llvm is missing: the program is built without a profile. Install llvm-$llvm or set LLVM_PROFDATA" >&2
    rm -f "$profile"
fi
flags=()
[[ ! -e $profile ]] || flags=("-Cprofile-use=$profile")
compile "$out/build" "${flags[@]}"
cp "$(compiled "$out/build")" "$out/$name"
[[ -z $merge ]] || applies "$merge"
if [[ $name == scoregate ]]; then
    cd "$out"
    results=(scoregate)
    [[ ! -e $profile ]] || results+=(scoregate.profdata)
    sha256sum "${results[@]}" | tee SHA256SUMS
fi
