"""Rows of `setting_changes`."""

from __future__ import annotations

import json
from typing import NamedTuple

from affidavit.core.entry import Entry


class SettingRow(NamedTuple):
    """A row of `setting_changes`; values as JSON text."""

    log_index: int
    name: str
    old: str | None
    new: str
    changed_by: str | None
    at: int


def setting_row(index: int, entry: Entry) -> SettingRow:
    """The row of `setting.changed`."""
    body = entry.body
    old = None if body["old"] is None else setting_json(body["old"])
    return SettingRow(index, body["name"], old, setting_json(body["new"]), body["by"], entry.at)


def setting_json(value: str | int | bool) -> str:
    """A setting's value as the view stores it."""
    return json.dumps(value, ensure_ascii=False)
