"""Arrow's extension types for those who read a file by itself: what pyarrow knows has its type.

Readers hand out storage with the name of the type in the field's metadata. Passing through
Arrow's C interface gives what is registered its type, at any depth and without a copy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


def with_registered_types(schema: pa.Schema) -> pa.Schema:
    """Return a schema with the extension types that pyarrow knows.

    It is returned as it is if an extension contradicts the type it is stored as.
    """
    try:
        return pa.schema(schema)
    except (pa.ArrowException, ValueError):
        return schema


def typed_batches(
    batches: Iterable[pa.RecordBatch], schema: pa.Schema, typed: pa.Schema
) -> Iterator[pa.RecordBatch]:
    """Yield batches of ``schema`` with the types that ``with_registered_types`` gave it."""
    if typed.equals(schema, check_metadata=True):
        yield from batches
        return
    for batch in batches:
        yield pa.record_batch(batch)
