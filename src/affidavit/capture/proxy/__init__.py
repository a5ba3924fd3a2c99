"""What passes between an MCP client and a server: `frames` finds tool calls, `facts` keeps them."""
