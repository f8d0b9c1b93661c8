"""Stores that stop to work at a moment that a test chooses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_core.errors import StoreUnavailableError

if TYPE_CHECKING:
    from collections.abc import Callable

    import pytest


def fail_at(monkeypatch: pytest.MonkeyPatch, kind: type, number: int) -> None:
    """Let a store fail when it is to open its file ``number``, or to put an object after them."""
    calls = 0

    def failing(usual: Callable[..., object]) -> Callable[..., object]:
        def call(*given: object) -> object:
            nonlocal calls
            calls += 1
            if calls > number:
                message = "gone"
                raise StoreUnavailableError(message)
            return usual(*given)

        return call

    for name in ("open_sink", "put", "put_if_absent"):
        monkeypatch.setattr(kind, name, failing(getattr(kind, name)))
