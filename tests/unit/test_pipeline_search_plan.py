from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

from lance_core.errors import InvalidRequestError, UnknownColumnError
from pipeline.journal import Journal
from pipeline.query_vectors import query_lists, query_vectors
from pipeline.search_output import named_answers
from pipeline.search_plan import FEW_QUERIES, HELD_BYTES, block_rows, choose_plan, partition_ranges
from pipeline.search_queries import QUERY_ID, StoredQueries, load_block, store_queries


@pytest.mark.parametrize(
    ("asked", "num_queries", "index_bytes", "has_parts", "chosen"),
    [
        ("auto", FEW_QUERIES - 1, 1 << 40, True, "A"),
        ("auto", FEW_QUERIES, HELD_BYTES, True, "A"),
        ("auto", FEW_QUERIES, HELD_BYTES + 1, True, "B"),
        ("A", 1 << 30, 1 << 40, True, "A"),
        ("B", 1, 1, True, "B"),
        ("B", 1, 1, False, "A"),
    ],
)
def test_tasks_share_the_index_where_there_are_many_queries_and_it_is_large(
    asked, num_queries, index_bytes, has_parts, chosen
):
    found = choose_plan(
        asked, num_queries=num_queries, index_bytes=index_bytes, has_parts=has_parts
    )
    assert found == chosen


def test_blocks_of_long_answers_have_fewer_queries():
    assert block_rows(4096, 10) == 4096
    assert block_rows(4096, 1 << 16) == 16
    assert block_rows(4096, 1 << 24) == 1


@given(
    st.lists(
        st.lists(st.tuples(st.integers(0, 1 << 22), st.integers(0, 50)), min_size=1, max_size=40),
        min_size=1,
        max_size=4,
    ),
    st.integers(1, 20),
    st.booleans(),
)
def test_ranges_have_every_partition_that_is_probed_once(segments, num_pieces, is_whole):
    lengths = [np.array([each[0] for each in segment]) for segment in segments]
    probed = [np.array([each[1] for each in segment]) for segment in segments]
    row_bytes = [32.0] * len(segments)
    are_whole = [is_whole] + [False] * (len(segments) - 1)
    found = partition_ranges(lengths, probed, row_bytes, are_whole, num_pieces=num_pieces)
    had = [np.zeros(len(each), int) for each in lengths]
    for each in found:
        had[each.place][each.start : each.stop] += 1
        if each.place > 0 or not is_whole:
            own = lengths[each.place][each.start : each.stop]
            own = own * (probed[each.place][each.start : each.stop] > 0)
            assert (own[:-1].sum() if len(own) > 1 else 0) * 32 <= 2 * HELD_BYTES
    for times, asked in zip(had, probed, strict=True):
        assert times.max() <= 1
        assert (times[asked > 0] == 1).all()
    if is_whole:
        assert sum(each.place == 0 for each in found) <= 1


MAKERS = {
    "fixed": lambda v: pa.FixedSizeListArray.from_arrays(pa.array(v.ravel()), 3),
    "doubles": lambda v: pa.array(v.tolist(), pa.list_(pa.float64())),
    "large lists": lambda v: pa.array(v.tolist(), pa.large_list(pa.float32())),
    "bytes": lambda v: pa.array([each.tobytes() for each in v], pa.binary()),
    "halves": lambda v: pa.array(v.astype(np.float16).tolist(), pa.list_(pa.float16())),
    "whole numbers": lambda v: pa.array(v.astype(int).tolist(), pa.list_(pa.uint8())),
}


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_vectors_are_read_of_all_kinds_of_lists(make):
    vectors = np.random.default_rng(1).integers(0, 200, (7, 3)).astype(np.float32)
    found = query_vectors(make(vectors).slice(2, 4))
    assert found.dtype == np.float32
    assert np.array_equal(found, vectors[2:6])


