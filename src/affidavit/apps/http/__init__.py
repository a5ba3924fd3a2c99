"""The HTTP server: who may reach it, how much it takes, how it starts and stops."""
