"""Errors in a generated client: `errors.py BASE_ADDRESS DESCRIPTION`.

`api_client` is the package that openapi-python-client made from the description. First it calls a running gateway: every
code that a caller can provoke there is a typed error. Then each operation gets every error that the description lists for
it, from a transport without a network. The environment has keys: PRO_KEY, FREE_KEY, and MINUTE_KEY and DAY_KEY of two
applications with two requests a minute and one a day; GATEWAY_PID and GATEWAY_SETTINGS serve to lower the guard.
"""

import importlib
import json
import os
import re
import signal
import sys
import time

import httpx
from api_client.client import AuthenticatedClient, Client
from api_client.models.error import Error
from api_client.models.limit import Limit
from api_client.types import Unset

WORDS = ("combined", "reasoning", "speed", "price", "coding", "7axis", "tooling")
# The fields of an error because of a parameter.
ABOUT = {
    "invalid_period": {"param": "period", "allowed": ["latest", "24h", "7d", "1m"]},
    "invalid_sort_by": {"param": "sortBy", "allowed": list(WORDS)},
    "invalid_limit": {"param": "limit", "minimum": 1, "maximum": 100},
    "invalid_model_id": {"param": "id", "pattern": "^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$"},
    "latest_requires_plan": {"param": "period", "allowed": ["24h", "7d", "1m"]},
}
LIMIT = {"name": "day", "quota": 1, "remaining": 0, "window_seconds": 86400, "reset_at": "2026-11-22T00:00:00Z", "retry_after": 7}


class Value:
    """A value that is not in the enumeration of a parameter."""

    def __init__(self, value):
        self.value = value


def operation(tag, name):
    return importlib.import_module(f"api_client.api.{tag}.{name}").sync_detailed


def expect_error(response, status, code, about):
    """The response is a typed error with this code, and the fields about the parameter have their types."""
    error = response.parsed
    assert isinstance(error, Error), f"{status} {code} is {error!r} in the client"
    assert (response.status_code, error.status, str(error.code)) == (status, status, code), error
    for name in ("param", "allowed", "minimum", "maximum", "pattern"):
        found = getattr(error, name)
        found = None if isinstance(found, Unset) else str(found) if name == "param" else found
        assert found == about.get(name), f"{code}: {name} is {found!r}"
    assert isinstance(error.limit, Limit) == (status == 429), f"{code}: the limit is {error.limit!r}"
    if status == 429:
        assert isinstance(error.limit.retry_after, int) and error.limit.retry_after > 0, error.limit


def provoke(base):
    """Provokes errors at the gateway, and returns their codes."""
    with_key = {name: AuthenticatedClient(base_url=base, token=os.environ[f"{name}_KEY"])
                for name in ("PRO", "FREE", "MINUTE", "DAY")}
    pro, free = with_key["PRO"], with_key["FREE"]
    models, model, incidents = operation("models", "models"), operation("models", "model"), operation("incidents", "incidents")
    response = models(client=pro)
    answer = response.parsed
    assert answer.success and answer.count == len(answer.data) > 0, answer
    assert models(client=pro, if_none_match=response.headers["etag"]).status_code == 304
    codes = []

    def call(status, code, about=None, *, of, **arguments):
        expect_error(of(**arguments), status, code, ABOUT.get(code, {}) if about is None else about)
        codes.append(code)

    call(401, "api_key_required", of=models, client=Client(base_url=base))
    call(401, "invalid_api_key", of=models, client=AuthenticatedClient(base_url=base, token="wrong"))
    call(403, "latest_requires_plan", of=models, client=free, period=Value("latest"))
    call(404, "model_not_found", of=model, client=pro, id="no-such-model")
    call(400, "invalid_model_id", of=model, client=pro, id="a/b")
    call(400, "invalid_period", of=models, client=pro, period=Value("7D"))
    free_periods = {**ABOUT["invalid_period"], "allowed": ["24h", "7d", "1m"]}
    call(400, "invalid_period", free_periods, of=models, client=free, period=Value(""))
    call(400, "invalid_sort_by", of=models, client=pro, sort_by=Value("name"))
    call(400, "invalid_limit", of=incidents, client=pro, limit=101)
    call(414, "uri_too_long", of=model, client=pro, id="x" * 2_100)
    # A missing model costs a request of the minute, data also one of the day.
    for _ in range(2):
        assert model(client=with_key["MINUTE"], id="no-such-model").status_code == 404
    call(429, "rate_limit_exceeded", of=models, client=with_key["MINUTE"])
    assert models(client=with_key["DAY"]).status_code == 200
    call(429, "quota_exceeded", of=models, client=with_key["DAY"])
    lower_the_guard()
    deadline = time.monotonic() + 10
    while models(client=Client(base_url=base)).status_code != 429 and time.monotonic() < deadline:
        time.sleep(0.05)
    call(429, "too_many_refusals", of=models, client=Client(base_url=base))
    return codes


def lower_the_guard():
    path = os.environ["GATEWAY_SETTINGS"]
    with open(path) as file:
        settings = file.read()
    with open(path, "w") as file:
        file.write(re.sub(r"(?<=\[guard\]\nper_minute = )\d+", "1", settings))
    os.kill(int(os.environ["GATEWAY_PID"]), signal.SIGHUP)


def listed_errors(description, responses):
    """The status and the codes of each error of an operation that has a body."""
    for status, response in responses.items():
        response = description["components"]["responses"][response["$ref"].rsplit("/", 1)[1]]
        if int(status) >= 400 and "content" in response:
            schema = response["content"]["application/json"]["schema"]
            yield int(status), schema["properties"]["code"]["enum"]


def replay(description):
    """Sends each operation every error that its description lists, and returns their number."""
    sent = {}
    transport = httpx.MockTransport(lambda _: httpx.Response(sent["status"], json=sent))
    client = AuthenticatedClient(base_url="http://gateway", token="key", httpx_args={"transport": transport})
    number = 0
    for path, item in description["paths"].items():
        of = item["get"]
        arguments = {"client": client, **({"id": "atlas-2"} if "{id}" in path else {})}
        for status, codes in listed_errors(description, of["responses"]):
            for code in codes:
                about = ABOUT.get(code, {})
                sent.clear()
                sent.update(success=False, version="1.0.0", status=status, code=code, message="Text.", request_id="id",
                            docs=f"/docs#{code}", **about, **({"limit": LIMIT} if status == 429 else {}))
                expect_error(operation(of["tags"][0], of["operationId"])(**arguments), status, code, about)
                number += 1
    return number


def main(base, path):
    with open(path) as file:
        description = json.load(file)
    number = replay(description)
    assert number > 100, f"only {number} errors were replayed"
    codes = provoke(base)
    print(f"generated client: {len(set(codes))} codes provoked, {number} listed errors are typed")


if __name__ == "__main__":
    main(*sys.argv[1:])
