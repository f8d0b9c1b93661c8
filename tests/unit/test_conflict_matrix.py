"""One test per cell of the conflict matrix: what is committed after what."""

from __future__ import annotations

import pytest
from pyroaring import BitMap

from lance_core.errors import InvalidRequestError
from lance_core.proto import file_pb2, table_pb2, transaction_pb2
from lance_core.table.conflict_rules import Side, Verdict
from lance_core.table.conflicts import Kind, kind_of, verdict
from lance_core.table.transaction import (
    Append,
    Clone,
    CreateIndex,
    DataReplacement,
    Delete,
    MapUpdate,
    Merge,
    Operation,
    Overwrite,
    Project,
    Replacement,
    ReserveFragments,
    Restore,
    Rewrite,
    RewriteGroup,
    UnknownOperation,
    Update,
    UpdateBases,
    UpdateConfig,
    UpdateMode,
)

NONE, MERGE, RETRY, FAIL = Verdict.NONE, Verdict.MERGE_DELETIONS, Verdict.RETRY, Verdict.FAIL


def fragment(fragment_id: int) -> table_pb2.DataFragment:
    return table_pb2.DataFragment(id=fragment_id, physical_rows=10)


def field(field_id: int) -> file_pb2.Field:
    return file_pb2.Field(id=field_id, name=f"f{field_id}", parent_id=-1)


def entry(
    name: str = "ix", coverage: set[int] | None = None, field_id: int = 0
) -> table_pb2.IndexMetadata:
    bitmap = b"" if coverage is None else BitMap(coverage).serialize()
    return table_pb2.IndexMetadata(name=name, fields=[field_id], fragment_bitmap=bitmap)


def replacement(fragment_id: int, field_id: int = 0) -> DataReplacement:
    return DataReplacement(
        (Replacement(fragment_id, table_pb2.DataFile(path="new", fields=[field_id])),)
    )


def keys(*hashes: int, field_id: int = 0) -> transaction_pb2.KeyExistenceFilter:
    exact = transaction_pb2.KeyExistenceFilter.ExactKeys(key_hashes=hashes)
    return transaction_pb2.KeyExistenceFilter(field_ids=[field_id], exact=exact)


def columns(fragment_id: int) -> Update:
    return Update(
        updated_fragments=(fragment(fragment_id),),
        fields_modified=(0,),
        mode=UpdateMode.REWRITE_COLUMNS,
    )


def base(base_id: int, path: str, name: str | None = None) -> UpdateBases:
    return UpdateBases((table_pb2.BasePath(id=base_id, path=path, name=name),))


APPEND = Append((fragment(0),))
APPEND_0 = Append((table_pb2.DataFragment(files=[table_pb2.DataFile(fields=[0, -2])]),))
DELETE_1 = Delete((fragment(1),), ())
DELETE_2 = Delete((fragment(2),), ())
REMOVE_1 = Delete((), (1,))
UPDATE_1 = Update(updated_fragments=(fragment(1),), new_fragments=(fragment(0),))
UPDATE_2 = Update(updated_fragments=(fragment(2),), new_fragments=(fragment(0),))
COLUMNS_1, COLUMNS_2 = columns(1), columns(2)
OVERWRITE = Overwrite((fragment(0),), (field(0),))
INDEX_1 = CreateIndex((entry("ix", {1}),))
INDEX_OTHER = CreateIndex((entry("other", {1}),))
REWRITE_1 = Rewrite((RewriteGroup((fragment(1),), (fragment(9),)),))
REWRITE_2 = Rewrite((RewriteGroup((fragment(2),), (fragment(8),)),))
MERGE_ALL = Merge((fragment(1), fragment(2)), (field(0),))
MERGE_NULLABLE = Merge((fragment(1), fragment(2)), (field(0),), preserves_nullability=True)
PROJECT = Project((field(0),))
PROJECT_NULLABLE = Project((field(0),), preserves_nullability=True)
RESTORE = Restore(1)
CONFIG = UpdateConfig(config=MapUpdate({"a": "1"}))
CONFIG_OTHER = UpdateConfig(config=MapUpdate({"b": "1"}))
METADATA = UpdateConfig(schema_metadata=MapUpdate({"a": "1"}))
REPLACE_1, REPLACE_2 = replacement(1), replacement(2)
RESERVE = ReserveFragments(2)
BASES = base(1, "/a")


OVERWRITE_KEY = Overwrite((fragment(0),), (field(0),), config_upserts={"a": "1"})
UPSERT_7 = Update(new_fragments=(fragment(0),), inserted_rows=keys(7))
INDEX_UNKNOWN = CreateIndex((entry("other", None),))

