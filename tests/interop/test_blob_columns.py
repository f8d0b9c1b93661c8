"""Blob columns: descriptors as pylance hands them out, and bytes on request."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import lance
import lance.file
import numpy as np
import pyarrow as pa
import pytest

import lance_core
from lance_core.errors import InvalidRequestError, UnknownColumnError
from lance_core.file import LanceFileReader, LanceFileWriter
from lance_core.io.mapped_store import MappedStore
from lance_core.io.memory_store import MemoryStore
from lance_core.io.scheduler import RangeScheduler

if TYPE_CHECKING:
    from pathlib import Path

    Version = Literal["2.0", "2.1", "2.2"]

pytestmark = pytest.mark.interop

BLOB = {"lance-encoding:blob": "true"}
VALUES = [b"x", None, b"", b"y" * 100, b"z" * 90_000, None, b"w" * 5_000_000, b"v" * 70_000] * 3
FIELD = pa.field("b", pa.large_binary(), metadata=BLOB)


@pytest.fixture(params=["2.0", "2.1", "2.2"])
def version(request: pytest.FixtureRequest) -> Any:
    return request.param


def written(table: pa.Table, folder: Path, version: Version) -> lance.LanceDataset:
    return lance.write_dataset(table, str(folder), data_storage_version=version)


def blobs() -> pa.Table:
    columns = [pa.array(range(len(VALUES))), pa.array(VALUES, pa.large_binary())]
    return pa.table(columns, schema=pa.schema([pa.field("id", pa.int64()), FIELD]))


def only_file(folder: Path, *, is_mapped: bool) -> LanceFileReader:
    files = {
        str(path.relative_to(folder)): path for path in folder.glob("data/**/*") if path.is_file()
    }
    (data_file,) = (name for name in files if name.endswith(".lance"))
    if is_mapped:
        return LanceFileReader.open(RangeScheduler(MappedStore(folder)), data_file)
    store = MemoryStore()
    for name, path in files.items():
        store.put(name, path.read_bytes())
    return LanceFileReader.open(RangeScheduler(store), data_file)


def test_a_scan_hands_out_the_descriptors_that_pylance_hands_out(
    version: Version, tmp_path: Path
) -> None:
    wanted = written(blobs(), tmp_path / "t.lance", version)
    dataset = lance_core.open_dataset(tmp_path / "t.lance")
    assert dataset.scan().read_all().equals(wanted.to_table(), check_metadata=True)
    rows = [4, 1, 1, 20]
    assert dataset.take(rows, ["b"]).equals(wanted.take(rows, ["b"]))


@pytest.mark.parametrize("is_mapped", [True, False])
def test_the_bytes_are_read_on_request(version: Version, is_mapped: bool, tmp_path: Path) -> None:
    written(blobs(), tmp_path / "t.lance", version)
    reader = only_file(tmp_path / "t.lance", is_mapped=is_mapped)
    target = reader.target("b", blob_handling="all_binary")
    (found,) = reader.read([target], [(0, 12), (10, 24)])
    assert found.type == pa.large_binary()
    assert found.to_pylist() == VALUES[:12] + VALUES[10:]
    rows = np.array([7, 1, 6, 2])
    assert reader.take([target], rows)[0].to_pylist() == [VALUES[row] for row in rows]


def test_a_scan_of_bytes_takes_few_large_blobs_at_a_time(version: Version, tmp_path: Path) -> None:
    large = [bytes([i]) * 3_000_000 if i % 3 else None for i in range(30)]
    column = pa.array([*large, *[b"small"] * 3000], pa.large_binary())
    written(pa.table([column], schema=pa.schema([FIELD])), tmp_path / "t.lance", version)
    reader = only_file(tmp_path / "t.lance", is_mapped=True)
    target = reader.target("b", blob_handling="all_binary")
    batches = list(reader.scan([target], batch_bytes=100 << 20))
    assert pa.Table.from_batches(batches)["b"].to_pylist() == column.to_pylist()
    assert max(batch.nbytes for batch in batches) < 5_000_000
    lists = reader.scan([target], [(1, 5), (29, 40)], batch_rows=7).read_all()
    assert lists["b"].to_pylist() == [column[i].as_py() for i in [*range(1, 5), *range(29, 40)]]


def nested() -> pa.Table:
    struct = pa.struct([FIELD, pa.field("i", pa.int32())])
    rows = [{"b": b"a", "i": 1}, {"b": None, "i": 2}, None, {"b": b"", "i": None}] * 5
    return pa.table([pa.array(rows, struct)], schema=pa.schema([pa.field("s", struct)]))


def test_blobs_inside_structs_are_read(tmp_path: Path) -> None:
    for version in ("2.1", "2.2"):
        folder = tmp_path / version
        wanted = written(nested(), folder, version)
        dataset = lance_core.open_dataset(folder)
        assert dataset.scan().read_all().equals(wanted.to_table())
        reader = only_file(folder, is_mapped=True)
        (found,) = reader.read([reader.target("s", blob_handling="all_binary")], [(0, 20)])
        assert found.to_pylist() == nested()["s"].to_pylist()
        target = reader.target("s", blob_handling="all_binary")
        assert reader.scan([target]).read_all()["s"].to_pylist() == nested()["s"].to_pylist()
        (part,) = reader.read([reader.target("s.b", blob_handling="all_binary")], [(1, 4)])
        assert part.to_pylist() == [None, None, b""]


def test_blobs_inside_lists_are_read(tmp_path: Path) -> None:
    lists = [[b"a", b"b"], [], None, [None, b""]] * 5
    kind = pa.list_(FIELD)
    table = pa.table([pa.array(lists, kind)], schema=pa.schema([pa.field("l", kind)]))
    for version in ("2.0", "2.2"):
        folder = tmp_path / version
        wanted = written(table, folder, version)
        dataset = lance_core.open_dataset(folder)
        assert dataset.scan().read_all().equals(wanted.to_table())
        reader = only_file(folder, is_mapped=True)
        target = reader.target("l", blob_handling="all_binary")
        (found,) = reader.read([target], [(1, 20)])
        assert found.to_pylist() == lists[1:]
        assert reader.scan([target]).read_all()["l"].to_pylist() == lists


def test_a_column_of_nulls_only_is_read(version: Version, tmp_path: Path) -> None:
    column = pa.nulls(7, pa.large_binary())
    wanted = written(pa.table([column], schema=pa.schema([FIELD])), tmp_path / "t.lance", version)
    found = lance_core.open_dataset(tmp_path / "t.lance").scan().read_all()
    assert found.equals(wanted.to_table())
    reader = only_file(tmp_path / "t.lance", is_mapped=True)
    (values,) = reader.read([reader.target("b", blob_handling="all_binary")], [(0, 7)])
    assert values.to_pylist() == [None] * 7


def test_an_unknown_handling_and_a_part_of_a_descriptor_are_refused(
    version: Version, tmp_path: Path
) -> None:
    written(blobs(), tmp_path / "t.lance", version)
    reader = only_file(tmp_path / "t.lance", is_mapped=True)
    with pytest.raises(InvalidRequestError, match="blob_handling"):
        reader.target("b", blob_handling="bytes")  # type: ignore[arg-type]  # what it refuses
    with pytest.raises(UnknownColumnError):
        reader.target("b.position")


def test_the_file_reader_of_pylance_reads_no_blobs_of_2_2_datasets_its_own_included(
    tmp_path: Path,
) -> None:
    """Its projection counts the parts of the descriptor, which have no column: a bug of 14.0.2.

    Both files are read where they are meant to be, as fragments of a dataset.
    """
    field = pa.field("b", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
    table = pa.table([pa.array([b"x" * 100, None, b""])], schema=pa.schema([field]))
    lance.write_dataset(table, tmp_path / "d.lance", data_storage_version="2.2")
    (of_pylance,) = (tmp_path / "d.lance" / "data").glob("*.lance")
    with LanceFileWriter.open_path(tmp_path / "ours.lance", table.schema) as writer:
        writer.write_batch(table)
    for path in (of_pylance, tmp_path / "ours.lance"):
        with pytest.raises(ValueError, match="column index 5 but there are only 1 columns"):
            lance.file.LanceFileReader(str(path)).read_all()
        reader = LanceFileReader.open_path(path)
        (blobs,) = reader.read([reader.target("b", blob_handling="all_binary")], [(0, 3)])
        assert blobs.to_pylist() == table["b"].to_pylist()