@pytest.mark.parametrize(
    ("values", "told"),
    [
        (pa.array([[1.0], None]), "query 8 is null"),
        (pa.array([[1.0], [1.0, 2.0]]), "query 8 has 2 numbers, others have 1"),
        (pa.array([[]], pa.list_(pa.float32())), "query 7 has 0 numbers"),
        (pa.array([[1.0], [np.nan]]), "query 8 holds"),
        (pa.array([[1.0], [1e300]]), "query 8 holds"),
        (pa.array([[1.0], [None]]), "query 8 holds"),
        (pa.array([b"12345"]), "no whole float32"),
        (pa.array(["a"]), "are string"),
        (pa.array([["a"]]), "are list"),
    ],
    ids=range(9),
)
def test_what_is_no_vector_is_refused_by_its_row(values, told):
    with pytest.raises(InvalidRequestError, match=told):
        query_vectors(values, 7)


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_lists_of_vectors_are_read_whatever_each_is(make):
    vectors = np.random.default_rng(1).integers(0, 200, (7, 3)).astype(np.float32)
    values = pa.ListArray.from_arrays([0, 1, 3, 6, 7], make(vectors)).slice(1, 2)
    found, counts = query_lists(values)
    assert np.array_equal(found, vectors[1:6])
    assert counts.tolist() == [2, 3]


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ([[[1.0]], None], "query 8 is null"),
        ([[[1.0]], []], "query 8 has no vector"),
        ([[[1.0], [2.0]], [[1.0], None]], "vector 1 of query 8 is null"),
        ([[[1.0], [2.0]], [[1.0, 2.0]]], "vector 0 of query 8 has 2 numbers, others have 1"),
        ([[[1.0], [np.inf]]], "vector 1 of query 7 holds"),
    ],
    ids=range(5),
)
def test_what_is_no_list_of_vectors_is_refused_by_its_row(values, told):
    with pytest.raises(InvalidRequestError, match=told):
        query_lists(pa.array(values, pa.list_(pa.list_(pa.float32()))), 7)


def test_lists_of_vectors_are_kept_in_blocks(tmp_path):
    journal = Journal.of(str(tmp_path), "a")
    lists = [[[float(n), 1.0]] * (n % 3 + 1) for n in range(10)]
    batch = pa.record_batch({"v": pa.array(lists, pa.list_(pa.list_(pa.float32())))})
    found = store_queries(journal, [batch.slice(0, 7), batch.slice(7)], 4)
    assert found == StoredQueries(num_queries=10, num_blocks=3, dimension=2, are_lists=True)
    blocks = [load_block(journal, n) for n in range(3)]
    assert [len(each) for each in blocks] == [4, 4, 2]
    assert [query.tolist() for each in blocks for query in each.each()] == lists


def test_queries_are_kept_in_blocks_of_equal_size(tmp_path):
    journal = Journal.of(str(tmp_path), "a")
    vectors = np.random.default_rng(1).standard_normal((10, 4)).astype(np.float32)
    lists = pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), 4)
    batch = pa.record_batch({"name": [f"q{n}" for n in range(10)], "v": lists})
    parts = [batch.slice(0, 3), batch.slice(3, 0), batch.slice(3, 6), batch.slice(9)]
    found = store_queries(journal, parts, 4, id_column="name")
    assert found == StoredQueries(num_queries=10, num_blocks=3, dimension=4)
    blocks = [load_block(journal, n) for n in range(3)]
    assert [len(each.vectors) for each in blocks] == [4, 4, 2]
    assert np.array_equal(np.concatenate([each.vectors for each in blocks]), vectors)
    assert [q for each in blocks for q in each.ids.to_pylist()] == [f"q{n}" for n in range(10)]
    again = store_queries(journal, iter([]), 4)  # nothing is read a second time
    assert again == found


def test_queries_without_a_name_are_counted(tmp_path):
    journal = Journal.of(str(tmp_path), "a")
    batches = [pa.record_batch({"v": [[1.0], [2.0]]}), pa.record_batch({"v": [[3.0]]})]
    store_queries(journal, batches, 2)
    assert load_block(journal, 1).ids.to_pylist() == [2]


def test_no_queries_and_unknown_columns_are_refused(tmp_path):
    journal = Journal.of(str(tmp_path), "a")
    batch = pa.record_batch({"v": [[1.0]], "w": [[2.0]]})
    with pytest.raises(InvalidRequestError, match="no query vector"):
        store_queries(journal, [batch.slice(0, 0)], 4, column="v")
    with pytest.raises(InvalidRequestError, match="2 columns of the queries hold lists"):
        store_queries(journal, [batch], 4)
    with pytest.raises(UnknownColumnError, match='"x"'):
        store_queries(journal, [batch], 4, column="x")
    with pytest.raises(InvalidRequestError, match="query 1 has 2 numbers"):
        store_queries(journal, [batch, pa.record_batch({"v": [[1.0, 2.0]]})], 4, column="v")


def test_answers_name_their_queries_and_count_their_rows():
    table = pa.table(
        {
            "query_index": pa.array([0, 0, 2], pa.int32()),
            "id": [5, 6, 7],
            "_distance": pa.array([0.5, 1, 2], pa.float32()),
        }
    )
    found = named_answers(table, pa.array(["a", "b", "c"]))
    assert found.column_names == [QUERY_ID, "rank", "id", "_distance"]
    assert found[QUERY_ID].to_pylist() == ["a", "a", "c"]
    assert found["rank"].to_pylist() == [0, 1, 0]
    with pytest.raises(InvalidRequestError, match="rank"):
        named_answers(
            table.rename_columns(["query_index", "rank", "_distance"]), pa.array([1, 2, 3])
        )
