"""Index files of pylance with bytes changed or cut: an error of ours, never a crash or a hang."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from lance_core.errors import CorruptFileError, LanceError
from lance_core.io.memory_store import MemoryStore
from tests.opened_segment import build_index, open_segment

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.interop

Objects = dict[str, bytes]


@pytest.fixture(scope="module", params=["IVF_PQ", "IVF_FLAT", "IVF_HNSW_SQ"])
def objects(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Objects:
    path: Path = tmp_path_factory.mktemp("damaged") / "dataset.lance"
    options = {"num_sub_vectors": 4} if request.param == "IVF_PQ" else {}
    build_index(path, request.param, "l2", num_rows=600, options=options)
    return {
        str(file.relative_to(path)): file.read_bytes() for file in path.rglob("*") if file.is_file()
    }


def search(objects: Objects) -> None:
    store = MemoryStore()
    for path, data in objects.items():
        store.put(path, data)
    opened = open_segment(store)
    opened.search(np.ones(opened.segment.dimension, np.float32), 20, 6)


def path_of(objects: Objects, name: str) -> str:
    return next(path for path in objects if path.endswith(name))


names = st.sampled_from(["index.idx", "auxiliary.idx"])


@given(name=names, data=st.data())
@settings(max_examples=100)
def test_changed_bytes_give_an_answer_or_an_error_of_ours(
    objects: Objects, name: str, data: st.DataObject
) -> None:
    path = path_of(objects, name)
    changed = bytearray(objects[path])
    # the end of a file holds all that says where things are
    places = st.integers(0, len(changed) - 1) | st.integers(
        max(0, len(changed) - 1500), len(changed) - 1
    )
    for place in data.draw(st.lists(places, min_size=1, max_size=4)):
        changed[place] = data.draw(st.integers(0, 255))
    with suppress(LanceError):
        search({**objects, path: bytes(changed)})


@given(name=names, data=st.data())
@settings(max_examples=25)
def test_a_file_cut_short_is_corrupt(objects: Objects, name: str, data: st.DataObject) -> None:
    path = path_of(objects, name)
    length = data.draw(st.integers(0, len(objects[path]) - 1))
    with pytest.raises(CorruptFileError):
        search({**objects, path: objects[path][:length]})


@pytest.mark.parametrize("name", ["index.idx", "auxiliary.idx"])
def test_a_missing_file_is_named(objects: Objects, name: str) -> None:
    path = path_of(objects, name)
    with pytest.raises(CorruptFileError, match=name):
        search({other: data for other, data in objects.items() if other != path})
