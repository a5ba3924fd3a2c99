"""Signing by a process of another OS user, who alone has the keys and remembers what was signed."""
