"""Runs the caching recipes of the docs page against a gateway: `recipes.py BASE_ADDRESS SIDE_ADDRESS MODULES`.

Each recipe defines `models()`. Its first call is a request, its second one none, and a third one, two hours later by the
clock of the client, is answered by 304; all three return the same. Requests are counted by the gateway. The recipe for
retries gets data although its minute is used up. MODULES is the folder with the packages for Node; the environment has
PRO_KEY and BURST_KEY, the latter of an application with 30 requests a minute.
"""

import glob
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import urllib.request

RECIPES = pathlib.Path(__file__).parents[2] / "src/pages/docs/recipes"
# They read lines and call `models()` after each. "stop" ends them.
LOOPS = {
    ".py": """
import hashlib, json, sys
for _ in sys.stdin:
    print(hashlib.sha256(json.dumps(models()).encode()).hexdigest(), flush=True)
""",
    ".mjs": """
import { createHash } from "node:crypto";
import { createInterface } from "node:readline";
for await (const _ of createInterface({ input: process.stdin })) {
  console.log(createHash("sha256").update(JSON.stringify(await models())).digest("hex"));
}
process.exit();
""",
    ".sh": """
while read -r _; do models && sha256sum <models.json; done
""",
}
PROGRAMS = {".py": [sys.executable], ".mjs": ["node"], ".sh": ["bash", "-eu"]}


class Recipe:
    """A running recipe."""

    def __init__(self, path, base, modules, key, **environment):
        self.folder = tempfile.TemporaryDirectory()
        folder = pathlib.Path(self.folder.name)
        program = folder / f"recipe{path.suffix}"
        program.write_text(path.read_text().replace("BASE_ADDRESS", base) + LOOPS[path.suffix])
        (folder / "node_modules").symlink_to(modules)
        self.process = subprocess.Popen([*PROGRAMS[path.suffix], program.name], cwd=folder, text=True,
                                        env={**os.environ, "API_KEY": key, **environment},
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def models(self):
        """The digest of what a call returns; empty after a failure."""
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().strip()

    def end(self):
        self.process.kill()
        self.process.wait()
        self.folder.cleanup()


def counted(side):
    """Requests for the models that the gateway has answered, by class of status."""
    with urllib.request.urlopen(f"http://{side}/metrics") as response:
        text = response.read().decode()
    series = re.findall(r'^scoregate_requests_total\{endpoint="models",class="(\w+)"\} (\d+)', text, re.M)
    return {name: int(number) for name, number in series}


def check_caching(path, base, side, modules):
    [faketime] = glob.glob("/usr/lib/*/faketime/libfaketime.so.1")
    clock = tempfile.NamedTemporaryFile("w+")
    recipe = Recipe(path, base, modules, os.environ["PRO_KEY"], LD_PRELOAD=faketime, FAKETIME_NO_CACHE="1",
                    FAKETIME_DONT_FAKE_MONOTONIC="1", FAKETIME_TIMESTAMP_FILE=clock.name)
    try:
        for call, expected, offset in (("first", {"2xx": 1}, "+0"), ("second", {}, "+0"), ("later", {"3xx": 1}, "+2h")):
            pathlib.Path(clock.name).write_text(offset)
            before = counted(side)
            digest = recipe.models()
            after = counted(side)
            grown = {name: number - before.get(name, 0) for name, number in after.items() if number != before.get(name, 0)}
            assert digest, f"{path.name}: the {call} call failed"
            assert grown == expected, f"{path.name}: the {call} call made the requests {grown}, not {expected}"
            first = digest if call == "first" else first
            assert digest == first, f"{path.name}: the {call} call returned something else"
    finally:
        recipe.end()


def check_retries(path, base, side, modules):
    """The minute allows 30 requests. One more waits for the seconds in Retry-After, and gets data."""
    recipe = Recipe(path, base, modules, os.environ["BURST_KEY"])
    try:
        before = counted(side)
        digests = {recipe.models() for _ in range(32)}
        after = counted(side)
        assert len(digests) == 1 and "" not in digests, f"{path.name}: a call failed"
        refused = after["4xx"] - before.get("4xx", 0)
        assert 1 <= refused <= 2, f"{path.name}: {refused} requests were refused"
    finally:
        recipe.end()


def main(base, side, modules):
    paths = sorted(RECIPES.iterdir())
    assert len(paths) == 8, paths
    for path in paths:
        check = check_retries if path.stem == "retry" else check_caching
        check(path, base, side, pathlib.Path(modules).resolve())
    print(f"recipes: {', '.join(path.name for path in paths)}")


if __name__ == "__main__":
    signal.alarm(120)
    main(*sys.argv[1:])
