"""Log records as JSON, one object per line, to standard error."""

from __future__ import annotations

import json
import logging
import sys
import threading
import time
from collections import deque
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import orjson

if TYPE_CHECKING:
    from typing import TextIO

_MAX_WAITING_LINES = 1 << 16
_WRITE_EVERY_S = 0.05


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
    fall behind by 65,536 lines, the oldest are dropped. Closing writes the rest, and ``logging``
    closes all handlers at exit.
    """

    def __init__(self, stream: TextIO) -> None:
        super().__init__()
        self._stream = stream
        self._lines: deque[str] = deque(maxlen=_MAX_WAITING_LINES)
        self._writing = threading.Lock()
        self._has_lines = threading.Event()
        self._is_closed = False
        self._waits = True
        threading.Thread(target=self._work, name="log", daemon=True).start()

    def emit(self, record: logging.LogRecord) -> None:
        """Leave a line to the thread."""
        try:
            self._lines.append(self.format(record))
        except Exception:
            self.handleError(record)
        if not self._waits:
            self.flush()
        elif not self._has_lines.is_set():
            self._has_lines.set()

    def flush(self) -> None:
        """Write all lines that wait."""
        with self._writing:
            lines = [self._lines.popleft() for _ in range(len(self._lines))]
            if lines:
                with suppress(OSError, ValueError):  # nobody reads the log any more
                    self._stream.write("\n".join(lines) + "\n")
                    self._stream.flush()

    def stop_waiting(self) -> None:
        """Write what waits, and each later line at once."""
        self._waits = False
        self.flush()

    def close(self) -> None:
        """Write what waits and end the thread."""
        self._is_closed = True
        self._has_lines.set()
        self.flush()
        super().close()

    def _work(self) -> None:
        while not self._is_closed:
            self._has_lines.wait()
            time.sleep(_WRITE_EVERY_S)
            self._has_lines.clear()
            self.flush()


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
