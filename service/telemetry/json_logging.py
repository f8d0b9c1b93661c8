"""Log records as JSON, one object per line, to standard error."""

from __future__ import annotations

import logging
from datetime import UTC, datetime

import orjson


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
        return orjson.dumps(line, default=str).decode()


def configure_logging(level: str) -> None:
    """Send everything from ``level`` up to standard error as JSON lines.

    Facts that no line shows are not collected (the logging HOWTO, "Optimization").
    """
    logging.logThreads = False
    logging.logProcesses = False
    logging.logMultiprocessing = False
    logging._srcfile = None
    handler = logging.StreamHandler()
    handler.setFormatter(JsonFormatter())
    logging.basicConfig(level=level, handlers=[handler], force=True)
