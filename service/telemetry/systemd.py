"""Telling systemd that the service is ready, or about to stop (``sd_notify``, Type=notify)."""

from __future__ import annotations

import os
import socket
from contextlib import suppress

_VARIABLE = "NOTIFY_SOCKET"
_ABSTRACT = "@"

READY, STOPPING = b"READY=1", b"STOPPING=1"


def notify(state: bytes) -> None:
    """Send a state to the service manager that started us, if one did and asked for it."""
    address = os.environ.get(_VARIABLE)
    if not address:
        return
    if address.startswith(_ABSTRACT):
        address = "\0" + address[1:]
    with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.connect(address)
        manager.send(state)
