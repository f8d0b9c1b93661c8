"""What is no argument at all is refused by name, and changes nothing."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from lance_core.dataset import ColumnChange, open_dataset, write_dataset
from lance_core.errors import InvalidRequestError, LanceError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

TABLE = pa.table({"id": [1, 2], "s": ["a", "b"]})
ODD: dict[str, Callable[[Any], object]] = {
    "a predicate of bytes": lambda d: d.delete(b"id = 1"),
    "no predicate": lambda d: d.update({"id": 1}, where=None),
    "values that are a list": lambda d: d.update(["id"]),
    "values by number": lambda d: d.update({1: 2}),
    "a value that is too large": lambda d: d.update({"id": 2**70}),
    "a value of no type": lambda d: d.update({"s": object()}),
    "a key that is a number": lambda d: d.merge_insert(TABLE, on=5),
    "no key": lambda d: d.merge_insert(TABLE, on=None),
    "an empty key": lambda d: d.merge_insert(TABLE, on=""),
    "a key twice": lambda d: d.merge_insert(TABLE, on=["id", "id"]),
    "keys that are numbers": lambda d: d.merge_insert(TABLE, on=[1]),
    "no rows to merge": lambda d: d.merge_insert(None, on="id"),
    "no rule": lambda d: d.merge_insert(TABLE, on="id", when_matched=None),
    "a rule that is a list": lambda d: d.merge_insert(TABLE, on="id", when_matched=["update"]),
    "no columns": lambda d: d.add_columns(None),
    "columns that are a map": lambda d: d.add_columns({"a": 1}),
    "columns that read": lambda d: d.add_columns(TABLE, read_columns=["id"]),
    "columns to read that are text": lambda d: d.add_columns(lambda b: b, read_columns="id"),
    "a list of fields": lambda d: d.add_columns([pa.field("x", pa.int32())]),
    "a schema of nothing": lambda d: d.add_columns(pa.schema([])),
    "a field twice": lambda d: d.add_columns(pa.schema([("a", pa.int8())] * 2)),
    "a field with a dot": lambda d: d.add_columns(pa.field("a.b", pa.int8())),
    "a change that is text": lambda d: d.alter_columns("x"),
    "a change that is a map": lambda d: d.alter_columns({"path": "id"}),
    "a path that is a number": lambda _: ColumnChange(3),  # type: ignore[arg-type]  # that is it
    "a type that is text": lambda _: ColumnChange("id", data_type="int32"),
    "nullable as text": lambda _: ColumnChange("id", nullable="no"),  # type: ignore[arg-type]  # same
    "no names": lambda d: d.drop_columns(None),
    "names that are numbers": lambda d: d.drop_columns([1]),
    "a version that is text": lambda d: d.restore("x"),
    "a version below all": lambda d: d.restore(-1),
    "a long tag": lambda d: d.create_tag("a" * 300),
    "a long tag of few letters": lambda d: d.create_tag("ä" * 130),
    "a long branch": lambda d: d.create_branch("a/" * 100 + "b"),
    "true as number": lambda d: d.checkout(True),
    "a broken number": lambda d: d.checkout(1.0),
    "true as number to open": lambda d: open_dataset(d.uri, True),
    "true as number to restore": lambda d: d.restore(True),
    "true as number to tag": lambda d: d.create_tag("x", True),
    "an age below zero": lambda d: d.cleanup(older_than=timedelta(days=-1)),
    "a literal beyond a decimal": lambda d: d.delete("id = 1e99999999999999999999"),
    "half a pair in a predicate": lambda d: d.delete("s = '\ud800'"),
    "a tag that is a number": lambda d: d.create_tag(5),
    "no tag": lambda d: d.delete_tag(None),
    "a branch that is a number": lambda d: d.create_branch(5),
    "no branch": lambda d: d.delete_branch(None),
    "another branch that is a number": lambda d: d.checkout(branch=5),
    "no entries": lambda d: d.update_config(None),
    "entries that are text": lambda d: d.update_metadata("ab"),
    "bytes as text": lambda d: d.update_schema_metadata({"a": b"x"}),
    "half a pair": lambda d: d.update_config({"a": "\ud800"}),
    "a field that is a number": lambda d: d.update_field_metadata(3, {}),
    "no place": lambda d: d.shallow_clone(None),
    "a size that is text": lambda d: d.append(TABLE, max_rows_per_file="x"),
    "a size that is broken": lambda d: d.append(TABLE, max_rows_per_file=1.5),
    "no size": lambda d: d.append(TABLE, max_bytes_per_file=None),
    "a file version that is a number": lambda d: d.overwrite(TABLE, data_storage_version=2.2),
    "a mode that is a list": lambda d: write_dataset(d.uri, TABLE, mode=["append"]),  # type: ignore[arg-type]  # same
}


@pytest.mark.parametrize("name", ODD)
def test_what_is_no_argument_is_refused_and_changes_nothing(name: str, tmp_path: Path) -> None:
    dataset = write_dataset(tmp_path / "t", TABLE)
    before = {each.path for each in dataset.snapshot.scheduler.store.list_tree("")}
    with pytest.raises(LanceError) as caught:
        ODD[name](dataset)
    assert isinstance(caught.value, InvalidRequestError) or "version" in name
    assert {each.path for each in dataset.snapshot.scheduler.store.list_tree("")} == before


def test_a_name_must_be_text_and_not_too_long(tmp_path: Path) -> None:
    dataset = write_dataset(tmp_path / "t", TABLE)
    with pytest.raises(InvalidRequestError, match="the name of a tag must be text, not 5"):
        dataset.create_tag(5)  # type: ignore[arg-type]  # that is the point
    with pytest.raises(InvalidRequestError, match=r"305 bytes.*take a shorter one"):
        dataset.create_tag("a" * 300)
    assert dataset.create_tag("a" * 235).name == dataset.tags()[0].name
    assert dataset.create_branch("b" * 235).count_rows() == 2
