"""Documents of an index segment that are rows of a set, however they are numbered."""

from __future__ import annotations

import numpy as np
from hypothesis import given, strategies as st

from lance_core.index.ordinals import OrdinalSpace, RowIdSpace
from lance_core.query.text_documents import DocumentRuns
from lance_core.row_address import OFFSET_BITS
from lance_core.row_set import contains, to_ordinals, words_of

row_ids = st.lists(
    st.one_of(st.integers(0, 70), st.integers(1 << OFFSET_BITS, (1 << OFFSET_BITS) + 70)),
    max_size=300,
)
SPACES = st.sampled_from([OrdinalSpace([0, 1], [65, 20]), RowIdSpace(60, 60)])


def expected(documents, space, rows):
    ordinals = space.to_ordinals(documents)
    return np.flatnonzero(contains(rows, ordinals))


@given(documents=row_ids, is_sorted=st.booleans(), space=SPACES, seed=st.integers(0, 99))
def test_a_document_is_there_if_its_row_is(documents, is_sorted, space, seed):
    stored = np.array(sorted(documents) if is_sorted else documents, np.uint64)
    chosen = np.flatnonzero(np.random.default_rng(seed).random(space.size) < 0.6)
    rows = words_of(chosen.astype(np.uint32), space.size + 1)
    mask = DocumentRuns.of(stored, space).of_rows(rows, len(stored))
    np.testing.assert_array_equal(to_ordinals(mask.words), expected(stored, space, rows))
    assert mask.num_rows == len(expected(stored, space, rows))


def test_documents_in_the_order_of_their_rows_are_one_run():
    space = OrdinalSpace([0, 1], [65, 20])
    rows = np.concatenate([np.arange(65), (1 << OFFSET_BITS) + np.arange(20)]).astype(np.uint64)
    runs = DocumentRuns.of(rows, space)
    assert (runs.first_docs.tolist(), runs.lengths.tolist()) == ([0], [85])


def test_rows_of_other_fragments_and_rows_that_are_gone_are_in_no_run():
    space = OrdinalSpace([0], [10])
    gone = np.array([5, 1 << OFFSET_BITS, 2**64 - 1, 6], np.uint64)
    runs = DocumentRuns.of(gone, space)
    assert runs.first_docs.tolist() == [0, 3]
