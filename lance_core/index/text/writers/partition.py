"""One partition of an inverted index under way: its tokens, documents and posting lists."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lance_core.index.text.fst_write import fst_bytes
from lance_core.index.text.json_tokens import token_stream
from lance_core.index.text.list_texts import texts_of_lists
from lance_core.index.text.token_stream import BYTES_OF_PIECE
from lance_core.index.text.tokenizer import Tokenizer
from lance_core.index.text.writers.encoded_lists import DocumentWeights, encoded_lists
from lance_core.index.text.writers.runs import PostingRuns

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from contextlib import ExitStack

    from numpy.typing import NDArray

    from lance_core.index.scalar.writers.indexed_rows import IndexedRows
    from lance_core.index.segment_files import SegmentFiles
    from lance_core.index.text.writers.recipe import TextRecipe
    from lance_core.index.text.writers.runs import PostingLists

_TOKENS = pa.schema(
    [
        pa.field("_token_fst_bytes", pa.large_binary(), nullable=False),
        pa.field("_token_next_id", pa.uint32(), nullable=False),
        pa.field("_token_total_length", pa.uint64(), nullable=False),
    ]
)
_DOCUMENTS = pa.schema(
    [
        pa.field("_rowid", pa.uint64(), nullable=False),
        pa.field("_num_tokens", pa.uint32(), nullable=False),
    ]
)
_MOST_NUMBER = 1 << 31
"""Documents and tokens are fewer."""

_LIST_BYTES = 32
"""What a posting may take while the longest list is written, which is in memory as a whole."""

_RUN_PART, _GROUP_PART, _HELD_PART = 9, 256, 2


class PartitionBuilder:
    """Takes documents one after the other, and writes them with all their tokens.

    Parameters
    ----------
    recipe
        How tokens are made and stored.
    memory_bytes
        About how much memory may be taken: occurrences that do not fit are put on disk meanwhile,
        and `has_room` tells when the rest does not.
    stack
        Closes the file of those.
    """

    def __init__(self, recipe: TextRecipe, memory_bytes: int, stack: ExitStack) -> None:
        self._recipe = recipe
        self._memory_bytes = memory_bytes
        self._tokenizer = Tokenizer(recipe.parameters)
        self._stream = token_stream(self._tokenizer)
        self._runs = PostingRuns(
            memory_bytes // _RUN_PART, stack, with_positions=recipe.parameters.with_position
        )
        self._row_ids: list[NDArray[np.uint64]] = []
        self._lengths: list[NDArray[np.uint32]] = []
        self._num_docs = 0

    @property
    def keeps_positions(self) -> bool:
        """Whether positions are wanted."""
        return self._recipe.parameters.with_position

    @property
    def num_docs(self) -> int:
        """Documents taken so far."""
        return self._num_docs

    def has_room(self, num_docs: int, num_tokens: int) -> bool:
        """Tell whether so many documents and tokens more fit."""
        docs = self._num_docs + num_docs
        longest = max(docs, self._runs.most_occurrences)
        held = self._stream.nbytes + BYTES_OF_PIECE * num_tokens
        most = self._memory_bytes // _HELD_PART
        fits = longest * _LIST_BYTES <= most and held <= most
        return fits and max(docs, len(self._stream.tokens) + num_tokens) < _MOST_NUMBER

    def add_texts(self, rows: IndexedRows) -> None:
        """Take rows; those without any token are no documents."""
        values = rows.values
        if pa.types.is_list(values.type) or pa.types.is_large_list(values.type):
            values = texts_of_lists(values)
        found = self._stream.add(values)
        lengths = np.bincount(found.texts, minlength=len(rows))
        (kept,) = np.nonzero(lengths)
        numbers = self.add_documents(rows.names[kept], lengths[kept].astype(np.uint32))
        by_text = np.zeros(len(rows), np.uint32)
        by_text[kept] = numbers
        self.add_occurrences(found.token_ids, by_text[found.texts], found.positions)

    def add_documents(
        self, row_ids: NDArray[np.uint64], lengths: NDArray[np.uint32]
    ) -> NDArray[np.uint32]:
        """Take documents, and return their numbers; their tokens are to follow."""
        first = self._num_docs
        self._row_ids.append(row_ids)
        self._lengths.append(lengths)
        self._num_docs += len(row_ids)
        return np.arange(first, self._num_docs, dtype=np.uint32)

    def token_ids(self, tokens: Sequence[str]) -> NDArray[np.int32]:
        """Return the numbers of tokens that documents have, shape ``(n,)``."""
        return self._stream.ids_of(tokens)

    def add_occurrences(
        self,
        token_ids: NDArray[np.int32],
        docs: NDArray[np.uint32],
        positions: NDArray[np.int32],
    ) -> None:
        """Take occurrences as `PostingRuns.add` does."""
        self._runs.add(token_ids, docs, positions, len(self._stream.tokens))

    def add_counted(
        self, token_ids: NDArray[np.int32], docs: NDArray[np.uint32], times: NDArray[np.uint32]
    ) -> None:
        """Take occurrences as `PostingRuns.add_counted` does."""
        self._runs.add_counted(token_ids, docs, times, len(self._stream.tokens))

    def write(self, files: SegmentFiles, partition_id: int) -> None:
        """Write the three files, of at least one document; nothing may be added then.

        Notes
        -----
        Scalar index page, section 8.2. Tokens are numbered as they occurred first.
        """
        lengths = np.concatenate(self._lengths)
        prefix = f"part_{partition_id}"
        num_tokens = len(self._stream.tokens)
        self._write_tokens(files, f"{prefix}_tokens.lance")
        self._stream = token_stream(self._tokenizer)  # tokens need no memory any more
        lists = self._runs.lists(num_tokens, max(self._memory_bytes // _GROUP_PART, 1))
        self._write_lists(files, f"{prefix}_invert.lance", DocumentWeights.of(lengths), lists)
        with files.create(f"{prefix}_docs.lance", _DOCUMENTS) as writer:
            writer.add_schema_metadata("total_tokens", str(int(lengths.sum(dtype=np.int64))))
            columns = [pa.array(np.concatenate(self._row_ids)), pa.array(lengths)]
            writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=_DOCUMENTS))

    def _write_tokens(self, files: SegmentFiles, file_name: str) -> None:
        tokens = pa.array(self._stream.tokens, pa.large_string()).cast(pa.large_binary())
        order = pc.sort_indices(tokens)
        fst = fst_bytes(tokens.take(order), order.to_numpy().astype(np.int64))
        total = pc.sum(pc.binary_length(tokens)).as_py()
        columns = [
            pa.array([fst.tobytes()], pa.large_binary()),
            pa.array([len(tokens)], pa.uint32()),
            pa.array([total], pa.uint64()),
        ]
        with files.create(file_name, _TOKENS) as writer:
            writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=_TOKENS))

    def _write_lists(
        self,
        files: SegmentFiles,
        file_name: str,
        weights: DocumentWeights,
        lists: Iterable[PostingLists],
    ) -> None:
        form, schema = self._recipe.form, self._recipe.form.schema
        with files.create(file_name, schema) as writer:
            for key, value in self._recipe.posting_metadata().items():
                writer.add_schema_metadata(key, value)
            for each in lists:
                columns = encoded_lists(each, weights, form)
                writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=schema))
