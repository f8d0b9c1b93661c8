"""An index that is to be made: its name, its column and how it is built, checked."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyarrow as pa

from lance_core.errors import InvalidRequestError
from lance_core.index.registry import IndexKind
from lance_core.index.scalar.writers import segment_writer as scalar
from lance_core.index.scalar.writers.segment_writer import SCALAR_KINDS, segment_writer
from lance_core.index.vector.build import given_parameters as vector
from lance_core.index.vector.build.given_parameters import vector_parameters
from lance_core.index.vector.build.parameters import QUANTISERS
from lance_core.scan.projection import PseudoColumn, resolve_projection
from lance_core.scan.vector_type import vector_type
from lance_core.schema.arrow import arrow_type
from lance_core.table.index_metadata import SYSTEM_PREFIX

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lance_core.index.scalar.writers.segment_writer import SegmentWriter
    from lance_core.index.vector.build.parameters import VectorParameters
    from lance_core.table.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class NewIndex:
    """An index that is to be made.

    Parameters
    ----------
    name
        Name of the logical index.
    column
        The column, or the part of a struct.
    index_type
        ``BTREE``, ``BITMAP``, ``LABEL_LIST``, ``NGRAM``, ``ZONEMAP`` or ``BLOOMFILTER``; of vectors
        ``IVF_FLAT``, ``IVF_PQ``, ``IVF_SQ``, ``IVF_RQ``, ``IVF_HNSW_FLAT``, ``IVF_HNSW_PQ`` or
        ``IVF_HNSW_SQ``. In capitals or small letters.
    parameters
        As `segment_writer` and `vector_parameters` take them.
    """

    name: str
    column: str
    index_type: str
    parameters: Mapping[str, object] = field(default_factory=dict)


def recipe_of(snapshot: Snapshot, index: NewIndex) -> SegmentWriter | VectorParameters:
    """Check what is asked for, and return how it is built; reads nothing.

    Raises
    ------
    InvalidRequestError
        The name is reserved, or there is no such type of index, or it does not take the column or a
        parameter.
    UnknownColumnError
        There is no such column.
    """
    if index.name == "" or index.name.startswith(SYSTEM_PREFIX):
        raise InvalidRequestError(f"{index.name!r} is no name for an index; take another one")
    (column,) = resolve_projection(snapshot.schema, [index.column]).columns
    if isinstance(column.source, PseudoColumn):
        raise InvalidRequestError(f'column "{index.column}" is stored nowhere; take another one')
    index_type, column_type = str(index.index_type).upper(), column.arrow_field.type
    if index_type in QUANTISERS:
        return vector_parameters(index_type, column_type, index.parameters)
    return segment_writer(
        _scalar_kind(index.index_type),
        column_type,
        index.parameters,
        has_stable_row_ids=snapshot.has_stable_row_ids,
    )


def usual_index_type(snapshot: Snapshot, column: str) -> str:
    """Return the type of index that a column gets unless one is asked for.

    Raises ``UnknownColumnError`` if there is no such column.

    Notes
    -----
    HTTP page, section 9: IVF_PQ of vectors, else BTREE. That takes no lists and IVF_PQ no bytes, so
    these get what takes them.
    """
    field = snapshot.schema.field(column)
    vectors = vector_type(field)
    if vectors is not None:
        return "IVF_FLAT" if vectors.are_bytes else "IVF_PQ"
    kind = arrow_type(field)
    is_list = pa.types.is_list(kind) or pa.types.is_large_list(kind)
    return str(IndexKind.LABEL_LIST if is_list else IndexKind.BTREE)


def parameters_of(index_type: str) -> tuple[str, ...]:
    """Return the names of the parameters that a type of index takes.

    Raises ``InvalidRequestError`` if there is no such type.
    """
    name = index_type.upper()
    if name in QUANTISERS:
        return vector.parameters_of(name)
    return scalar.parameters_of(_scalar_kind(index_type))


def _scalar_kind(index_type: str) -> IndexKind:
    name = str(index_type).upper()
    if name not in SCALAR_KINDS:
        names = ", ".join((*SCALAR_KINDS, *QUANTISERS))
        raise InvalidRequestError(f"index type {index_type!r} is none of {names}")
    return IndexKind(name)
