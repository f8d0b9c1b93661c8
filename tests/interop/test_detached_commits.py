"""Versions of ours outside the history."""

from __future__ import annotations

from typing import TYPE_CHECKING

import lance
import pytest

from lance_core.errors import VersionNotFoundError
from lance_core.table.commit_detached import commit_detached
from lance_core.table.transaction import Append, Transaction
from tests.committed import append, create, new_fragment, opened
from tests.interop.test_commits_seen_by_pylance import ids_of, rows

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.interop


def test_a_detached_version_is_read_by_its_number_only(tmp_path: Path) -> None:
    snapshot = create(tmp_path, rows(0, 10))
    store = snapshot.scheduler.store
    operation = Append((new_fragment(store, rows(10, 20), snapshot.schema),))
    detached = commit_detached(snapshot.scheduler, Transaction(1, operation))
    assert detached.version >= 2**63
    assert ids_of(tmp_path) == list(range(10))
    theirs = lance.dataset(str(tmp_path), version=detached.version)
    assert theirs.to_table()["id"].to_pylist() == list(range(20))
    assert len(opened(tmp_path, detached.version).fragments) == 2
    assert append(snapshot, rows(20, 30)).version == 2


def test_a_detached_version_needs_the_version_it_read(tmp_path: Path) -> None:
    snapshot = create(tmp_path, rows(0, 10))
    with pytest.raises(VersionNotFoundError):
        commit_detached(snapshot.scheduler, Transaction(5, Append(())))
