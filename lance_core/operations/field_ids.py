"""Ids of new fields: above those in use, so that no old data are taken for theirs."""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING

from lance_core.ids import FieldId
from lance_core.schema.tree import LanceSchema
from lance_core.table.flags import Feature

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lance_core.proto import table_pb2
    from lance_core.schema.field import LanceField


def smallest_new_id(manifest: table_pb2.Manifest, *, replaces_all: bool = False) -> FieldId:
    """Return the id that the next new field gets.

    Parameters
    ----------
    manifest
        The version that gets the field.
    replaces_all
        Whether no field and no data file stays, so that ids may begin anew.

    Notes
    -----
    Lance table format, section "Schema, fragments and data files"; verified against pylance 14.0.2:
    ids count up from the largest in the schema and in data files, or from the largest ever given
    where the dataset promises never to use one again.
    """
    used = [-1]
    if manifest.writer_feature_flags & Feature.FIELD_IDS_NOT_REUSED:
        used.append(manifest.max_allocated_field_id)
    if not replaces_all:
        used.extend(field.id for field in manifest.fields)
        used.extend(
            number for each in manifest.fragments for file in each.files for number in file.fields
        )
    return FieldId(max(used) + 1)


def numbered_from(schema: LanceSchema, first: FieldId) -> LanceSchema:
    """Return a schema with ids from ``first`` on, parents before their children."""
    ids = map(FieldId, count(first))
    return LanceSchema(tuple(_numbered(field, ids) for field in schema.fields), schema.metadata)


def _numbered(field: LanceField, ids: Iterator[FieldId]) -> LanceField:
    number = next(ids)
    children = tuple(_numbered(child, ids) for child in field.children)
    return replace(field, id=number, children=children)
