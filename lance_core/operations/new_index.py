"""An index that is to be made: its name, its column and how it is built, checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyarrow as pa

from lance_core.errors import InvalidRequestError
from lance_core.file.arguments import checked_text
from lance_core.index.registry import IndexKind
from lance_core.index.scalar.writers import segment_writer as scalar
from lance_core.index.scalar.writers.segment_writer import SCALAR_KINDS, segment_writer
from lance_core.index.text.writers.recipe import TEXT_PARAMETERS, text_recipe
from lance_core.index.text.writers.segment import text_segment_writer
from lance_core.index.vector.build import given_parameters as vector
from lance_core.index.vector.build.given_parameters import vector_parameters
from lance_core.index.vector.build.parameters import QUANTISERS
from lance_core.operations.index_arguments import check_new_name
from lance_core.scan.projection import PseudoColumn, resolve_projection
from lance_core.scan.vector_type import vector_type
from lance_core.schema.arrow import arrow_type

if TYPE_CHECKING:
    from lance_core.index.scalar.writers.segment_writer import SegmentWriter
    from lance_core.index.vector.build.parameters import VectorParameters
    from lance_core.scan.projection import ProjectedColumn
    from lance_core.table.snapshot import Snapshot

_TEXT_TYPES = (str(IndexKind.INVERTED), "FTS")
"""Both are the same."""


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
        ``BTREE``, ``BITMAP``, ``LABEL_LIST``, ``NGRAM``, ``ZONEMAP`` or ``BLOOMFILTER``; of texts
        to search ``INVERTED``, which is called ``FTS`` too; of vectors
        ``IVF_FLAT``, ``IVF_PQ``, ``IVF_SQ``, ``IVF_RQ``, ``IVF_HNSW_FLAT``, ``IVF_HNSW_PQ`` or
        ``IVF_HNSW_SQ``. In capitals or small letters.
    parameters
        As `segment_writer`, `text_recipe` and `vector_parameters` take them; None is as good as
        absent, but for ``max_token_length`` of an INVERTED.

    Raises
    ------
    InvalidRequestError
        A text is none, or the parameters are no map by names.
    """

    name: str
    column: str
    index_type: str
    parameters: Mapping[str, object] = field(default_factory=dict)

    def __post_init__(self) -> None:
        checked_text("the name of an index", self.name)
        checked_text("column", self.column)
        checked_text("index_type", self.index_type)
        if not isinstance(self.parameters, Mapping):
            raise InvalidRequestError(
                f"parameters are {self.parameters!r}; give a map such as {{'num_partitions': 4}}"
            )
        for name in self.parameters:
            checked_text("the name of a parameter", name)


def recipe_of(snapshot: Snapshot, index: NewIndex) -> SegmentWriter | VectorParameters:
    """Check what is asked for, and return how it is built; reads nothing.

    Raises
    ------
    InvalidRequestError
        It is no new index, or the name is reserved or cannot be read, or there is no such type of
        index, or it does not take the column or a parameter.
    UnknownColumnError
        There is no such column.
    """
    if not isinstance(index, NewIndex):
        raise InvalidRequestError(
            f"index is {index!r}; give a NewIndex such as NewIndex('v_idx', 'v', 'IVF_PQ')"
        )
    if all(each.name != index.name for each in snapshot.indices):  # others named those
        check_new_name(index.name)
    column_type = _column(snapshot, index.column).arrow_field.type
    index_type = index.index_type.upper()
    if index_type in QUANTISERS:
        return vector_parameters(index_type, column_type, index.parameters)
    if index_type in _TEXT_TYPES:
        return text_segment_writer(text_recipe(column_type, index.parameters))
    return segment_writer(
        _scalar_kind(index.index_type),
        column_type,
        index.parameters,
        has_stable_row_ids=snapshot.has_stable_row_ids,
    )


def usual_index_name(snapshot: Snapshot, column: str) -> str:
    """Return the name that an index on a column gets unless one is given.

    Raises
    ------
    UnknownColumnError
        There is no such column.
    InvalidRequestError
        It is stored nowhere, or is no text.

    Notes
    -----
    As pylance 14.0.2: the path of the column however it was written, quoted only where it has to
    be, and ``_idx``. So there is one index of a column, not one for every way to write it.
    """
    _column(snapshot, checked_text("column", column))
    return f"{snapshot.schema.path_of(snapshot.schema.field(column).id)}_idx"


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
    if name in _TEXT_TYPES:
        return TEXT_PARAMETERS
    return scalar.parameters_of(_scalar_kind(index_type))


def _column(snapshot: Snapshot, path: str) -> ProjectedColumn:
    (column,) = resolve_projection(snapshot.schema, [path]).columns
    if isinstance(column.source, PseudoColumn):
        raise InvalidRequestError(f'column "{path}" is stored nowhere; take another one')
    return column


def _scalar_kind(index_type: str) -> IndexKind:
    name = index_type.upper()
    if name not in SCALAR_KINDS:
        names = ", ".join((*SCALAR_KINDS, *_TEXT_TYPES, *QUANTISERS))
        raise InvalidRequestError(f"index type {index_type!r} is none of {names}")
    return IndexKind(name)
