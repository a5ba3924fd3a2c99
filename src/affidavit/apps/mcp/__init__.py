"""The MCP server: tools for agents, over stdio and HTTP. Only `server`, `stdio` and `http` import the SDK."""
