"""Switching an agent's client to being recorded, and back.

`claude_code` says what its configuration must hold, `files` changes files so that it can be undone.
"""
