"""Evaluates small tasks with the mock model of Inspect AI: `inspect_logs.py DIRECTORY NAME`.

The name of the log decides what is evaluated. `crashed` ends the process in the middle of an evaluation.
"""

import os
import pathlib
import sys

import httpx
from inspect_ai import Task, eval
from inspect_ai.dataset import Sample
from inspect_ai.model import ModelOutput, ModelUsage, get_model
from inspect_ai.scorer import Score, accuracy, match, mean, scorer
from inspect_ai.solver import generate

REQUEST = httpx.Request("POST", "https://provider.example/v1/messages")
FAILURES = {
    "too slow": httpx.ReadTimeout("The read operation timed out", request=REQUEST),
    "too many": httpx.HTTPStatusError(
        "Client error '429 Too Many Requests' for url 'https://provider.example/v1/messages'",
        request=REQUEST,
        response=httpx.Response(429, request=REQUEST),
    ),
    "offline": httpx.ConnectError("All connection attempts failed", request=REQUEST),
    "defect": KeyError("answer"),
}
QUESTIONS = [("1 + 1 = ?", "2"), ("2 + 3 = ?", "5"), ("3 + 5 = ?", "8")]
ANSWERS = {"1 + 1 = ?": "2", "2 + 3 = ?": "about 5, not 6", "3 + 5 = ?": "no idea"}


def answer(messages, tools, choice, config):
    """The response of the mock model; some questions make it fail."""
    question = messages[-1].text
    if question in FAILURES:
        raise FAILURES[question]
    if question == "crash":
        os._exit(3)
    output = ModelOutput.from_content("mockllm/model", ANSWERS[question])
    output.usage = ModelUsage(input_tokens=1000, output_tokens=200, total_tokens=1200)
    return output


@scorer(metrics=[accuracy()])
def grade():
    """C, P, I or N."""

    async def score(state, target):
        text = state.output.completion
        if text == target.text:
            return Score(value="C")
        return Score(value="P" if target.text in text else "N")

    return score


@scorer(metrics=[mean()])
def closeness():
    """A percentage."""

    async def score(state, target):
        text = state.output.completion
        return Score(value=100 if text == target.text else 62.5 if target.text in text else 0)

    return score


@scorer(metrics={"format": [mean()], "tone": [mean()]})
def style():
    """Several values."""

    async def score(state, target):
        text = state.output.completion
        return Score(value={"format": 1.0 if text.isdigit() else 0.25, "tone": True})

    return score


@scorer(metrics=[mean()])
def judge():
    """Cannot score one of the answers."""

    async def score(state, target):
        value = float("nan") if state.output.completion == "no idea" else 1.0
        return Score(value=value, explanation="the grader gave no verdict")

    return score


def samples(*failures):
    normal = [Sample(id=number, input=text, target=target) for number, (text, target) in enumerate(QUESTIONS, 1)]
    return normal + [Sample(id=text, input=text, target="-") for text in failures]


def task(name, failures, scorers, **options):
    return Task(name=name, dataset=samples(*failures), solver=generate(), scorer=scorers, **options)


def main(directory, name):
    model, status = get_model("mockllm/meridian/atlas-4", custom_outputs=answer), {"fail_on_error": False}
    if name == "several-scorers":
        what = task("arithmetic", [], [match(), grade(), closeness(), style()], epochs=2)
    elif name == "failures":
        what = task("arithmetic", FAILURES, [grade()])
    elif name == "unscored":
        what = task("judged", [], [judge()])
    elif name == "stopped":
        what, status = task("arithmetic", ["defect"], [grade()]), {"fail_on_error": True}
    elif name == "crashed":
        what = task("arithmetic", ["crash"], [grade()])
    else:
        raise SystemExit(f"unknown log {name}")
    format = "json" if directory.endswith("json") else "eval"
    eval(
        what, model=model, log_dir=directory, log_format=format, display="none", max_samples=1, log_buffer=1,
        log_shared=False, **status,
    )


if __name__ == "__main__":
    pathlib.Path(sys.argv[1]).mkdir(parents=True, exist_ok=True)
    main(*sys.argv[1:])
