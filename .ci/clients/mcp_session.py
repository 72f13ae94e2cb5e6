"""The Python client of the Model Context Protocol: `mcp_session.py ADDRESS BINARY SETTINGS`.

It lists and calls every tool, after a handshake and without one. Then it calls without a key, with a spent quota, and with a
key that is revoked during the session. BINARY creates and revokes the keys.
"""

import asyncio
import contextlib
import json
import subprocess
import sys

import httpx2
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client

# The revision that each mode of the client agrees on.
REVISIONS = {"legacy": "2025-11-25", "2026-07-28": "2026-07-28"}


def manage_keys(binary, settings, *arguments):
    command = [binary, "keys", *arguments, "--config", settings, "--json"]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)


def create_key(binary, settings, tier):
    """The id of a new application, and its key."""
    created = manage_keys(binary, settings, "create", "--name", "mcp", "--tier", tier)
    return created["application"]["id"], created["key"]


@contextlib.asynccontextmanager
async def session(address, mode, key=None):
    """A client, and the status of each response to its messages."""
    statuses = []

    async def record(response):
        if response.request.method == "POST":
            statuses.append(response.status_code)

    headers = {"X-API-Key": key} if key else {}
    async with (
        httpx2.AsyncClient(headers=headers, event_hooks={"response": [record]}) as http,
        Client(streamable_http_client(address, http_client=http), mode=mode) as client,
    ):
        assert client.protocol_version == REVISIONS[mode], client.protocol_version
        yield client, statuses


async def call_every_tool(client):
    """Calls each tool, and returns their number."""
    tools = (await client.list_tools()).tools
    assert tools[0].name == "get_models", tools[0]
    arguments = {}
    for tool in tools:
        required = {name: arguments[name] for name in tool.input_schema["required"]}
        result = await client.call_tool(tool.name, required)
        data = result.structured_content["data"]
        [content] = result.content
        assert not result.is_error and content.text.startswith(f"{len(data)} items"), f"{tool.name}: {result}"
        if tool.name == "get_models":
            arguments["id"] = data[0]["id"]
    return len(tools)


async def expect_401(client, statuses):
    """The error of this client does not have the status of the response."""
    try:
        result = await client.call_tool("get_index")
    except MCPError:
        assert statuses[-1] == 401, statuses
    else:
        raise AssertionError(f"the call without a valid key has the result {result}")


async def check(address, binary, settings, mode):
    application, key = create_key(binary, settings, "pro")
    async with session(address, mode, key) as (client, statuses):
        number = await call_every_tool(client)
        manage_keys(binary, settings, "revoke", application)
        await expect_401(client, statuses)
    async with session(address, mode) as (client, statuses):
        assert len((await client.list_tools()).tools) == number
        await expect_401(client, statuses)
    _, key = create_key(binary, settings, "few")
    async with session(address, mode, key) as (client, statuses):
        assert not (await client.call_tool("get_index")).is_error
        refused = await client.call_tool("get_index")
        assert refused.is_error and "Wait" in refused.content[0].text, refused
        assert statuses[-1] == 200, statuses
    print(f"mcp of Python: {number} tools called with {REVISIONS[mode]}")


async def main(address, binary, settings):
    for mode in REVISIONS:
        await asyncio.wait_for(check(address, binary, settings, mode), 60)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
