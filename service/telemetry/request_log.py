"""One JSON line per request."""

from __future__ import annotations

import logging
import time
import traceback
from dataclasses import dataclass, field

from lance_core.errors import LanceError

_LOGGER = logging.getLogger("service.request")
_WHERE_KNOWN = (
    "client",
    "caller",
    "trace_id",
    "code",
    "table",
    "version",
    "plan",
    "rows",
    "bytes_read",
    "cache_hits",
)
_CLIENT_ERROR = 400
_SERVER_ERROR = 500


@dataclass(slots=True)
class RequestRecord:
    """What is logged of one request; filled while the request is answered.

    The line is also the record of who asked for what: ``client`` is the address of the connection,
    ``caller`` the name of the key, or the subject of the token. Keys and tokens are in no line.
    ``is_expected`` says that an error would be part of the answer, no fault.
    """

    request_id: str
    method: str
    path: str
    client: str | None = None
    caller: str | None = None
    trace_id: str | None = None
    status: int = 0
    code: int | None = None
    table: str | None = None
    version: int | None = None
    plan: str | None = None
    rows: int | None = None
    bytes_read: int | None = None
    cache_hits: int | None = None
    error: BaseException | None = None
    is_expected: bool = False
    elapsed_s: float = 0.0
    _started: float = field(default_factory=time.perf_counter)

    def finish(self) -> None:
        """Stop the clock."""
        self.elapsed_s = time.perf_counter() - self._started

    def write(self) -> None:
        """Write the line; server faults at ERROR, everything else at INFO."""
        level = logging.ERROR if self._is_fault() and not self.is_expected else logging.INFO
        if _LOGGER.isEnabledFor(level):
            _LOGGER.log(level, "request", extra={"fields": self._fields()})

    def _is_fault(self) -> bool:
        """Tell server faults: those that were answered, and those after a good beginning."""
        broke_off = self.error is not None and self.status < _CLIENT_ERROR
        return broke_off or self.status >= _SERVER_ERROR

    def _fields(self) -> dict[str, object]:
        fields: dict[str, object] = {
            "request_id": self.request_id,
            "method": self.method,
            "path": self.path,
            "status": self.status,
            "elapsed_ms": round(self.elapsed_s * 1e3, 3),
        }
        for name in _WHERE_KNOWN:
            value = getattr(self, name)
            if value is not None:
                fields[name] = value
        if self.error is not None:
            fields.update(_describe(self.error))
        return fields


def _describe(error: BaseException) -> dict[str, object]:
    """Return class and text of an error, with the stack of those that nobody expected."""
    described: dict[str, object] = {"error_type": type(error).__name__, "error": str(error)}
    if not isinstance(error, LanceError):
        described["stack"] = "".join(traceback.format_exception(error))
    return described
