"""Verification finds nothing in what pylance wrote, and the place of each thing that was broken."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any

import lance
import numpy as np
import pyarrow as pa
import pytest

from lance_core.errors import CorruptFileError, StoreUnavailableError
from lance_core.file import LanceFileReader, LanceFileWriter
from lance_core.io.mapped_store import MappedStore
from lance_core.io.scheduler import RangeScheduler
from lance_core.operations.verify import verify
from lance_core.proto import table_pb2
from lance_core.proto.index_pb2 import VectorIndexDetails, VectorMetricType
from lance_core.table.base_paths import refuse_base
from lance_core.table.flags import Feature
from lance_core.table.index_metadata import REUSE_INDEX_NAME
from lance_core.table.manifest_bytes import manifest_to_bytes
from lance_core.table.row_ids import encode_row_ids
from tests.committed import opened
from tests.compacted import compacted
from tests.opened_table import open_table
from tests.verified import verified

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from lance_core.operations.verify_finding import Finding

pytestmark = pytest.mark.interop

DIMENSION = 16


def rows(first: int, last: int) -> pa.Table:
    rng = np.random.default_rng(first)
    vectors = rng.standard_normal(((last - first), DIMENSION)).astype(np.float32)
    ids = range(first, last)
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "text": [None if i % 11 == 0 else f"word{i % 7} and more" for i in ids],
            "vec": pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), DIMENSION),
        }
    )


def build(root: Path, **options: Any) -> None:
    """Make a dataset with deletions, indices, schema changes, a tag and a branch."""
    dataset = lance.write_dataset(rows(0, 600), str(root), max_rows_per_file=200, **options)
    dataset.create_index("vec", "IVF_PQ", num_partitions=2, num_sub_vectors=4)
    dataset.create_scalar_index("id", "BTREE")
    dataset.delete("id % 9 = 1")
    lance.write_dataset(rows(600, 640), str(root), mode="append")
    dataset = lance.dataset(str(root))
    dataset.add_columns({"twice": "id * 2"})
    dataset.update({"text": "'new'"}, where="id % 50 = 0")
    dataset.tags.create("named", 3)
    dataset.create_branch("side/one", 4)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"enable_stable_row_ids": True},
        {"data_storage_version": "2.0"},
        {"data_storage_version": "2.1", "enable_v2_manifest_paths": False},
    ],
    ids=["usual", "stable row ids", "2.0", "V1 names"],
)
def test_nothing_is_wrong_with_what_pylance_wrote(tmp_path: Path, options: dict[str, Any]) -> None:
    build(tmp_path, **options)
    dataset = lance.dataset(str(tmp_path))
    dataset.optimize.compact_files(materialize_deletions_threshold=0.0)
    dataset.optimize.optimize_indices()
    lance.dataset(str(tmp_path)).restore()
    assert verified(tmp_path) == []
    branch = tmp_path / "tree" / "side" / "one"
    lance.write_dataset(rows(700, 720), str(branch), mode="append")
    assert verified(branch, MappedStore(str(tmp_path))) == []


@pytest.mark.parametrize(
    "kind", ["BITMAP", "LABEL_LIST", "NGRAM", "ZONEMAP", "BLOOMFILTER", "INVERTED"]
)
def test_nothing_is_wrong_with_scalar_indices(tmp_path: Path, kind: Any) -> None:
    table = rows(0, 300).append_column("tags", pa.array([[f"t{i % 5}"] for i in range(300)]))
    dataset = lance.write_dataset(table, str(tmp_path), max_rows_per_file=100)
    column = "tags" if kind == "LABEL_LIST" else "text"
    dataset.create_scalar_index(column, kind)
    dataset.optimize.compact_files()
    assert verified(tmp_path) == []


@pytest.mark.parametrize("kind", ["IVF_FLAT", "IVF_SQ", "IVF_RQ", "IVF_HNSW_FLAT", "IVF_HNSW_SQ"])
def test_nothing_is_wrong_with_vector_indices(tmp_path: Path, kind: str) -> None:
    dataset = lance.write_dataset(rows(0, 300), str(tmp_path))
    dataset.create_index("vec", kind, num_partitions=2)
    assert verified(tmp_path) == []


def test_nothing_is_wrong_with_blobs_and_json(tmp_path: Path) -> None:
    values = [b"a", None, b"b" * 70_000, b"c" * 5_000_000]
    table = pa.table(
        {"json": pa.array(['{"a": 1}', None, "[]", "2"], pa.json_())},
    ).append_column(lance.blob_field("blob"), lance.blob_array(values))
    lance.write_dataset(table, str(tmp_path), max_rows_per_file=2)
    assert verified(tmp_path) == []
    (sidecar, *_) = tmp_path.rglob("*.blob")
    sidecar.unlink()
    (found,) = verified(tmp_path)
    assert found.where.endswith(".lance")
    assert sidecar.name in found.what


def test_nothing_is_wrong_after_deferred_compactions(tmp_path: Path) -> None:
    build(tmp_path)
    for target in (250, 10_000):
        compacted(tmp_path, target_rows=target)
        lance.dataset(str(tmp_path)).delete(f"id = {target % 640}")
    lance.dataset(str(tmp_path)).optimize.compact_files(defer_index_remap=True)
    assert verified(tmp_path) == []


def test_nothing_is_wrong_with_a_clone(tmp_path: Path) -> None:
    build(tmp_path / "source")
    dataset = lance.dataset(str(tmp_path / "source"))
    dataset.shallow_clone(str(tmp_path / "clone"), dataset.version)
    lance.dataset(str(tmp_path / "clone")).delete("id = 7")
    assert verified(tmp_path / "clone") == []


@pytest.mark.parametrize("release", ["0.20.0", "1.0.4", "10.0.0"])
@pytest.mark.parametrize("name", ["plain", "evolve", "ivf_pq_l2"])
def test_nothing_is_wrong_with_old_datasets(old_dataset: Any, release: str, name: str) -> None:
    assert verified(old_dataset(release, name)) == []


def test_index_files_that_old_writers_did_not_list_are_read(
    old_dataset: Any, tmp_path: Path
) -> None:
    root = tmp_path / "t.lance"
    shutil.copytree(old_dataset("0.20.0", "ivf_pq_l2"), root)
    (segment,) = opened(root).indices
    assert segment.files == ()
    for path in (root / "_indices").rglob("*.idx"):
        path.write_bytes(path.read_bytes()[:-4])
        assert {finding.where for finding in verified(root)} == {str(path.relative_to(root))}
        return
    pytest.fail("the index has no file")


def test_an_empty_dataset_is_fine(tmp_path: Path) -> None:
    lance.write_dataset(rows(0, 5).slice(0, 0), str(tmp_path))
    assert verified(tmp_path) == []


def named_files(root: Path) -> list[Path]:
    folders = ("data", "_deletions", "_indices", "_versions")
    paths = [path for folder in folders for path in (root / folder).rglob("*") if path.is_file()]
    return sorted(path for path in paths if path.suffix != ".json")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("whole") / "t.lance"
    build(root, enable_stable_row_ids=True)
    assert verified(root) == []
    return root


@pytest.mark.parametrize("harm", ["missing", "empty", "halved", "foreign end"])
def test_every_broken_file_is_named(whole: Path, tmp_path: Path, harm: str) -> None:
    for path in named_files(whole):
        if harm == "missing" and path.suffix == ".manifest":
            continue  # an older version may be missing
        root = tmp_path / "t.lance"
        shutil.rmtree(root, ignore_errors=True)
        shutil.copytree(whole, root)
        name = str(path.relative_to(whole))
        broken = root / name
        data = broken.read_bytes()
        if harm == "missing":
            broken.unlink()
        elif harm == "foreign end":
            broken.write_bytes(data[:-8] + b"\xff" * 8)
        else:
            broken.write_bytes(data[: len(data) // 2 if harm == "halved" else 0])
        assert name in {finding.where for finding in verified(root)}, name


def test_damaged_pages_are_found_in_any_version(whole: Path, tmp_path: Path) -> None:
    root = tmp_path / "t.lance"
    shutil.copytree(whole, root)
    oldest = opened(root, 1).fragments[0].data_files[0]
    path = root / "data" / oldest.path
    data = bytearray(path.read_bytes())
    reader = open_table(root).files.reader(opened(root, 1), oldest)
    (start, end), *_ = reader.byte_ranges([reader.target("text")], [(0, 200)])
    data[start:end] = b"\xff" * (end - start)
    path.write_bytes(data)
    assert [finding.where for finding in verified(root)] == [f"data/{oldest.path}"]


def changed(root: Path, change: Callable[[table_pb2.Manifest, list[Any]], None]) -> list[Finding]:
    """Write the newest manifest anew with a change, and verify the dataset."""
    snapshot = opened(root)
    message = table_pb2.Manifest()
    message.CopyFrom(snapshot.manifest.message)
    indices = list(snapshot.manifest.index_section.indices)
    change(message, indices)
    transaction = (root / "_transactions" / message.transaction_file).read_bytes()
    (root / snapshot.manifest.path).write_bytes(manifest_to_bytes(message, indices, transaction))
    found = verified(root)
    assert {finding.where for finding in found} <= {
        "data/",  # where the manifest says no more
        *(str(path.relative_to(root)) for path in named_files(root)),
    }
    return found


@pytest.fixture
def root(whole: Path, tmp_path: Path) -> Path:
    copied = tmp_path / "t.lance"
    shutil.copytree(whole, copied)
    return copied


def test_a_scalar_index_whose_keys_are_out_of_order_is_found(root: Path) -> None:
    def change(_: table_pb2.Manifest, indices: list[Any]) -> None:
        (entry,) = [each for each in indices if each.name == "id_idx"]
        del entry.files[:]  # so that the file may have another size

    (path,) = root.glob("_indices/*/page_data.lance")
    rows_of_pages = LanceFileReader.open_path(path).read_all()
    path.unlink()
    with LanceFileWriter.open_path(path, rows_of_pages.schema) as writer:
        writer.write_batch(rows_of_pages.take(np.arange(len(rows_of_pages))[::-1]))
    (finding,) = changed(root, change)
    assert finding.where == str(path.relative_to(root))
    assert "not sorted" in finding.what


def test_a_bloom_filter_of_a_wrong_length_is_found(tmp_path: Path) -> None:
    def change(_: table_pb2.Manifest, indices: list[Any]) -> None:
        del indices[0].files[:]

    dataset = lance.write_dataset(rows(0, 100), str(tmp_path))
    dataset.create_scalar_index("text", "BLOOMFILTER")
    (path,) = tmp_path.glob("_indices/*/bloomfilter.lance")
    zones = LanceFileReader.open_path(path).read_all()
    shorter = [each[:-1] for each in zones["bloom_filter_data"].to_pylist()]
    place = zones.schema.get_field_index("bloom_filter_data")
    zones = zones.set_column(place, zones.schema.field(place), pa.array(shorter, pa.binary()))
    path.unlink()
    zones = zones.replace_schema_metadata()  # which says where the nulls are
    with LanceFileWriter.open_path(path, zones.schema) as writer:
        writer.write_batch(zones)
    (finding,) = changed(tmp_path, change)
    assert finding.where == str(path.relative_to(tmp_path))
    assert "Bloom filter" in finding.what


def _moved(lengths: list[int]) -> list[int]:
    """Return as many tokens, one of them in another document."""
    return [lengths[0] + 1, lengths[1] - 1, *lengths[2:]]


@pytest.mark.parametrize(
    ("name", "column", "harm", "text"),
    [
        ("docs", "_num_tokens", lambda lengths: [lengths[0] + 1, *lengths[1:]], "total_tokens"),
        ("docs", "_num_tokens", _moved, "in posting lists"),
        ("docs", "_rowid", lambda rows: rows, "total_tokens"),
        ("invert", "_length", lambda lengths: [1000, *lengths[1:]], "has 1000 postings"),
        ("tokens", "_token_fst_bytes", lambda fsts: [fsts[0][:-30]], "dictionary"),
    ],
)
def test_an_inverted_index_whose_files_disagree_is_found(
    tmp_path: Path, name: str, column: str, harm: Any, text: str
) -> None:
    def change(_: table_pb2.Manifest, indices: list[Any]) -> None:
        del indices[0].files[:]

    dataset = lance.write_dataset(rows(0, 100), str(tmp_path))
    dataset.create_scalar_index("text", "INVERTED")
    (path,) = tmp_path.glob(f"_indices/*/part_0_{name}.lance")
    held = LanceFileReader.open_path(path).read_all()
    place = held.schema.get_field_index(column)
    values = pa.array(harm(held[column].to_pylist()), held[column].type)
    told = dict(held.schema.metadata or {})
    told |= {b"total_tokens": b"1"} if column == "_rowid" else {}
    held = held.set_column(place, held.schema.field(place), values)
    path.unlink()
    with LanceFileWriter.open_path(path, held.schema.with_metadata(told)) as writer:
        writer.write_batch(held)
    (finding,) = changed(tmp_path, change)
    assert finding.where == str(path.relative_to(tmp_path))
    assert text in finding.what


def test_the_manifest_may_not_contradict_itself(root: Path) -> None:
    def change(message: table_pb2.Manifest, indices: list[Any]) -> None:
        first, last = message.fragments[0], message.fragments[-1]
        swapped = [last, *message.fragments[1:-1], first]
        del message.fragments[:]
        message.fragments.extend(swapped)
        message.max_fragment_id = 1
        message.writer_feature_flags &= ~int(Feature.DELETION_FILES)
        indices[0].fields[:] = [77]
        indices[1].uuid.CopyFrom(indices[0].uuid)
        indices[1].dataset_version = 1000

    texts = " / ".join(finding.what for finding in changed(root, change))
    for text in (
        "not sorted",
        "the largest id is said to be 1",
        "feature flags do not say so",
        "fields that are gone: {77}",
        "of one uuid",
        "version 1000, which is newer",
    ):
        assert text in texts


@pytest.mark.parametrize(
    ("harm", "text"),
    [
        (lambda m: setattr(m.fragments[0], "physical_rows", 201), "200 rows"),
        (lambda m: setattr(m.fragments[0].files[0], "file_minor_version", 1), "version 2.2"),
        (lambda m: m.fragments[0].files[0].column_indices.__setitem__(0, 40), "names column 40"),
        (lambda m: setattr(m.fragments[0].deletion_file, "num_deleted_rows", 3), "deleted"),
        (lambda m: setattr(m, "next_row_id", 5), "the next new one is 5"),
        (
            lambda m: setattr(
                m.fragments[0],
                "inline_row_ids",
                encode_row_ids(np.arange(200, 400, dtype=np.uint64)),
            ),
            "two live rows have the id",
        ),
        (lambda m: setattr(m.fields[0], "logical_type", "string"), "column"),
        (lambda m: setattr(m.fragments[0].files[0], "base_id", 9), "no base paths [9]"),
        (lambda m: setattr(m.fragments[0].files[0], "path", ""), "no path"),
        (lambda m: setattr(m, "writer_feature_flags", 1), "stable row ids in one feature flag"),
        (lambda m: setattr(m, "reader_feature_flags", 1 << 40), "could not be verified"),
        (lambda m: m.fragments[0].files.add().CopyFrom(m.fragments[0].files[0]), "several data"),
    ],
)
def test_the_manifest_may_not_contradict_files(
    root: Path, harm: Callable[[table_pb2.Manifest], None], text: str
) -> None:
    found = changed(root, lambda message, _: harm(message))
    assert any(text in finding.what for finding in found), found


def test_names_of_versions_have_to_lead_somewhere(root: Path) -> None:
    for path in root.glob("_refs/tags/*.json"):
        members = json.loads(path.read_text())
        path.write_text(json.dumps({**members, "version": 99}))
    shutil.rmtree(root / "tree")
    assert [str(finding) for finding in verified(root)] == [
        "_refs/tags/named: branch main has no version 99",
        "_refs/branches/side/one: the branch has no version",
    ]
    (root / "_refs" / "tags" / "named.json").write_text("{")
    assert "_refs/tags/named.json" in {finding.where for finding in verified(root)}


def test_a_transaction_has_to_be_there_and_the_same_in_both_places(root: Path) -> None:
    snapshot = opened(root)
    path = root / "_transactions" / snapshot.manifest.message.transaction_file
    others = [each for each in path.parent.iterdir() if each != path]
    path.write_bytes(others[0].read_bytes())
    (found,) = verified(root)
    assert found.where == f"_transactions/{path.name}"
    path.write_bytes(b"\xff\xff")
    assert [each.where for each in verified(root)] == [f"_transactions/{path.name}"]
    path.unlink()  # the manifest has it too
    assert verified(root) == []


def test_the_metric_of_the_manifest_has_to_be_that_of_the_files(root: Path) -> None:
    def change(_: table_pb2.Manifest, indices: list[Any]) -> None:
        (index,) = [each for each in indices if each.name == "vec_idx"]
        index.index_details.value = VectorIndexDetails(
            metric_type=VectorMetricType.Dot
        ).SerializeToString()

    found = changed(root, change)
    assert any("the files say metric l2, the manifest dot" in finding.what for finding in found)


def test_the_reuse_index_has_to_fit_the_fragments(tmp_path: Path) -> None:
    build(tmp_path)
    before = list(opened(tmp_path).manifest.message.fragments)
    compacted(tmp_path)

    def change(message: table_pb2.Manifest, indices: list[Any]) -> None:
        message.fragments.append(before[0])
        message.fragments.sort(key=lambda fragment: fragment.id)

    found = changed(tmp_path, change)
    assert any("the reuse index has them gone" in finding.what for finding in found)
    assert any(entry.name == REUSE_INDEX_NAME for entry in opened(tmp_path).indices)


def test_faults_of_the_store_are_no_findings(root: Path) -> None:
    class Down(MappedStore):
        def head(self, path: str) -> Any:
            raise StoreUnavailableError(path)

    scheduler = RangeScheduler(Down(str(root)))
    with pytest.raises(StoreUnavailableError):
        list(verify(open_table(root).files, scheduler, scheduler.store, refuse_base))


def test_mixed_names_of_manifests_end_the_work(root: Path) -> None:
    shutil.copy(root / opened(root).manifest.path, root / "_versions" / "3.manifest")
    with pytest.raises(CorruptFileError, match="V1 and V2"):
        verified(root)


def test_a_long_history_is_listed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(5):
        lance.write_dataset(rows(0, 10), str(tmp_path), mode="append" if number else "create")
    listed = []
    list_folder = MappedStore.list_folder

    def counted(store: MappedStore, prefix: str) -> Any:
        listed.append(prefix)
        return list_folder(store, prefix)

    monkeypatch.setattr(MappedStore, "list_folder", counted)
    assert verified(tmp_path) == []
    assert listed.count("_versions") == 1
