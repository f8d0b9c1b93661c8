"""Verification of a local dataset in tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_core.operations.verify import verify
from lance_core.query.session import Session

if TYPE_CHECKING:
    from pathlib import Path

    from lance_core.io.store import ObjectStore
    from lance_core.operations.verify_finding import Finding


def verified(root: Path, refs: ObjectStore | None = None) -> list[Finding]:
    """Return what is wrong with a dataset."""
    session = Session(cache_bytes=64 << 20)
    scheduler = session.scheduler(str(root))
    refs = scheduler.store if refs is None else refs
    return list(verify(session.files, scheduler, refs, session.base_opener()))
