"""Columns of Spark as Arrow has them: what a dataset cannot hold is refused by its name."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import ArrayType, MapType, StructType

from lance_core.errors import UnsupportedFeatureError

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, StructField

_ZONE = "UTC"
_OPAQUE = frozenset(("variant", "geometry", "geography"))


def arrow_schema(schema: StructType) -> pa.Schema:
    """Return columns as Spark hands them to Python, with Spark's metadata.

    Raises
    ------
    UnsupportedFeatureError
        A column has a type that Arrow or a dataset has not.
    """
    return pa.schema([_arrow_field(each) for each in schema])


def check_type(column: str, kind: DataType) -> None:
    """Refuse types that would arrive as structs of their inner bytes, and be read as such.

    Raises
    ------
    UnsupportedFeatureError
        The column has such a type, or parts of one.
    """
    if kind.typeName() in _OPAQUE:
        raise UnsupportedFeatureError(
            f"there is a column {column!r} of {kind.typeName()}, which is not stored; cast it to a"
            " string or to bytes"
        )
    if isinstance(kind, ArrayType):
        check_type(column, kind.elementType)
    elif isinstance(kind, MapType):
        check_type(column, kind.keyType)
        check_type(column, kind.valueType)
    elif isinstance(kind, StructType):
        for part in kind:
            check_type(column, part.dataType)


def _arrow_field(field: StructField) -> pa.Field:
    check_type(field.name, field.dataType)
    try:
        return to_arrow_schema(StructType([field]), timezone=_ZONE).field(0)
    except (PySparkException, ValueError, pa.ArrowException) as error:
        raise UnsupportedFeatureError(
            f"column {field.name!r} is {field.dataType.simpleString()}, which is not stored:"
            f" {error}; cast it"
        ) from error
