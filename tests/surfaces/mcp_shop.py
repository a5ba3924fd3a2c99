"""A small MCP server over stdio, made of nothing but lines: what a proxy stands in front of."""

from __future__ import annotations

import json
import sys
import time
from typing import Any


def answer(asked: dict[str, Any]) -> dict[str, Any]:
    """What it answers: `find` succeeds, `fail` says that it failed, anything else is an error."""
    params = asked.get("params") or {}
    if asked["method"] == "initialize":
        about = {"name": "shop", "version": "1"}
        version = params["protocolVersion"]
        return {"result": {"protocolVersion": version, "capabilities": {}, "serverInfo": about}}
    name, given = params.get("name"), params.get("arguments")
    if name == "find":
        return {"result": {"content": [{"type": "text", "text": json.dumps(given)}]}}
    if name == "fail":
        return {"result": {"isError": True, "content": [{"type": "text", "text": "no stock"}]}}
    if name == "long":
        return {"result": {"content": [{"type": "text", "text": "x" * 3_000_000}]}}
    if name == "sleep":
        time.sleep(60)
    return {"error": {"code": -32601, "message": "there is no such tool"}}


def main() -> None:
    for line in sys.stdin:
        asked = json.loads(line)
        if "id" in asked:
            print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], **answer(asked)}), flush=True)
    sys.exit(int(sys.argv[1]) if len(sys.argv) > 1 else 0)


if __name__ == "__main__":
    main()