AFTER: dict[str, tuple[Operation, list[tuple[Operation, Verdict]]]] = {
    "append": (
        APPEND,
        [
            *((each, NONE) for each in (APPEND, DELETE_1, REMOVE_1, UPDATE_1, COLUMNS_1)),
            *((each, FAIL) for each in (OVERWRITE, RESTORE)),
            *((each, NONE) for each in (INDEX_1, REWRITE_1, CONFIG, REPLACE_1, RESERVE, BASES)),
            (MERGE_ALL, RETRY),
            (MERGE_NULLABLE, NONE),
            (PROJECT, RETRY),
            (PROJECT_NULLABLE, NONE),
        ],
    ),
    "append to a column that was cast": (
        APPEND_0,
        [(MERGE_NULLABLE, NONE), (Merge((), (field(5),), preserves_nullability=True), RETRY)],
    ),
    "delete": (
        DELETE_1,
        [
            *((each, MERGE) for each in (DELETE_1, UPDATE_1)),
            *((each, RETRY) for each in (REMOVE_1, COLUMNS_1, REWRITE_1, REPLACE_1)),
            *((each, NONE) for each in (DELETE_2, UPDATE_2, COLUMNS_2, REWRITE_2, REPLACE_2)),
            *((each, NONE) for each in (APPEND, INDEX_1, PROJECT, CONFIG, RESERVE, BASES)),
            *((each, RETRY) for each in (MERGE_ALL, MERGE_NULLABLE)),
            *((each, FAIL) for each in (OVERWRITE, RESTORE)),
        ],
    ),
    "delete of a whole fragment": (
        REMOVE_1,
        [*((each, RETRY) for each in (DELETE_1, REMOVE_1, UPDATE_1)), (DELETE_2, NONE)],
    ),
    "update of rows": (
        UPDATE_1,
        [
            *((each, MERGE) for each in (DELETE_1, UPDATE_1)),
            *((each, RETRY) for each in (REMOVE_1, COLUMNS_1, REWRITE_1, REPLACE_1)),
            *((each, NONE) for each in (DELETE_2, UPDATE_2, COLUMNS_2, REWRITE_2, REPLACE_2)),
            *((each, NONE) for each in (APPEND, INDEX_1, CONFIG, RESERVE, BASES)),
            *((each, RETRY) for each in (MERGE_ALL, MERGE_NULLABLE, PROJECT)),
            *((each, FAIL) for each in (OVERWRITE, RESTORE)),
            (PROJECT_NULLABLE, NONE),
        ],
    ),
    "update that inserted keys": (
        UPSERT_7,
        [
            (APPEND, RETRY),
            (Update(new_fragments=(fragment(0),), inserted_rows=keys(7, 8)), RETRY),
            (Update(new_fragments=(fragment(0),), inserted_rows=keys(8)), NONE),
            (Update(new_fragments=(fragment(0),), inserted_rows=keys(8, field_id=1)), RETRY),
            (Update(new_fragments=(fragment(0),)), RETRY),
            (COLUMNS_1, NONE),
        ],
    ),
    "update of columns": (
        COLUMNS_1,
        [
            *((each, RETRY) for each in (DELETE_1, REMOVE_1, UPDATE_1, COLUMNS_1, REWRITE_1)),
            *((each, RETRY) for each in (REPLACE_1, MERGE_ALL, MERGE_NULLABLE, PROJECT)),
            *((each, NONE) for each in (DELETE_2, UPDATE_2, COLUMNS_2, REWRITE_2, REPLACE_2)),
            *((each, NONE) for each in (APPEND, INDEX_1, PROJECT_NULLABLE, CONFIG, RESERVE, BASES)),
            *((each, FAIL) for each in (OVERWRITE, RESTORE)),
        ],
    ),
    "overwrite": (
        OVERWRITE,
        [
            *((each, NONE) for each in (APPEND, DELETE_1, UPDATE_1, COLUMNS_1, INDEX_1)),
            *((each, NONE) for each in (REWRITE_1, MERGE_ALL, PROJECT, RESTORE, CONFIG)),
            *((each, NONE) for each in (METADATA, REPLACE_1, RESERVE, BASES)),
            (OVERWRITE, RETRY),
        ],
    ),
    "overwrite of a key": (OVERWRITE_KEY, [(CONFIG, FAIL), (CONFIG_OTHER, NONE)]),
    "creation of an index": (
        INDEX_1,
        [
            *((each, NONE) for each in (APPEND, DELETE_1, UPDATE_1, COLUMNS_1, INDEX_OTHER)),
            *((each, NONE) for each in (REWRITE_2, MERGE_ALL, PROJECT, CONFIG, RESERVE, BASES)),
            *((each, RETRY) for each in (INDEX_1, REWRITE_1, REPLACE_1, REPLACE_2)),
            *((each, FAIL) for each in (OVERWRITE, RESTORE)),
            (replacement(1, field_id=3), NONE),
        ],
    ),
    "creation of an index of unknown coverage": (INDEX_UNKNOWN, [(REWRITE_1, RETRY)]),
    "removal of an index": (CreateIndex((), (entry(),)), [(INDEX_1, RETRY), (REWRITE_1, NONE)]),
    "rewrite": (
        REWRITE_1,
        [
            *((each, RETRY) for each in (DELETE_1, REMOVE_1, UPDATE_1, COLUMNS_1, REWRITE_1)),
            *((each, RETRY) for each in (INDEX_1, INDEX_UNKNOWN, REPLACE_1, MERGE_ALL)),
            *((each, NONE) for each in (DELETE_2, UPDATE_2, COLUMNS_2, REWRITE_2, REPLACE_2)),
            *((each, NONE) for each in (APPEND, PROJECT, CONFIG, RESERVE, BASES)),
            *((each, FAIL) for each in (OVERWRITE, RESTORE)),
            (CreateIndex((entry("ix", {2}),)), NONE),
        ],
    ),
    "merge": (
        MERGE_ALL,
        [
            *((each, RETRY) for each in (APPEND, DELETE_1, UPDATE_1, COLUMNS_1, REWRITE_1)),
            *((each, RETRY) for each in (MERGE_ALL, METADATA, REPLACE_1)),
            *((each, FAIL) for each in (OVERWRITE, PROJECT, RESTORE)),
            *((each, NONE) for each in (INDEX_1, CONFIG, RESERVE, BASES)),
        ],
    ),
    "projection": (
        PROJECT,
        [
            *((each, RETRY) for each in (APPEND, UPDATE_1, COLUMNS_1, REPLACE_1)),
            *((each, RETRY) for each in (MERGE_ALL, PROJECT)),
            *((each, NONE) for each in (DELETE_1, INDEX_1, REWRITE_1, CONFIG, RESERVE, BASES)),
            *((each, FAIL) for each in (OVERWRITE, RESTORE)),
        ],
    ),
    "projection that makes nothing stricter": (
        PROJECT_NULLABLE,
        [
            *((each, NONE) for each in (APPEND, UPDATE_1, COLUMNS_1, REPLACE_1)),
            (MERGE_NULLABLE, RETRY),
        ],
    ),
    "restore": (
        RESTORE,
        [
            *((each, NONE) for each in (APPEND, DELETE_1, UPDATE_1, COLUMNS_1, OVERWRITE)),
            *((each, NONE) for each in (INDEX_1, REWRITE_1, MERGE_ALL, PROJECT, RESTORE)),
            *((each, NONE) for each in (CONFIG, REPLACE_1, RESERVE, BASES)),
            (METADATA, FAIL),
        ],
    ),
    "change of the configuration": (
        CONFIG,
        [
            *((each, NONE) for each in (APPEND, DELETE_1, UPDATE_1, COLUMNS_1, OVERWRITE)),
            *((each, NONE) for each in (INDEX_1, REWRITE_1, MERGE_ALL, PROJECT, RESTORE)),
            *((each, NONE) for each in (CONFIG_OTHER, METADATA, REPLACE_1, RESERVE, BASES)),
            *((each, FAIL) for each in (CONFIG, OVERWRITE_KEY)),
            (UpdateConfig(config=MapUpdate({}, replaces=True)), FAIL),
        ],
    ),
    "change of the schema's metadata": (
        METADATA,
        [(MERGE_ALL, RETRY), (OVERWRITE, FAIL), (RESTORE, FAIL), (METADATA, FAIL)],
    ),
    "change of a field's metadata": (
        UpdateConfig(field_metadata={1: MapUpdate({"a": "1"})}),
        [
            (UpdateConfig(field_metadata={2: MapUpdate({"a": "1"})}), NONE),
            (UpdateConfig(field_metadata={1: MapUpdate({"a": None})}), FAIL),
            (RESTORE, FAIL),
        ],
    ),
    "replacement of a column": (
        REPLACE_1,
        [
            *((each, RETRY) for each in (UPDATE_1, COLUMNS_1, INDEX_1, REWRITE_1)),
            *((each, RETRY) for each in (MERGE_ALL, PROJECT, REPLACE_1)),
            *((each, NONE) for each in (APPEND, DELETE_1, UPDATE_2, COLUMNS_2, REWRITE_2)),
            *((each, NONE) for each in (CONFIG, REPLACE_2, RESERVE, BASES, PROJECT_NULLABLE)),
            *((each, FAIL) for each in (REMOVE_1, OVERWRITE, RESTORE, Project((field(5),)))),
            (CreateIndex((entry("ix", {1}, field_id=3),)), NONE),
            (replacement(1, field_id=3), NONE),
        ],
    ),
    "reservation": (
        RESERVE,
        [
            *((each, NONE) for each in (APPEND, DELETE_1, UPDATE_1, COLUMNS_1, INDEX_1)),
            *((each, NONE) for each in (REWRITE_1, MERGE_ALL, PROJECT, CONFIG, REPLACE_1)),
            *((each, NONE) for each in (RESERVE, BASES)),
            *((each, FAIL) for each in (OVERWRITE, RESTORE)),
        ],
    ),
    "base paths": (
        base(1, "/a", "n"),
        [
            *((each, NONE) for each in (APPEND, DELETE_1, UPDATE_1, COLUMNS_1, OVERWRITE)),
            *((each, NONE) for each in (INDEX_1, REWRITE_1, MERGE_ALL, PROJECT, RESTORE)),
            *((each, NONE) for each in (CONFIG, REPLACE_1, RESERVE, base(2, "/b", "m"))),
            *((each, FAIL) for each in (BASES, base(2, "/a"), base(2, "/b", "n"))),
        ],
    ),
}
CASES = [
    pytest.param(ours, theirs, expected, id=f"{name} after {kind_of(theirs).value} {number}")
    for name, (ours, cells) in AFTER.items()
    for number, (theirs, expected) in enumerate(cells)
]


