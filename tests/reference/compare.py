#!/usr/bin/env python3
"""Compares the numbers of the product with those that this program computes from docs/scoring.md and tests/reference/method.md.

    python3 tests/reference/compare.py DUMP_DIR [--scenarios tests/reference/scenarios]

DUMP_DIR has a file NAME.json for each scenario of `index.json`, with the keys of the output of `scores.py`: `exact`,
the unrounded numbers of each model, and `documents`, the items of the API's responses. Every value of one side needs
its counterpart on the other, except those in `FREE_TEXT` and `SKIPPED`; null is the same as absent. Prints
disagreements, and a line per scenario; the exit code is 1 if there are any. Documents of unknown endpoints or models
are disagreements as well.
"""

import argparse
import json
import sys
from pathlib import Path

# The tree stays as it is: no compiled modules.
sys.dont_write_bytecode = True

from scores import scores_of_file

# Fields that are not compared: free text, and by document those that describe the method or depend on the clock.
FREE_TEXT = {"message", "reason"}
SKIPPED = {"transparency": {"axisWeights", "suiteWeights", "suites", "methodVersion", "synthetic", "freshnessSeconds"}}
ABSOLUTE, RELATIVE_P, LEAST_P = 1e-9, 1e-6, 1e-250
P_FIELDS = {"p", "chance"}
# The first of these in which the items of a list differ identifies them, so one that is missing is one disagreement.
KEYS = ("id", "task", "modelId", "provider", "axis", "suite", "timestamp", "openedAt")
SHOWN = 40
ABSENT = object()


class Comparison:
    """The disagreements of a scenario."""

    def __init__(self):
        self.compared, self.skipped, self.lines = 0, 0, []

    def differ(self, path, ours, theirs):
        shown = ["absent" if one is ABSENT else json.dumps(one)[:200] for one in (ours, theirs)]
        self.lines.append(f"{path}: reference {shown[0]}, product {shown[1]}")

    def walk(self, path, ours, theirs, equal):
        """Compares two values; `equal` decides about leaves by the name of the field."""
        ours, theirs = (ABSENT if one is None else one for one in (ours, theirs))
        if isinstance(ours, dict) and isinstance(theirs, dict):
            for name in sorted({*ours, *theirs}):
                if name in FREE_TEXT or name in SKIPPED.get(path.partition(" ")[0], ()):
                    self.skipped += 1
                else:
                    self.walk(f"{path} {name}", ours.get(name), theirs.get(name), equal)
        elif (keys := keys_of(ours, theirs)) is not None:
            self.walk(f"{path} order", *map(list, keys), equal)
            for key in sorted({*keys[0]} & {*keys[1]}):
                self.walk(f"{path} {key}", keys[0][key], keys[1][key], equal)
        elif isinstance(ours, list) and isinstance(theirs, list):
            if len(ours) != len(theirs):
                self.differ(f"{path} length", len(ours), len(theirs))
            for place, pair in enumerate(zip(ours, theirs)):
                self.walk(f"{path} {place}", *pair, equal)
        elif ours is not ABSENT or theirs is not ABSENT:
            self.compared += 1
            if not equal(path.rpartition(" ")[2], ours, theirs):
                self.differ(path, ours, theirs)

    def all(self, ours, theirs):
        """Compares both whole files."""
        self.walk("exact", ours["exact"], theirs["exact"], is_near)
        for name in sorted({*ours["documents"], *theirs["documents"]}):
            self.walk(name, ours["documents"].get(name), theirs["documents"].get(name), is_same)
        for name in sorted({*theirs} - {"exact", "documents"}):
            self.differ(name, ABSENT, theirs[name])


def keys_of(*lists):
    """Both lists of items as items by their key, or None if they have none."""
    if not all(isinstance(one, list) and all(isinstance(item, dict) for item in one) for one in lists):
        return None
    for key in KEYS:
        found = [{item[key]: item for item in one if key in item} for one in lists]
        if any(lists) and all(len(by_key) == len(one) for by_key, one in zip(found, lists)):
            return found
    return None


def is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def is_same(_, ours, theirs):
    """Published values are equal."""
    return is_number(ours) == is_number(theirs) and ours == theirs


def is_near(name, ours, theirs):
    """Unrounded numbers are equal but for errors of floating point."""
    if not is_number(ours) or not is_number(theirs):
        return is_same(name, ours, theirs)
    size = max(abs(ours), abs(theirs))
    if name in P_FIELDS:
        return size < LEAST_P or abs(ours - theirs) <= RELATIVE_P * size
    return abs(ours - theirs) <= ABSOLUTE * max(1.0, size)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dump", help="directory with a file per scenario")
    parser.add_argument("--scenarios", default=Path(__file__).parent / "scenarios", help="directory with index.json")
    parser.add_argument("--all", action="store_true", help="print all disagreements")
    given = parser.parse_args()
    directory, failed = Path(given.scenarios), False
    for scenario in json.loads((directory / "index.json").read_text(encoding="utf-8")):
        name, suites = scenario["name"], scenario["suites"] and directory / scenario["suites"]
        # The export with records of incidents was made by the product after several snapshots.
        for name, runs in ((name, directory / scenario["file"]),
                           (f"{name}-recorded", Path(given.dump) / f"{name}-recorded.jsonl")):
            found = Comparison()
            theirs = json.loads((Path(given.dump) / f"{name}.json").read_text(encoding="utf-8"))
            found.all(scores_of_file(runs, scenario["now"], suites), theirs)
            shown = found.lines if given.all else found.lines[:SHOWN]
            for line in shown:
                print(f"{name}: {line}")
            if len(shown) < len(found.lines):
                print(f"{name}: and {len(found.lines) - len(shown)} more")
            print(f"{name}: {found.compared} values compared, {found.skipped} skipped, {len(found.lines)} disagreements")
            failed |= bool(found.lines)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
