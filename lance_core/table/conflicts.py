"""Which transactions may be committed on top of which, as a table of all pairs of operations."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING

from lance_core.errors import InvalidRequestError
from lance_core.table import conflict_rules as rules
from lance_core.table.conflict_rules import Side, Verdict
from lance_core.table.transaction import (
    Append,
    CreateIndex,
    DataReplacement,
    Delete,
    Merge,
    Operation,
    Overwrite,
    Project,
    ReserveFragments,
    Restore,
    Rewrite,
    Update,
    UpdateBases,
    UpdateConfig,
    UpdateMode,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


class Kind(enum.Enum):
    """Operations as far as conflicts tell them apart; the values head the table below."""

    APPEND = "append"
    DELETE = "delete"
    UPDATE_ROWS = "update"
    UPDATE_COLUMNS = "columns"
    OVERWRITE = "overwrite"
    CREATE_INDEX = "index"
    REWRITE = "rewrite"
    MERGE = "merge"
    PROJECT = "project"
    RESTORE = "restore"
    UPDATE_CONFIG = "config"
    DATA_REPLACEMENT = "replace"
    RESERVE_FRAGMENTS = "reserve"
    UPDATE_BASES = "bases"
    UNKNOWN = "unknown"


_TABLE = """
           append delete update columns overwrite index rewrite merge project restore config replace reserve bases
append     .      .      .      .       X         .     .       cast  null    X       .      .       .       .
delete     .      rows   rows   same    X         .     same    R     .       X       .      same    .       .
update     keys   rows   keyed  same    X         .     same    R     null    X       .      same    .       .
columns    .      same   same   same    X         .     same    R     null    X       .      same    .       .
overwrite  .      .      .      .       R         .     .       .     .       .       key    .       .       .
index      .      .      .      .       X         name  moved   .     .       X       .      field   .       .
rewrite    .      same   same   same    X         moved same    R     .       X       .      same    .       .
merge      R      R      R      R       X         .     R       R     X       X       metaR  R       .       .
project    null   .      null   null    X         .     .       R     R       X       .      null    .       .
restore    .      .      .      .       .         .     .       .     .       .       metaX  .       .       .
config     .      .      .      .       over      .     .       metaR .       metaX   key    .       .       .
replace    .      gone   same   same    X         field same    R     drop    X       .      column  .       .
reserve    .      .      .      .       X         .     .       .     .       X       .      .       .       .
bases      .      .      .      .       .         .     .       .     .       .       .      .       .       base
"""  # noqa: E501 - a table
"""Row: the operation to commit; column: what was committed since it read the dataset.

``.`` no conflict, ``R`` retry, ``X`` fail; a word is a rule that looks at the two.
"""

_RULES: Mapping[str, Callable[[Side, Side], Verdict]] = {
    ".": lambda _ours, _theirs: Verdict.NONE,
    "R": lambda _ours, _theirs: Verdict.RETRY,
    "X": lambda _ours, _theirs: Verdict.FAIL,
    "rows": rules.same_rows,
    "keys": rules.appended_keys,
    "keyed": rules.same_rows_or_keys,
    "same": rules.same_fragment,
    "null": rules.may_meet_nulls,
    "cast": rules.new_columns_for_old,
    "name": rules.same_index_name,
    "moved": rules.moved_under_index,
    "field": rules.indexed_field_replaced,
    "metaR": rules.metadata_retry,
    "metaX": rules.metadata_fail,
    "key": rules.same_key,
    "over": rules.config_overwritten,
    "gone": rules.replaced_fragment_gone,
    "drop": rules.replaced_field_dropped,
    "column": rules.same_column,
    "base": rules.same_base,
}


def _parsed(table: str) -> dict[tuple[Kind, Kind], str]:
    heads, *rows = (line.split() for line in table.strip().splitlines())
    return {
        (Kind(ours), Kind(theirs)): rule
        for ours, *cells in rows
        for theirs, rule in zip(heads, cells, strict=True)
    }


_MATRIX = _parsed(_TABLE)


def verdict(ours: Side, theirs: Side) -> Verdict:
    """Judge two operations that were computed from the same version or later ones.

    Parameters
    ----------
    ours
        What is to be committed.
    theirs
        What was committed since ``ours`` read the dataset.

    Raises
    ------
    InvalidRequestError
        ``ours`` is an operation that is not committed on top of others.

    Notes
    -----
    Lance table format, section "Conflict matrix"; every pair tried with pylance 14.0.2.
    """
    mine, other = kind_of(ours.operation), kind_of(theirs.operation)
    if mine is Kind.UNKNOWN:
        raise InvalidRequestError(f"{type(ours.operation).__name__} cannot be committed here")
    if other is Kind.UNKNOWN:
        return Verdict.FAIL
    return _RULES[_MATRIX[mine, other]](ours, theirs)


def kind_of(operation: Operation) -> Kind:
    """Return the row and column of the table that an operation belongs to."""
    if isinstance(operation, Update):
        in_place = operation.mode is UpdateMode.REWRITE_COLUMNS
        return Kind.UPDATE_COLUMNS if in_place else Kind.UPDATE_ROWS
    return _KINDS.get(type(operation), Kind.UNKNOWN)


_KINDS: Mapping[type, Kind] = {
    Append: Kind.APPEND,
    Delete: Kind.DELETE,
    Overwrite: Kind.OVERWRITE,
    CreateIndex: Kind.CREATE_INDEX,
    Rewrite: Kind.REWRITE,
    Merge: Kind.MERGE,
    Project: Kind.PROJECT,
    Restore: Kind.RESTORE,
    UpdateConfig: Kind.UPDATE_CONFIG,
    DataReplacement: Kind.DATA_REPLACEMENT,
    ReserveFragments: Kind.RESERVE_FRAGMENTS,
    UpdateBases: Kind.UPDATE_BASES,
}