@pytest.mark.parametrize(("ours", "theirs", "expected"), CASES)
def test_an_operation_after_another(ours: Operation, theirs: Operation, expected: Verdict) -> None:
    assert verdict(Side(ours), Side(theirs)) is expected


def test_every_cell_has_a_test() -> None:
    tried = {
        (kind_of(ours), kind_of(theirs)) for ours, cells in AFTER.values() for theirs, _ in cells
    }
    known = set(Kind) - {Kind.UNKNOWN}
    assert tried == {(ours, theirs) for ours in known for theirs in known}


@pytest.mark.parametrize("ours", [APPEND, OVERWRITE, RESTORE, RESERVE])
def test_what_nobody_knows_conflicts_with_everything(ours: Operation) -> None:
    assert verdict(Side(ours), Side(UnknownOperation("composite"))) is FAIL


def test_what_makes_other_datasets_is_not_committed_here() -> None:
    clone = Clone(is_shallow=True, ref_name=None, ref_version=1, ref_path="", branch_name="b")
    with pytest.raises(InvalidRequestError, match="Clone"):
        verdict(Side(clone), Side(APPEND))


REUSE = "__lance_frag_reuse"
TRIMMED = CreateIndex((entry(REUSE, {1}),), (entry(REUSE, {1}),))
REMOVED = CreateIndex((), (entry(REUSE, {1}),))


@pytest.mark.parametrize(
    ("ours", "theirs", "expected"),
    [
        (Side(REWRITE_1, is_deferred=True), Side(INDEX_1), NONE),
        (Side(REWRITE_1, is_deferred=True), Side(INDEX_UNKNOWN), NONE),
        (Side(INDEX_1), Side(REWRITE_1, is_deferred=True), NONE),
        (Side(REWRITE_1, is_deferred=True), Side(TRIMMED), NONE),
        (Side(REWRITE_1, is_deferred=True), Side(REMOVED), RETRY),
        (Side(TRIMMED), Side(REWRITE_1, is_deferred=True), RETRY),
        (Side(REMOVED), Side(REWRITE_1, is_deferred=True), RETRY),
        (Side(REWRITE_1, is_deferred=True), Side(REWRITE_1), RETRY),
        (Side(REWRITE_1, is_deferred=True), Side(REWRITE_2, is_deferred=True), NONE),
    ],
)
def test_a_deferred_rewrite_goes_along_with_new_indices(
    ours: Side, theirs: Side, expected: Verdict
) -> None:
    assert verdict(ours, theirs) is expected
