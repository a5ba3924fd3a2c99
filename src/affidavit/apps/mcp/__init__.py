"""The MCP server: tools for agents. Only `server`, `stdio` and `http` import the SDK."""
