"""The official client speaks to the server over both transports and in both eras."""

from __future__ import annotations

from typing import Any

import pytest
from mcp import Client

import affidavit
from surfaces.mcp_clients import ERAS, data, parameters, run, served


async def _whole_sequence(client: Client) -> Any:
    """Everything from a session's start to its end, each answer checked by the client."""
    await client.list_tools()

    async def call(tool: str, **given: Any) -> Any:
        return data(await client.call_tool(tool, given))

    session = (await call("audit_session_start", intent="see it work"))["session_id"]
    about = {"task_id": "t", "agent_id": "a", "session_id": session}
    await call("thought_record", type="plan", content="p", **about)
    assert (await call("audit_verify_chain", session_id=session))["valid"]
    await call("thought_record", type="reflection", content="r", **about)
    sealed = await call("merkle_finalize", session_id=session)
    assert (await call("merkle_root", session_id=session))["root"] == sealed["root"]
    return await call("audit_session_end", session_id=session)


@pytest.mark.parametrize("era", ERAS)
def test_the_whole_sequence_over_stdio(path: str, era: str) -> None:
    async def work() -> Any:
        async with Client(parameters(path), mode=era) as client:
            return await _whole_sequence(client)

    assert run(work)["record_count"] == 2
    with affidavit.open(path, readonly=True) as ledger:
        assert ledger.verify().valid


@pytest.mark.parametrize("era", ERAS)
def test_the_whole_sequence_over_http(ledger: Any, era: str) -> None:
    with served(ledger) as url:

        async def work() -> Any:
            async with Client(url, mode=era) as client:
                return await _whole_sequence(client)

        assert run(work)["sealed"] is True
