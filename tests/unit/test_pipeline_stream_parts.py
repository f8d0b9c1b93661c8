"""What tasks write of a micro-batch, and the dataset that a stream makes."""

from __future__ import annotations

import pickle

import pyarrow as pa
import pytest

from lance_core.dataset import ColumnChange, open_dataset, write_dataset
from lance_core.errors import InvalidRequestError, TypeMismatchError, UnknownColumnError
from lance_core.io.mapped_store import MappedStore
from pipeline.stream_parts import (
    EpochPart,
    StreamTarget,
    commit_parts,
    planned_write,
    write_part,
)

LISTS = pa.list_(pa.field("element", pa.float32()))
ROWS = pa.record_batch({"id": [1, 2, 3], "vector": pa.array([[1.0, 2.0], None, [5.0, 6.0]], LISTS)})


@pytest.fixture
def uri(tmp_path):
    return str(tmp_path / "a.lance")


@pytest.fixture
def target(uri):
    return StreamTarget.of(uri, vectors={"vector": 2})


def written(target, *tasks, query_id="query"):
    """Write what tasks do, as Spark sends it around."""
    write = as_sent(planned_write(target, ROWS.schema))
    return [as_sent(write_part(write, query_id, batches)) for batches in tasks]


def as_sent(value):
    return pickle.loads(pickle.dumps(value))  # noqa: S301


def rows_at(uri):
    return open_dataset(uri).scan().read_all()


def test_a_dataset_is_made_once_and_its_vectors_have_their_dimension(target, uri):
    assert planned_write(target, ROWS.schema).read_version == 1
    assert planned_write(target, ROWS.schema).read_version == 1
    assert rows_at(uri).schema.field("vector").type == pa.list_(pa.float32(), 2)
    assert rows_at(uri).num_rows == 0


def test_of_two_drivers_one_makes_the_dataset(target, uri, monkeypatch):
    publish = MappedStore.put_if_absent

    def second(store, path, data):
        monkeypatch.setattr(MappedStore, "put_if_absent", publish)
        assert planned_write(target, ROWS.schema).read_version == 1
        publish(store, path, data)

    monkeypatch.setattr(MappedStore, "put_if_absent", second)
    assert planned_write(target, ROWS.schema).read_version == 1
    assert open_dataset(uri).version == 1


def test_rows_come_in_the_order_of_the_tasks_and_lists_become_vectors(target, uri):
    parts = written(target, [ROWS, ROWS.slice(1)], [], [ROWS.slice(2)])
    assert [len(part.fragments) for part in parts] == [1, 0, 1]
    outcome = commit_parts(target, parts, 0, replaces_all=False)
    assert outcome.version == 3  # that before holds the watermark
    assert rows_at(uri)["id"].to_pylist() == [1, 2, 3, 2, 3, 3]
    assert rows_at(uri)["vector"].to_pylist()[:3] == [[1, 2], None, [5, 6]]


def test_a_micro_batch_that_is_written_again_is_not_committed_again(target, uri):
    for version in (3, None):
        parts = written(target, [ROWS])
        assert commit_parts(target, parts, 0, replaces_all=False).version == version
    assert rows_at(uri).num_rows == 3


def test_a_micro_batch_may_replace_all_rows(target, uri):
    for number, batch in enumerate([ROWS, ROWS.slice(1), ROWS.slice(3)]):
        commit_parts(target, written(target, [batch]), number, replaces_all=True)
        assert rows_at(uri).num_rows == batch.num_rows


def test_the_tables_columns_are_those_of_the_oldest_version_that_a_task_has_seen(target, uri):
    old = written(target, [ROWS])
    open_dataset(uri).alter_columns(ColumnChange("id", data_type=pa.int32()))
    new = [EpochPart("query", 2, ())]
    with pytest.raises(InvalidRequestError, match="'id' was changed"):
        commit_parts(target, old + new, 0, replaces_all=False)


def test_a_micro_batch_without_tasks_does_nothing(target, uri):
    planned_write(target, ROWS.schema)
    assert commit_parts(target, [], 0, replaces_all=True).version is None
    assert open_dataset(uri).version == 1


def test_rows_that_do_not_fit_are_refused(target, uri):
    write = planned_write(target, ROWS.schema)
    bad = pa.record_batch({"id": [1], "vector": pa.array([[1.0]], LISTS)})
    with pytest.raises(InvalidRequestError, match="a list has 1 items"):
        write_part(write, "query", [bad])
    more = ROWS.schema.append(pa.field("price", pa.float64()))
    with pytest.raises(InvalidRequestError, match=r"the rows have \['price'\] besides"):
        planned_write(target, more)


def test_what_cannot_be_made_a_vector_makes_no_dataset(tmp_path, uri):
    with pytest.raises(UnknownColumnError, match='"vektor"'):
        planned_write(StreamTarget.of(uri, vectors={"vektor": 2}), ROWS.schema)
    with pytest.raises(TypeMismatchError, match='"id" is int64'):
        planned_write(StreamTarget.of(uri, vectors={"id": 2}), ROWS.schema)
    assert list(tmp_path.iterdir()) == []


def test_a_dataset_that_is_there_keeps_its_columns(target, uri):
    table = pa.table({"id": [1], "vector": pa.array([[1.0, 2.0]], pa.list_(pa.float32(), 2))})
    write_dataset(uri, table)
    assert planned_write(target, pa.schema([("id", pa.int64())])).read_version == 1
    write_dataset(uri, pa.table({"id": [1]}), mode="overwrite")
    with pytest.raises(UnknownColumnError, match="the columns of vectors"):
        planned_write(target, pa.schema([("id", pa.int64())]))


def test_a_name_needs_a_checkpoint_and_rows_outside_of_a_query_a_name(target, uri):
    with pytest.raises(InvalidRequestError, match="queryId is 'a' without a checkpoint"):
        StreamTarget.of(uri, query_id="a")
    with pytest.raises(InvalidRequestError, match="need a query_id"):
        commit_parts(target, written(target, [ROWS], query_id=None), 0, replaces_all=False)
    named = StreamTarget.of(uri, query_id="a", checkpoint="/c")
    parts = written(named, [ROWS], query_id=None)
    assert commit_parts(named, parts, 0, replaces_all=False).version == 3


def test_a_target_is_what_users_of_the_data_source_name():
    options = {
        "path": "a.lance",
        "storage.aws_region": "eu",
        "vectors": "vector=2",
        "queryid": "orders",
        "checkpointlocation": "/c",
        "jobid": "x",
    }
    assert StreamTarget.of_options(options) == StreamTarget.of(
        "a.lance",
        {"aws_region": "eu"},
        query_id="orders",
        checkpoint="/c",
        vectors={"vector": 2},
    )
