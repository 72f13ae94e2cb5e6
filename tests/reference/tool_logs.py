#!/usr/bin/env python3
"""Writes the golden files of `scoregate scoring import --from`: logs by the evaluation tools themselves.

    python3 tests/reference/tool_logs.py

Installs the pinned tools into virtual environments below /tmp/tool-logs, and evaluates the tasks of tool_logs/tasks with
their mock models, without a network. Nothing in the logs is changed, except the date in the names of the files, which is
replaced by the name of the log. Tracebacks contain paths of /tmp/tool-logs and of the Python that runs this script: use
the distribution's. The script fails if a log contains the home directory.
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent / "tool_logs"
WORK = pathlib.Path("/tmp/tool-logs")
# Log, requirements, and format.
INSPECT = [
    ("several-scorers", "inspect", "eval"),
    ("several-scorers", "inspect-deflate", "eval"),
    ("failures", "inspect", "eval"),
    ("unscored", "inspect", "eval"),
    ("unscored", "inspect", "json"),
    ("stopped", "inspect", "eval"),
    ("crashed", "inspect", "eval"),
    ("crashed", "inspect", "json"),
]


def installed(name):
    """The directory of the programs of a virtual environment."""
    place = WORK / name
    if not place.exists():
        subprocess.run([sys.executable, "-m", "venv", place], check=True)
        pinned = HERE / f"requirements-{name}.txt"
        subprocess.run([place / "bin/pip", "install", "--quiet", "--requirement", pinned], check=True)
    return place / "bin"


def inspect_logs():
    for log, tool, kind in INSPECT:
        written = WORK / "written" / f"{log}-{tool}-{kind}"
        done = subprocess.run(
            [installed(tool) / "python", "inspect_logs.py", written, log], cwd=WORK / "tasks", check=False
        )
        assert done.returncode == (3 if log == "crashed" else 0), (log, done.returncode)
        (found,) = written.iterdir()
        suffix = "-deflate" if tool == "inspect-deflate" else ""
        shutil.copy(found, HERE / f"inspect/{log}{suffix}.{kind}")


def lm_eval_logs():
    written = WORK / "written/lm-eval"
    offline = {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "HF_HOME": str(WORK / "cache")}
    subprocess.run(
        [installed("lm-eval") / "lm_eval", "--model", "dummy", "--model_args", "pretrained=meridian/atlas-4"]
        + ["--include_path", ".", "--tasks", "capitals,echoes", "--output_path", written, "--log_samples"],
        cwd=WORK / "tasks",
        env={**os.environ, **offline},
        check=True,
    )
    (place,) = written.iterdir()
    (results,) = place.glob("results_*.json")
    date = results.stem.removeprefix("results_")
    for found in place.iterdir():
        shutil.copy(found, HERE / "lm-eval" / found.name.replace(date, "2026-11-24"))
    assert json.loads(results.read_text())["git_hash"] is None


def main():
    shutil.rmtree(WORK / "written", ignore_errors=True)
    shutil.rmtree(WORK / "tasks", ignore_errors=True)
    WORK.mkdir(exist_ok=True)
    shutil.copytree(HERE / "tasks", WORK / "tasks")
    for kind in ("inspect", "lm-eval"):
        shutil.rmtree(HERE / kind, ignore_errors=True)
        (HERE / kind).mkdir()
    inspect_logs()
    lm_eval_logs()
    for log in WORK.glob("written/**/*.*"):
        assert not log.is_file() or str(pathlib.Path.home()).encode() not in log.read_bytes(), log


if __name__ == "__main__":
    main()
