"""Connections without a client that keeps to the rules."""

from __future__ import annotations

import socket
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

PATIENCE_S = 10.0


def connect(url: str) -> Any:
    parts = urlsplit(url)
    return socket.create_connection((parts.hostname, parts.port), timeout=PATIENCE_S)


def read_to_end(connection: Any) -> bytes:
    """Return all that comes until the other side closes, in whatever way."""
    pieces = []
    with suppress(ConnectionResetError):
        while (piece := connection.recv(65536)) != b"":
            pieces.append(piece)
    return b"".join(pieces)
