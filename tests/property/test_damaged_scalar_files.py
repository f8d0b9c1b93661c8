"""Files of scalar indices with bytes changed or cut give rows or an error of ours."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest

from lance_core.errors import LanceError
from lance_core.expr.index_query import AnyOf, Between, HasLabels, IsNull
from lance_core.io.memory_store import MemoryStore
from tests.damage import damaged
from tests.scalar_indices import UUID, bitmap, btree, found, label_list

if TYPE_CHECKING:
    from lance_core.expr.index_query import LeafQuery
    from tests.scalar_indices import WrittenSegment

NUM_ROWS = 400
SEEDS = 150


def text_column() -> pa.Array:
    return pa.array([None if n % 9 == 0 else f"key {n % 310}" for n in range(NUM_ROWS)])


def segments() -> dict[str, tuple[WrittenSegment, list[LeafQuery]]]:
    names = np.arange(NUM_ROWS, dtype=np.uint64) * np.uint64(3 << 30)
    texts = text_column()
    wanted: list[LeafQuery] = [AnyOf(texts.slice(20, 2)), Between(None, None), IsNull()]
    lists = pa.array([None if n % 9 == 0 else ["a", str(n % 40)] for n in range(NUM_ROWS)])
    labels: list[LeafQuery] = [HasLabels(pa.array(["a", "7"]), needs_all=True)]
    return {
        "BTREE": (btree(texts, names, 64), wanted),
        "BITMAP": (bitmap(texts, names), wanted),
        "LABEL_LIST": (label_list(lists, names), labels),
    }


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
@pytest.mark.parametrize("kind", ["BTREE", "BITMAP", "LABEL_LIST"])
def test_damage_is_told_as_such_or_does_not_matter(kind: str, version: str) -> None:
    segment, queries = segments()[kind]
    segment.version = version
    whole = segment.store()
    paths = [f"{UUID}/{name}" for name in segment.files]
    content = {path: bytes(whole.get_range(path, 0, whole.head(path).size)) for path in paths}
    for seed in range(SEEDS):
        rng = np.random.default_rng(seed)
        store = MemoryStore()
        for path, data in content.items():
            store.put(path, data)
        path = paths[seed % len(paths)]
        changed, how = damaged(content[path], rng)
        store.put(path, changed)
        try:
            with suppress(LanceError):
                opened = segment.open(store)
                for query in queries:
                    found(opened, query, with_nulls=True)
        except Exception as error:
            raise AssertionError(f"seed {seed}, {how}") from error
