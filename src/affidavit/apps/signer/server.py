"""The signer's process: a question and an answer a connection, for a few seconds at most."""

from __future__ import annotations

import socket
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

from affidavit.apps.peers import PeerServer
from affidavit.apps.signer.desk import Desk
from affidavit.apps.signer.messages import encode_error, read_question, receive, send
from affidavit.errors import AffidavitError


class SignerServer(PeerServer):
    """Answers the users on its list until it is stopped."""

    def __init__(
        self, path: Path, allowed: Collection[int], desk: Desk, say: Callable[[str], None]
    ) -> None:
        super().__init__(path, allowed, self._answer_one, say)
        self._desk = desk

    def _answer_one(self, connection: socket.socket, _: int) -> None:
        send(connection, self._answer(receive(connection)))

    def _answer(self, data: bytes) -> dict[str, Any]:
        question = read_question(data)
        try:
            return self._desk.answer(question)
        except AffidavitError as error:
            self._say(f"refused: {error.message}")
            return encode_error(error)
