"""Files of zone-based and n-gram indices with bytes changed or cut: an error of ours, or rows."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import lance
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st

from lance_core.errors import CorruptFileError, LanceError
from lance_core.expr.index_query import AnyOf, Between, ContainsAll, IsNull
from lance_core.io.memory_store import MemoryStore
from tests.damage import damaged
from tests.opened_scalar import open_segments

if TYPE_CHECKING:
    from pathlib import Path

    from lance_core.expr.index_query import LeafQuery

pytestmark = pytest.mark.interop

Objects = dict[str, bytes]
FILES = ["zonemap.lance", "bloomfilter.lance", "ngram_postings.lance"]
QUERIES: list[LeafQuery] = [
    AnyOf(pa.array(["text 3", "text 77"])),
    Between(pa.scalar("text 2"), pa.scalar("text 5"), includes_upper=False),
    ContainsAll(("text 4",)),
    IsNull(),
]


@pytest.fixture(scope="module", params=["2.0", "2.2"])
def objects(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Objects:
    path: Path = tmp_path_factory.mktemp("damaged") / "dataset.lance"
    texts = [f"text {n // 3}" if n % 11 else None for n in range(500)]
    dataset = lance.write_dataset(
        pa.table({"text": texts}), path, max_rows_per_file=300, data_storage_version=request.param
    )
    for kind in ("ZONEMAP", "BLOOMFILTER", "NGRAM"):
        dataset.create_scalar_index("text", kind, name=kind)
    return {
        str(file.relative_to(path)): file.read_bytes() for file in path.rglob("*") if file.is_file()
    }


def path_of(objects: Objects, name: str) -> str:
    return next(path for path in objects if path.endswith(name))


def search(objects: Objects, name: str) -> None:
    """Open the segment of a file, ask it all that it can answer, and look at the rows."""
    store = MemoryStore()
    for path, data in objects.items():
        store.put(path, data)
    kind = {"zonemap.lance": "ZONEMAP", "bloomfilter.lance": "BLOOMFILTER"}.get(name, "NGRAM")
    (segment,) = open_segments(store, kind)
    for query in QUERIES:
        if segment.supports(query):
            answer = segment.search(query, with_nulls=True, check=lambda: None)
            assert all(len(rows) > 0 for rows in answer.possible.values())


@pytest.mark.parametrize("name", FILES)
@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=60)
def test_damage_gives_rows_or_an_error_of_ours(objects: Objects, name: str, seed: int) -> None:
    path = path_of(objects, name)
    changed, _ = damaged(objects[path], np.random.default_rng(seed))
    with suppress(LanceError):
        search({**objects, path: changed}, name)


@pytest.mark.parametrize("name", FILES)
@given(data=st.data())
@settings(max_examples=15)
def test_a_file_cut_short_is_corrupt(objects: Objects, name: str, data: st.DataObject) -> None:
    path = path_of(objects, name)
    length = data.draw(st.integers(0, len(objects[path]) - 1))
    with pytest.raises(CorruptFileError):
        search({**objects, path: objects[path][:length]}, name)


@pytest.mark.parametrize("name", FILES)
def test_a_missing_file_is_named(objects: Objects, name: str) -> None:
    path = path_of(objects, name)
    with pytest.raises(CorruptFileError, match=name):
        search({other: data for other, data in objects.items() if other != path}, name)


@pytest.mark.parametrize("name", FILES)
def test_whole_files_are_searched(objects: Objects, name: str) -> None:
    search(objects, name)
