#!/usr/bin/env bash
# Computes the reference values and scenarios of the scores again, compares them with the committed files, and the scores with
# those of an implementation of docs/scoring.md.
set -euo pipefail
cd "$(dirname "$0")/.."

python=$PWD/target/reference/bin/python
pinned=tests/reference/requirements.txt
if ! "$python" -c 'import numpy, scipy' 2>/dev/null || ! cmp -s "$pinned" target/reference/installed.txt; then
    rm -rf target/reference
    python3 -m venv target/reference
    target/reference/bin/pip install --quiet --disable-pip-version-check --no-deps -r "$pinned"
    cp "$pinned" target/reference/installed.txt
fi

if ! "$python" tests/reference/scoring.py --check tests/reference/scoring.json; then
    echo "tests/reference/scoring.json is stale: write it with $python tests/reference/scoring.py" >&2
    exit 1
fi
if ! "$python" tests/reference/scenarios.py --check tests/reference/scenarios; then
    echo "tests/reference/scenarios is stale: write it with $python tests/reference/scenarios.py" >&2
    exit 1
fi

scored=$PWD/target/reference/scored
rm -rf "$scored"
mkdir "$scored"
SCOREGATE_REFERENCE=$scored cargo test --locked --quiet -p scoregate-scoring --lib rankings_do_not_depend_on_the_steps
"$python" tests/reference/scores.py --check
"$python" tests/reference/example.py --check
if ! "$python" tests/reference/compare.py "$scored"; then
    echo "the scores differ from those that docs/scoring.md defines: correct the program, or the page and tests/reference" >&2
    exit 1
fi
