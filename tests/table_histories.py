"""Histories of a table that we and pylance change by turns, with plain dicts as the judge.

A step names an action, who does it, and two numbers that decide its details, so that a failing
history shrinks to a few readable steps.
"""

from __future__ import annotations

from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import lance
import pyarrow as pa
import pyarrow.compute as pc

from lance_core.dataset import ColumnChange, Dataset, open_dataset, write_dataset
from lance_core.errors import InvalidRequestError, UnsupportedFeatureError
from lance_core.query.session import Session

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

Actor = Literal["us", "them"]
Row = dict[str, Any]

VECTOR = pa.list_(pa.float32(), 2)
FIRST_COLUMNS = {"id": pa.int64(), "n": pa.int64(), "s": pa.string(), "vec": VECTOR}
NEVER_CHANGED = {"id", "vec"}
TREATMENTS: list[Literal["defer", "drop_coverage", "remap"]] = ["defer", "drop_coverage", "remap"]


@dataclass
class State:
    """What a version says: its rows by id, and its columns in order."""

    rows: dict[int, Row] = field(default_factory=dict)
    columns: dict[str, pa.DataType] = field(default_factory=lambda: dict(FIRST_COLUMNS))
    row_ids: dict[int, int] = field(default_factory=dict)
    """Stable row ids by id, as they were when the row was first seen."""

    def table(self, ids: list[int], salt: int) -> pa.Table:
        """Return new rows with values in all columns."""
        schema = pa.schema(list(self.columns.items()))
        return pa.Table.from_pylist([self.new_row(number, salt) for number in ids], schema)

    def new_row(self, number: int, salt: int) -> Row:
        values: Row = {}
        for name, kind in self.columns.items():
            if name == "id":
                values[name] = number
            elif kind == VECTOR:
                values[name] = [float(number), float(salt)]
            elif (number + salt) % 5 == 0:
                values[name] = None
            else:
                values[name] = f"s{salt}" if pa.types.is_string(kind) else (number + salt) % 7
        return values

    def put(self, table: pa.Table) -> None:
        """Add rows, or give values to those that are there."""
        for values in table.to_pylist():
            row = self.rows.setdefault(values["id"], dict.fromkeys(self.columns))
            row.update(values)


