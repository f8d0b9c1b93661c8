"""Log records as JSON, one object per line, to standard error."""

from __future__ import annotations

import json
import logging
import sys
import threading
from collections import deque
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import orjson

if TYPE_CHECKING:
    from typing import TextIO

_MAX_WAITING_LINES = 1 << 16
_WRITE_EVERY_S = 0.05
_PATIENCE_S = 2.0


class JsonFormatter(logging.Formatter):
    """Formats a record as one JSON line; members come from ``extra={"fields": {...}}``."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        line: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        fields = getattr(record, "fields", None)
        if isinstance(fields, dict):
            line.update(fields)
        if record.exc_info is not None:
            line["stack"] = self.formatException(record.exc_info)
        try:
            return orjson.dumps(line, default=str).decode()
        except TypeError:  # half a surrogate pair, or an endless number, as callers may send
            return json.dumps(line, default=str)


class LineWriter(logging.Handler):
    """Writes lines from a thread of its own, all that have come in one piece.

    Whoever logs, the event loop first of all, does not wait for those who read the log. When they
    fall behind by 65,536 lines, the oldest are dropped. ``flush``, which ``logging`` calls at exit,
    waits for all to be written, but not for longer than two seconds: a reader may have stopped.
    """

    def __init__(self, stream: TextIO) -> None:
        super().__init__()
        self._stream = stream
        self._lines: deque[str] = deque(maxlen=_MAX_WAITING_LINES)
        self._guard = threading.Lock()
        self._has_lines = threading.Event()
        self._is_written = threading.Event()
        self._is_written.set()
        self._is_urgent = threading.Event()
        self._is_closed = False
        threading.Thread(target=self._work, name="log", daemon=True).start()

    def emit(self, record: logging.LogRecord) -> None:
        """Leave a line to the thread."""
        try:
            line = self.format(record)
        except Exception:
            self.handleError(record)
            return
        with self._guard:
            self._lines.append(line)
            self._is_written.clear()
        if not self._has_lines.is_set():
            self._has_lines.set()
        if self._is_urgent.is_set():
            self.flush()

    def flush(self) -> None:
        """Wait until all lines are written, for two seconds at most."""
        if self._is_written.is_set():
            return
        was_urgent = self._is_urgent.is_set()
        self._is_urgent.set()
        is_written = self._is_written.wait(_PATIENCE_S)
        if not (was_urgent and is_written):
            self._is_urgent.clear()

    def stop_waiting(self) -> None:
        """Write what waits, and each later line at once as long as somebody reads them."""
        self._is_urgent.set()
        self.flush()

    def close(self) -> None:
        """Write what waits and end the thread."""
        self.flush()
        self._is_closed = True
        self._has_lines.set()
        super().close()

    def _work(self) -> None:
        while len(self._lines) > 0 or not self._is_closed:
            self._has_lines.wait()
            self._is_urgent.wait(_WRITE_EVERY_S)  # for more lines, unless somebody waits
            self._has_lines.clear()
            self._write([self._lines.popleft() for _ in range(len(self._lines))])
            with self._guard:
                if len(self._lines) == 0:
                    self._is_written.set()

    def _write(self, lines: list[str]) -> None:
        if len(lines) == 0:
            return
        with suppress(OSError, ValueError):  # nobody reads the log any more
            self._stream.write("\n".join(lines) + "\n")
            self._stream.flush()


def configure_logging(level: str) -> None:
    """Send everything from ``level`` up to standard error as JSON lines.

    Facts that no line shows are not collected (the logging HOWTO, "Optimization").
    """
    logging.logThreads = False
    logging.logProcesses = False
    logging.logMultiprocessing = False
    logging._srcfile = None
    handler = LineWriter(sys.stderr)
    handler.setFormatter(JsonFormatter())
    logging.basicConfig(level=level, handlers=[handler], force=True)


def write_lines_at_once() -> None:
    """Let no line wait any more: a process that a signal ends runs no handlers at exit."""
    for handler in logging.getLogger().handlers:
        if isinstance(handler, LineWriter):
            handler.stop_waiting()
