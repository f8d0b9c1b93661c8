"""Who drives a job: one driver at a time, and another one when it is dead.

``lease-<n>.json`` in the journal holds who has it and when that was last said. A driver that takes
over writes the next number, only if nobody else has: so of two that try at once, one gets it, and
the one before sees at its next renewal that it has lost it.

A lease that was not renewed for ninety seconds is stale. One of a process of the same machine that
is not alive any more is so at once.
"""

from __future__ import annotations

import json
import os
import re
import threading
import time
import uuid
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from lance_core.errors import CorruptFileError, LanceError, ObjectExistsError
from pipeline.errors import JobRunningError

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Self

    from pipeline.journal import Journal

RENEW_S = 30.0
STALE_S = 3 * RENEW_S

_NAME = re.compile(r"lease-(\d+)\.json")
_PLACES = ("/proc/sys/kernel/random/boot_id", "/proc/self/ns/pid")


@dataclass(frozen=True, slots=True)
class LeaseState:
    """What a lease says.

    Parameters
    ----------
    number
        How often the job was taken over, and once more.
    owner
        Random, of one driver.
    machine
        Where process numbers mean the same; None where that cannot be told.
    pid
        Process of the driver.
    renewed_at
        Seconds since 1970.
    is_released
        Whether the driver has ended.
    """

    number: int
    owner: str
    machine: str | None
    pid: int
    renewed_at: float
    is_released: bool

    def is_fresh(self, now: float) -> bool:
        """Tell whether its driver may be at work."""
        if self.is_released or now - self.renewed_at > STALE_S:
            return False
        return self.machine is None or self.machine != _machine() or _is_alive(self.pid)


class Lease:
    """Held while the block runs, and renewed by a thread.

    Parameters
    ----------
    journal
        Of the job.
    clock
        Seconds since 1970.

    Raises
    ------
    JobRunningError
        Another driver has it.
    """

    def __init__(self, journal: Journal, clock: Callable[[], float] = time.time) -> None:
        self._journal = journal.round(0)
        self._clock = clock
        self._owner = uuid.uuid4().hex
        self._number = 0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._renew, name="lease", daemon=True)

    def __enter__(self) -> Self:
        last = lease_of(self._journal)
        if last is not None and last.is_fresh(self._clock()):
            raise self._running(last)
        self._number = 1 if last is None else last.number + 1
        try:
            self._journal.put_if_absent(self._name(), self._text(is_released=False))
        except ObjectExistsError:
            raise self._running(lease_of(self._journal)) from None
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()
        with suppress(LanceError):  # it gets stale by itself, and another error may be on its way
            if self._journal.has_begun():
                self._journal.put(self._name(), self._text(is_released=True))
            else:
                self._journal.discard_object(self._name())

    def check(self) -> None:
        """Make sure that nobody has taken over; call it before anything that counts.

        Raises
        ------
        JobRunningError
            Somebody has: this driver was taken for dead.
        """
        last = lease_of(self._journal)
        if last is not None and last.number != self._number:
            raise self._running(last)

    def _renew(self) -> None:
        while not self._ended.wait(RENEW_S):
            try:
                self._journal.put(self._name(), self._text(is_released=False))
            except LanceError:  # the store may answer the next time; `check` finds out what counts
                continue

    def _name(self) -> str:
        return f"lease-{self._number}.json"

    def _text(self, *, is_released: bool) -> bytes:
        return json.dumps(
            {
                "owner": self._owner,
                "machine": _machine(),
                "pid": os.getpid(),
                "renewed_at": self._clock(),
                "is_released": is_released,
            }
        ).encode()

    def _running(self, other: LeaseState | None) -> JobRunningError:
        who = "" if other is None else f", process {other.pid}"
        return JobRunningError(
            f"job {self._journal.job_id!r} has another driver{who}; wait for it, or"
            f" {STALE_S:.0f} s after it has died"
        )


def lease_of(journal: Journal) -> LeaseState | None:
    """Return the last lease of a job, None if it never had any."""
    numbers = [int(found[1]) for name in journal.names() if (found := _NAME.fullmatch(name))]
    if len(numbers) == 0:
        return None
    number = max(numbers)
    while True:
        try:
            data = journal.get(f"lease-{number}.json")
        except CorruptFileError:  # it was replaced by one of another size while it was read
            continue
        return None if data is None else _parsed(data, number)


def _parsed(data: bytes, number: int) -> LeaseState:
    try:
        found = json.loads(data)
        return LeaseState(
            number,
            str(found["owner"]),
            found["machine"],
            int(found["pid"]),
            float(found["renewed_at"]),
            bool(found["is_released"]),
        )
    except (ValueError, TypeError, KeyError) as error:
        raise CorruptFileError(f"lease-{number}.json", f"is no lease: {error}") from error


@cache
def _machine() -> str | None:
    """Name the running system and its space of process numbers, None where that is unknown."""
    boot, space = map(Path, _PLACES)
    try:
        return f"{boot.read_text().strip()} {space.readlink()}"
    except OSError:
        return None


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
