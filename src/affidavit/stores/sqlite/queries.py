"""Reads `queries.sql` and the migrations: SQL lives in `.sql` files, under names."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files

_NAME = re.compile(r"^-- name: (\w+)\n", re.MULTILINE)
_COMMENT = re.compile(r"^\s*--.*\n", re.MULTILINE)


@cache
def load_queries() -> dict[str, str]:
    """Every statement of `queries.sql` by its name, without comments."""
    text = files(__package__).joinpath("queries.sql").read_text(encoding="utf-8")
    parts = _NAME.split(text)
    return {
        name: _COMMENT.sub("", body).strip().rstrip(";")
        for name, body in zip(parts[1::2], parts[2::2], strict=True)
    }


@cache
def load_migrations() -> tuple[str, ...]:
    """The migrations in order; the number of those applied is the file's `user_version`."""
    folder = files(__package__).joinpath("migrations")
    names = sorted(item.name for item in folder.iterdir() if item.name.endswith(".sql"))
    return tuple(folder.joinpath(name).read_text(encoding="utf-8") for name in names)
