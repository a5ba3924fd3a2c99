"""Names of Claude Code's things: the same from everywhere, and nothing else's."""

from __future__ import annotations

import uuid

from affidavit.capture.claude_names import request_id_of, turn_id_of


def test_a_tool_call_has_one_name_wherever_it_was_seen():
    # Pinned: ledgers hold these names for ever.
    assert request_id_of("toolu_01A") == "4b29f7f8-1871-861c-ada7-c2b0d4c233b8"
    assert uuid.UUID(request_id_of("toolu_01A")).variant == uuid.RFC_4122
    assert request_id_of("toolu_01B") != request_id_of("toolu_01A")


def test_a_turn_has_the_name_of_its_message_and_each_further_block_its_own():
    message = "0B1C2D3E-0000-4000-8000-000000000001"
    assert turn_id_of(message) == message.lower()
    names = {turn_id_of(message), turn_id_of(message, 1), turn_id_of("odd"), turn_id_of("\ud800")}
    assert len(names) == 4
    assert all(str(uuid.UUID(name)) == name for name in names)
