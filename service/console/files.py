"""The files of the console, as they are sent."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from importlib.resources.abc import Traversable

START_PAGE = "index.html"

_MEDIA_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        # Nothing may make markup of text, so that no cell of a table ever becomes a script.
        "require-trusted-types-for 'script'",
        "trusted-types 'none'",
    )
)


@dataclass(frozen=True, slots=True)
class ConsoleFile:
    """One file: its bytes, and the headers that go with them, ``etag`` among these."""

    body: bytes
    headers: Mapping[str, str]

    @property
    def etag(self) -> str:
        """What names the bytes."""
        return self.headers["etag"]


@cache
def console_files() -> Mapping[str, ConsoleFile]:
    """Return all files by their paths below ``/console/``; what is not among them is not sent."""
    root = resources.files("service.console") / "static"
    return {path: _read(path, file) for path, file in _walk(root, "")}


def _walk(folder: Traversable, prefix: str) -> Iterator[tuple[str, Traversable]]:
    for each in folder.iterdir():
        path = prefix + each.name
        if each.is_dir():
            yield from _walk(each, f"{path}/")
        elif PurePosixPath(path).suffix in _MEDIA_TYPES:
            yield path, each


def _read(path: str, file: Traversable) -> ConsoleFile:
    body = file.read_bytes()
    headers = {
        "content-type": _MEDIA_TYPES[PurePosixPath(path).suffix],
        "content-security-policy": _POLICY,
        "x-content-type-options": "nosniff",
        "referrer-policy": "no-referrer",
        "cross-origin-opener-policy": "same-origin",
        "cache-control": "no-cache",
        "etag": f'"{hashlib.sha256(body).hexdigest()[:32]}"',
    }
    return ConsoleFile(body, headers)
