"""The endpoint over HTTP: what is malformed, too large or gone, and whose session is whose."""

from __future__ import annotations

import http.client
import json
import time
from typing import Any
from urllib.parse import urlsplit

import pytest
from mcp import Client

from affidavit.apps.mcp.http import make_endpoint
from affidavit.apps.mcp.service import Service
from surfaces.mcp_clients import ERAS, data, over_http, run, served

SAID = {"type": "plan", "task_id": "t1", "content": "because"}
HEADERS = {
    "Content-Type": "application/json",
    "Accept": "application/json, text/event-stream",
    "MCP-Protocol-Version": "2026-07-28",
}
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}


def connect(url: str) -> http.client.HTTPConnection:
    place = urlsplit(url)
    return http.client.HTTPConnection(place.hostname or "", place.port, timeout=10)


def post(url: str, body: bytes, **headers: str) -> tuple[int, bytes]:
    connection = connect(url)
    connection.request("POST", "/mcp", body, {**HEADERS, **headers})
    answer = connection.getresponse()
    said = answer.read()
    connection.close()
    return answer.status, said


def call(tool: str, given: Any) -> tuple[bytes, dict[str, str]]:
    params = {"name": tool, "arguments": given, "_meta": META}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    return json.dumps(body).encode(), {"Mcp-Method": "tools/call", "Mcp-Name": tool}


def is_well(url: str) -> bool:
    """Whether the next call is answered within two seconds."""
    began = time.monotonic()
    body, headers = call("server_health", {})
    status, said = post(url, body, **headers)
    found = json.loads(said)["result"]["structuredContent"]["data"]["status"]
    return (status, found) == (200, "ok") and time.monotonic() - began < 2


def test_what_is_malformed_is_refused_and_the_next_call_answered(ledger: Any) -> None:
    with served(ledger) as url:
        for body in (b"", b"{", b"[]", b"\xff", b"[" * 50_000, b'{"jsonrpc":"2.0","id":1}', b"7"):
            assert post(url, body)[0] == 400
        unknown = b'{"jsonrpc":"2.0","id":1,"method":"no/such","params":{"_meta":%s}}'
        meta = json.dumps(META).encode()
        assert post(url, unknown % meta, **{"Mcp-Method": "no/such"})[0] == 404
        assert post(url, b"{}", Host="example.com")[0] == 421
        assert post(url, b"{}", Origin="http://example.com")[0] == 403
        assert is_well(url)


def test_a_body_over_the_limit_is_too_large(ledger: Any) -> None:
    with over_http(make_endpoint(Service(ledger), body_bytes_max=100_000)) as url:
        body, headers = call("thought_record", {**SAID, "content": "x" * 100_000})
        assert post(url, body, **headers)[0] == 413
        assert is_well(url)
    assert ledger.list_thoughts() == []


def test_a_client_that_vanishes_in_a_call_disturbs_nobody(ledger: Any) -> None:
    with served(ledger) as url:
        for _ in range(5):
            body, headers = call(
                "thought_record", {**SAID, "agent_id": "a", "content": "x" * 10**6}
            )
            connection = connect(url)
            connection.request("POST", "/mcp", body, {**HEADERS, **headers})
            connection.close()
        assert is_well(url)
    assert ledger.verify().valid


@pytest.mark.parametrize("era", ERAS)
def test_each_connection_has_a_session_of_its_own(ledger: Any, era: str) -> None:
    """Where there is no connection, as in the stateless era, an absent session stays null."""
    with served(ledger, bind_auto=True) as url:

        async def work() -> list[tuple[str, Any]]:
            found = []
            async with Client(url, mode=era) as first, Client(url, mode=era) as second:
                for client in (first, second):
                    started = data(await client.call_tool("audit_session_start", {"intent": "x"}))
                    found.append((started["session_id"], client))
                return [
                    (session, data(await client.call_tool("thought_record", SAID))["session_id"])
                    for session, client in found
                ]

        used = run(work)
    assert [session if era == "legacy" else None for session, _ in used] == [one for _, one in used]
