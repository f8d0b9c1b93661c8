"""The bounds on answers: a few kilobytes of a request must not ask for gigabytes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from lance_core.errors import LimitExceededError
from lance_core.query.request import ScanQuery, VectorQuery

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lance_core.dataset import Dataset
    from lance_core.query.engine import Request
    from lance_core.query.query_result import AnswerRows
    from lance_core.query.request import NamedExpression
    from service.limits import QueryLimits

_K_LIMIT = "max_k"
_WIDE_ROW = 64 << 10
"""Bytes: answers are measured before they are made if rows of this width would be too much."""
_MANY_ROWS = 1000
"""Rows of answers that are measured before they are encoded."""
_NUMBER_BYTES = 8
_BYTE_BITS = 8


def may_be_too_large(request: Request, limits: QueryLimits) -> bool:
    """Say whether an answer exceeds the limits unless the table is small; needs no table."""
    if isinstance(request, ScanQuery):
        return False
    if request.k is None:
        return True
    num_queries = request.num_queries if isinstance(request, VectorQuery) else 1
    if num_queries > 1 and num_queries * (request.k + request.offset) > limits.max_k:
        return True
    return num_queries * request.k * _WIDE_ROW > limits.max_answer_bytes


def require_small_answer(request: Request, dataset: Dataset, limits: QueryLimits) -> None:
    """Refuse a query that would rank too many rows, or whose answer would have too many bytes.

    All vectors of a batch count together. Rows that the offset skips count as ranked: they are held
    until all vectors were searched. May read deletion files, to count the rows of the table.

    Raises
    ------
    LimitExceededError
        A limit is exceeded; k counts up to the number of rows, and columns of no fixed width count
        only when they are there: see ``require_small_rows``.
    """
    if isinstance(request, ScanQuery) or not may_be_too_large(request, limits):
        return
    num_rows = dataset.count_rows()
    num_vectors = 1
    if isinstance(request, VectorQuery) and request.num_queries > 1:
        num_vectors = request.num_queries
        ranked = _at_most(num_rows, request.k, request.offset)
        if num_vectors * ranked > limits.max_k:
            factor = "k" if request.offset == 0 else "(k + offset)"
            raise LimitExceededError(
                _K_LIMIT,
                limits.max_k,
                num_vectors * ranked,
                asked=f"vectors x {factor} ({num_vectors} x {ranked})",
            )
    nbytes = fixed_row_bytes(dataset.schema, request.columns)
    limits.require(
        "max_answer_bytes",
        num_vectors * _at_most(num_rows, request.k, 0) * nbytes,
        f"the number of bytes in the answer ({nbytes} or more per row)",
    )


def require_small_rows(rows: pa.Table | AnswerRows, limits: QueryLimits) -> None:
    """Refuse rows that are there and would be too much with their encoded form beside them."""
    if rows.num_rows >= _MANY_ROWS:
        table = rows if isinstance(rows, pa.Table) else rows.to_table()
        limits.require("max_answer_bytes", table.nbytes, "the number of bytes in the answer")


def fixed_row_bytes(schema: pa.Schema, columns: Sequence[str | NamedExpression] | None) -> int:
    """Return the bytes of a row in its columns of fixed width; others count as nothing.

    Columns that the schema does not have by that name, parts of others or computed ones, count as
    numbers.
    """
    if columns is None:
        return sum(_width(field.type) for field in schema)
    names = set(schema.names)
    return sum(
        _width(schema.field(each).type)
        if isinstance(each, str) and each in names
        else _NUMBER_BYTES
        for each in columns
    )


def _width(kind: pa.DataType) -> int:
    if isinstance(kind, pa.FixedSizeListType):
        return int(kind.list_size) * _width(kind.value_type)
    if isinstance(kind, pa.StructType):
        return sum(_width(field.type) for field in kind)
    try:
        return -(-int(kind.bit_width) // _BYTE_BITS)
    except ValueError:  # of no fixed width
        return 0


def _at_most(num_rows: int, k: int | None, offset: int) -> int:
    return num_rows if k is None else min(k + offset, num_rows)
