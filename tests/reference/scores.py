#!/usr/bin/env python3
"""Recomputes the published numbers from an export, by docs/scoring.md and method.md alone.

    python3 tests/reference/scores.py RUNS --now 2026-11-20T12:34:56Z [--suites suites.toml] [--output scores.json]
    python3 tests/reference/scores.py --scenarios tests/reference/scenarios --output DIRECTORY
    python3 tests/reference/scores.py --check

RUNS are the lines of `scoregate scoring export`, also compressed (`.gz`). The suites are those of
`scoregate scoring suites show`; without a file they are the default ones. The result is one JSON document with the
unrounded numbers (`exact`) and the items of the API's responses (`documents`). Needs Python 3.11 or later and no
packages.
"""

import argparse
import json
import sys
from pathlib import Path

# The tree stays as it is: no compiled modules.
sys.dont_write_bytecode = True

from method.check import check
from method.documents import Documents
from method.exact import exact
from method.periods import PERIODS
from method.runs import DEFAULT_SUITES, SORT_SCORES, read_export, read_suites, seconds
from method.snapshot import Snapshot

SORT_KEYS = (*SORT_SCORES, "speed", "price")
PER_PERIOD = ("degradations", "recommendations", "provider_reliability", "transparency")


def names(snapshot):
    """The documents: the name of the endpoint, the id of the model, and the parameters."""
    found = [("index",), ("alerts",), ("providers",)]
    for model in snapshot.models:
        found += [("model", model.id), ("drift", model.id)]
        found += [("history", model.id, f"period={period}") for period in PERIODS]
    for period in PERIODS:
        found += [("models", f"period={period}", f"sortBy={key}") for key in SORT_KEYS]
        found += [(name, f"period={period}") for name in PER_PERIOD]
        found.append(("incidents", f"period={period}", "limit=100"))
    return found


def document(snapshot, name, *given):
    """The items of a document."""
    values = [one for one in given if "=" not in one]
    return getattr(Documents(snapshot), name)(*values, **dict(one.split("=") for one in given if "=" in one))


def scores_of(export, now, suites):
    """Everything that is published."""
    snapshot = Snapshot(export, now, suites)
    return {"exact": exact(snapshot),
            "documents": {" ".join(name): document(snapshot, *name) for name in names(snapshot)}}


def scores_of_file(path, now, suites_path):
    suites = read_suites(Path(suites_path).read_text(encoding="utf-8")) if suites_path else DEFAULT_SUITES
    return scores_of(read_export(path), seconds(now), suites)


def scores_of_scenario(directory, scenario):
    """Of an entry of `index.json`."""
    suites = scenario["suites"] and directory / scenario["suites"]
    return scores_of_file(directory / scenario["file"], scenario["now"], suites)


def write(result, path):
    text = json.dumps(result, indent=1) + "\n"
    if path is None:
        sys.stdout.write(text)
    else:
        Path(path).write_text(text, encoding="utf-8")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="?", help="lines of an export, also compressed")
    parser.add_argument("--now", help="the instant of the snapshot")
    parser.add_argument("--suites", help="the table of suites; default: the default table")
    parser.add_argument("--output", help="file of the result, or directory with --scenarios; default: standard output")
    parser.add_argument("--scenarios", help="directory with an index.json, of which all are computed")
    parser.add_argument("--check", action="store_true", help="run the checks of this program")
    return parser


def main():
    parser = arguments()
    given = parser.parse_args()
    if given.check:
        return check()
    if given.scenarios:
        directory = Path(given.scenarios)
        for one in json.loads((directory / "index.json").read_text(encoding="utf-8")):
            result = scores_of_scenario(directory, one)
            write(result, given.output and Path(given.output) / f"{one['name']}.json")
        return 0
    if not given.runs or not given.now:
        parser.error("RUNS and --now are required")
    write(scores_of_file(given.runs, given.now, given.suites), given.output)
    return 0


if __name__ == "__main__":
    sys.exit(main())