class TableHistory:
    """A dataset under change, and what it should be."""

    def __init__(self, root: Path, data_version: str, *, stable_row_ids: bool) -> None:
        self.uri = str(root)
        self.stable = stable_row_ids
        self.session = Session()
        self.state = State()
        self.saved: dict[int, State] = {}
        self.tags: dict[str, int] = {}
        self.next_id = 0
        self.num_added = 0
        table = self._new_rows(25, 0)
        write_dataset(
            self.uri,
            table,
            max_rows_per_file=10,
            data_storage_version=data_version,
            stable_row_ids=stable_row_ids,
        )
        self.state.put(table)
        self.check()

    def ours(self, version: int | str | None = None) -> Dataset:
        return open_dataset(self.uri, version, session=self.session)

    def theirs(self) -> lance.LanceDataset:
        return lance.dataset(self.uri)

    def step(self, action: str, actor: Actor, a: int, b: int) -> None:
        """Do one step, and compare what both see then."""
        getattr(self, f"_{action}")(actor, a, b)
        self.check()

    def check(self) -> None:
        """Compare what we and pylance see with what the table should say."""
        ours, names = self.ours(), list(self.state.columns)
        table = self.theirs().to_table(columns=[*names, "_rowid"])
        assert ours.schema.names == names == self.theirs().schema.names
        assert ours.scan([*names, "_rowid"]).read_all().equals(table)
        row_ids = dict(zip(table["id"].to_pylist(), table["_rowid"].to_pylist(), strict=True))
        assert ours.count_rows() == len(row_ids) == table.num_rows
        assert {
            row["id"]: row for row in table.drop_columns("_rowid").to_pylist()
        } == self.state.rows
        self._check_search(ours)
        if self.stable:
            known = {n: each for n, each in self.state.row_ids.items() if n in row_ids}
            assert {number: row_ids[number] for number in known} == known
            self.state.row_ids = row_ids
        self.saved[ours.version] = deepcopy(self.state)

    def check_whole(self) -> None:
        """Compare tagged versions, and look for contradictions in files of all versions."""
        for name, version in self.tags.items():
            rows = self.ours(name).scan().read_all().to_pylist()
            assert {row["id"]: row for row in rows} == self.saved[version].rows
        assert list(self.ours().verify()) == []
        self.theirs().validate()

    def _check_search(self, ours: Dataset) -> None:
        """Search by whatever index there is: every row is found once, the nearest first."""
        if len(self.state.rows) == 0:
            return
        row = next(iter(self.state.rows.values()))
        found = ours.search(row["vec"], k=1000, nprobes=100, columns=["id", "vec"])
        assert sorted(found["id"].to_pylist()) == sorted(self.state.rows)
        assert found["_distance"][0].as_py() == 0.0
        assert found["vec"].to_pylist() == [
            self.state.rows[n]["vec"] for n in found["id"].to_pylist()
        ]

    def _new_rows(self, num_rows: int, salt: int) -> pa.Table:
        ids = list(range(self.next_id, self.next_id + num_rows))
        self.next_id += num_rows
        return self.state.table(ids, salt)

    def _append(self, actor: Actor, a: int, b: int) -> None:
        table = self._new_rows(a % 17 + 1, b)
        left_out = self._changeable(b) if b % 3 == 0 else None
        if left_out is not None:
            table = table.drop_columns(left_out)
        if actor == "us":
            self.ours().append(table, max_rows_per_file=9)
        else:
            lance.write_dataset(table, self.uri, mode="append", max_rows_per_file=9)
        self.state.put(table)

    def _overwrite(self, actor: Actor, a: int, b: int) -> None:
        self.state = State()
        table = self._new_rows(a % 17 + 1, b)
        if actor == "us":
            self.ours().overwrite(table, max_rows_per_file=9)
        else:
            lance.write_dataset(table, self.uri, mode="overwrite", max_rows_per_file=9)
        self.state.put(table)

    def _delete(self, actor: Actor, a: int, b: int) -> None:
        predicate, holds = self._predicate(a, b)
        if actor == "us":
            self.ours().delete(predicate)
        else:
            self.theirs().delete(predicate)
        self.state.rows = {n: row for n, row in self.state.rows.items() if not holds(row)}

    def _update(self, actor: Actor, a: int, b: int) -> None:
        name = self._changeable(a, pa.int64())
        if name is None:
            return
        predicate, holds = self._predicate(b, a)
        if actor == "us":
            self.ours().update({name: lambda batch: pc.add(batch["id"], b)}, where=predicate)
        else:
            self.theirs().update({name: f"id + {b}"}, where=predicate)
        for number, row in self.state.rows.items():
            if holds(row):
                row[name] = number + b

    def _merge_insert(self, actor: Actor, a: int, b: int) -> None:
        known = [n for n in self.state.rows if n % 5 == a % 5][:6]
        table = pa.concat_tables([self.state.table(known, b), self._new_rows(b % 4, b)])
        if actor == "us":
            left_out = self._changeable(a) if a % 2 == 0 else None
            table = table if left_out is None else table.drop_columns(left_out)
            self.ours().merge_insert(table, "id")
        else:
            merge = self.theirs().merge_insert("id")
            merge.when_matched_update_all().when_not_matched_insert_all().execute(table)
        self.state.put(table)

    def _add_column(self, actor: Actor, a: int, b: int) -> None:
        self.num_added += 1
        name = f"c{self.num_added}"
        is_null = a % 3 == 0
        if actor == "us":
            self._add_ours(name, a, b)
        elif is_null:
            self.theirs().add_columns(pa.field(name, pa.int64()))
        else:
            self.theirs().add_columns({name: f"id * {b}"})
        self.state.columns[name] = pa.int64()
        for number, row in self.state.rows.items():
            row[name] = None if is_null else number * b

    def _add_ours(self, name: str, a: int, b: int) -> None:
        ours = self.ours()
        if a % 3 == 0:
            ours.add_columns(pa.field(name, pa.int64()))
        elif a % 3 == 1:
            ids = ours.scan(["id"]).read_all()["id"]
            ours.add_columns(pa.table({name: pc.multiply(ids, b)}))
        else:
            ours.add_columns(lambda batch: pa.table({name: pc.multiply(batch["id"], b)}))

    def _drop_column(self, actor: Actor, a: int, b: int) -> None:
        name = self._changeable(a)
        if name is None:
            return
        (self.ours() if actor == "us" else self.theirs()).drop_columns([name])
        del self.state.columns[name]
        for row in self.state.rows.values():
            del row[name]

    def _rename_column(self, actor: Actor, a: int, b: int) -> None:
        name = self._changeable(a)
        if name is None:
            return
        self.num_added += 1
        new = f"r{self.num_added}"
        self._alter(actor, name, name=new)
        self.state.columns = {new if n == name else n: k for n, k in self.state.columns.items()}
        for number, row in self.state.rows.items():
            renamed = {new if n == name else n: value for n, value in row.items()}
            self.state.rows[number] = renamed

    def _cast_column(self, actor: Actor, a: int, b: int) -> None:
        name = self._changeable(a, pa.int64())
        if name is None:
            return
        self._alter(actor, name, data_type=pa.int32())
        self.state.columns[name] = pa.int32()

    def _alter(self, actor: Actor, path: str, **change: Any) -> None:
        if actor == "us":
            self.ours().alter_columns(ColumnChange(path, **change))
        else:
            theirs: Any = {"path": path, **change}
            self.theirs().alter_columns(theirs)

    def _restore(self, actor: Actor, a: int, b: int) -> None:
        version = sorted(self.saved)[a % len(self.saved)]
        if actor == "us":
            self.ours().restore(version)
        else:
            lance.dataset(self.uri, version=version).restore()
        self.state = deepcopy(self.saved[version])

    def _tag(self, actor: Actor, a: int, b: int) -> None:
        version = sorted(self.saved)[a % len(self.saved)]
        name = f"t{b}"
        if actor == "us":
            change = self.ours().update_tag if name in self.tags else self.ours().create_tag
            change(name, version)
        else:
            tags = self.theirs().tags
            (tags.update if name in self.tags else tags.create)(name, version)
        self.tags[name] = version

    def _compact(self, actor: Actor, a: int, b: int) -> None:
        if actor == "them":
            defers = b % 2 == 1 and not self.stable
            self.theirs().optimize.compact_files(
                target_rows_per_fragment=a + 5, defer_index_remap=defers
            )
            return
        with suppress(InvalidRequestError, UnsupportedFeatureError):  # rows that an index covers
            self.ours().compact(indices=TREATMENTS[b % 3], target_rows_per_fragment=a + 5)

    def _index(self, actor: Actor, a: int, b: int) -> None:
        """Pylance builds the index; we have to live with it."""
        if len(self.state.rows) == 0:
            return
        if b % 2 == 0 and len(self.theirs().describe_indices()) > 0:
            self.theirs().optimize.optimize_indices()
        else:
            self.theirs().create_index("vec", "IVF_FLAT", num_partitions=2, replace=True)

    def _changeable(self, number: int, kind: pa.DataType | None = None) -> str | None:
        names = [
            name
            for name, type_ in self.state.columns.items()
            if name not in NEVER_CHANGED and kind in {None, type_}
        ]
        return names[number % len(names)] if len(names) > 0 else None

    def _predicate(self, a: int, b: int) -> tuple[str, Callable[[Row], bool]]:
        name = self._changeable(a, pa.int64())
        if name is not None and b % 4 == 0:
            value = a % 7
            return f"{name} = {value} OR {name} IS NULL", lambda row: row[name] in {value, None}
        if name is not None and b % 4 == 1:
            return (
                f"NOT ({name} < {b % 5})",
                lambda row: row[name] is not None and row[name] >= b % 5,
            )
        if b % 4 == 2:
            return f"id IN ({a}, {b}, {a + b})", lambda row: row["id"] in {a, b, a + b}
        return f"id >= {a} AND id < {a + b % 12}", lambda row: a <= row["id"] < a + b % 12
