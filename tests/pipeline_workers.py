"""Workers that fail as told, once per marker file where they are to succeed later."""

from __future__ import annotations

import os
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from lance_core.errors import InvalidRequestError

if TYPE_CHECKING:
    from pipeline.stages import Worker

FAULTS = ("raise", "exit", "twice")


def echo(item: bytes) -> bytes:
    """Return the item backwards."""
    return item[::-1]


def poisoned(item: bytes) -> bytes:
    """Refuse items that begin with ``bad``, and fail by those with ``odd``."""
    if item.startswith(b"bad"):
        raise InvalidRequestError(f"{item.decode()} is bad")
    if item.startswith(b"odd"):
        raise RuntimeError(f"{item.decode()} is odd")
    return echo(item)


def deadly(item: bytes) -> bytes:
    """Let the process die by items that begin with ``deadly``."""
    if item.startswith(b"deadly"):
        os._exit(9)
    return echo(item)


def slow(item: bytes) -> bytes:
    """Take a second."""
    time.sleep(1)
    return echo(item)


def faulty(worker: Worker, folder: str, fault: str, wanted: bytes | None = None) -> Worker:
    """Return a worker that has a fault the first time it is called.

    Parameters
    ----------
    worker
        Does the work.
    folder
        Where it is kept which item was seen before.
    fault
        ``raise`` before or ``exit`` after the work, or ``twice``: the work is done, its result
        lost, and it is done again.
    wanted
        The item that has the fault; None = each.
    """
    return partial(_faulty, worker, folder, fault, wanted)


def _faulty(worker: Worker, folder: str, fault: str, wanted: bytes | None, item: bytes) -> bytes:
    if wanted is not None and item != wanted:
        return worker(item)
    marker = Path(folder) / f"seen-{hash_of(item)}"
    try:
        marker.touch(exist_ok=False)
    except FileExistsError:
        return worker(item)
    if fault == "raise":
        raise RuntimeError("told to fail")
    worker(item)
    if fault == "exit":
        os._exit(9)
    return worker(item)


def hash_of(item: bytes) -> str:
    """Return a name for an item that is the same in all processes."""
    return f"{int.from_bytes(item, 'big') % (2**61 - 1):x}"
