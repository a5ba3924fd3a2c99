"""Clients and checkers that others made: MCP's inspector and its conformance suite."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import affidavit
from affidavit.apps.mcp.http import endpoint_of
from affidavit.apps.mcp.server import make_server
from affidavit.apps.mcp.service import Service
from surfaces.conformance_fixtures import add_fixtures
from surfaces.mcp_clients import over_http, served

TOOLS = Path(__file__).resolve().parents[2] / "tools/npm/node_modules"
REVISIONS = ("2025-11-25", "2026-07-28")
# Scenarios that ask for nothing but a server: the plain product passes them as it is.
PLAIN = {
    "2025-11-25": {
        *("server-initialize", "ping", "tools-list", "server-sse-multiple-streams"),
        *("resources-list", "prompts-list", "dns-rebinding-protection"),
        *("server-session-lifecycle", "server-sse-polling"),
    },
    "2026-07-28": {
        *("tools-list", "server-sse-multiple-streams", "resources-list", "prompts-list"),
        *("sep-2164-resource-not-found", "dns-rebinding-protection", "caching"),
        *("input-required-result-unsupported-methods", "http-header-validation"),
    },
}


def node(*words: str) -> subprocess.CompletedProcess[str]:
    """Run one of the tools by the node that was installed with them."""
    assert (TOOLS / ".ready").exists(), "run `make tools` first"
    command = [str(TOOLS / ".bin/node"), *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def inspect(path: str, *words: str) -> Any:
    server = [sys.executable, "-m", "affidavit", "--ledger", path, "mcp"]
    done = node(str(TOOLS / ".bin/mcp-inspector"), "--cli", *server, *words)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)


def test_the_inspector_lists_the_tools(path: str) -> None:
    tools = inspect(path, "--method", "tools/list")["tools"]
    assert "thought_record" in [tool["name"] for tool in tools]


def test_the_inspector_calls_a_tool(path: str) -> None:
    words = ["--tool-name", "task_create", "--tool-arg", "title=from the inspector"]
    answer = inspect(path, "--method", "tools/call", *words)
    assert answer["structuredContent"]["data"]["title"] == "from the inspector"
    with affidavit.open(path, readonly=True) as ledger:
        assert ledger.list_tasks().total_count == 1
        assert ledger.verify().valid


def required(revision: str) -> list[str]:
    """The scenarios that count for a revision, as the suite lists them."""
    folder = TOOLS / "@modelcontextprotocol/conformance/requirements"
    listed = (folder / f"{revision}.yaml").read_text(encoding="utf-8")
    servers = listed.partition("\nserver:\n")[2].partition("\n\n")[0]
    return [line.removeprefix("  - ") for line in servers.splitlines()]


def passed(url: str, revision: str) -> tuple[set[str], str]:
    """Which scenarios a server passes, and what the suite said."""
    done = node(str(TOOLS / ".bin/conformance"), "server", "--url", url, "--requirements", revision)
    said = done.stdout + done.stderr
    return set(re.findall(r"^✓ ([\w-]+):", said, re.MULTILINE)), said


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")
def test_every_scenario_that_counts_passes_with_the_suites_fixtures(
    ledger: Any, revision: str
) -> None:
    server = add_fixtures(make_server(Service(ledger, tools="all")))
    scenarios = required(revision)
    assert len(scenarios) > 25
    with over_http(endpoint_of(server)) as url:
        good, said = passed(url, revision)
    assert [name for name in scenarios if name not in good] == [], said[-6_000:]


@pytest.mark.parametrize("revision", REVISIONS)
def test_the_plain_product_passes_what_needs_no_fixture(ledger: Any, revision: str) -> None:
    with served(ledger, tools="all") as url:
        good, said = passed(url, revision)
    assert PLAIN[revision] - good == set(), said[-6_000:]
