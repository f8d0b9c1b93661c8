"""Columns that make pylance choose every encoding it emits by default, and some on request.

Also the one way in which the tests write a Lance file with the oracle.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from lance.file import LanceFileWriter

from lance_core.file.reader import LanceFileReader
from lance_core.io.memory_store import MemoryStore
from lance_core.io.scheduler import RangeScheduler

if TYPE_CHECKING:
    from collections.abc import Mapping

VERSIONS = ["2.0", "2.1", "2.2"]
NUM_ROWS = 3000
COMPRESSION = "lance-encoding:compression"


def lance_file(
    column: pa.Array,
    version: str,
    metadata: Mapping[str, str] | None = None,
    page_rows: int | None = None,
) -> bytes:
    """Return the file that pylance writes for one column, named ``c``."""
    field = pa.field("c", column.type, metadata=metadata)
    return lance_table(pa.table([column], schema=pa.schema([field])), version, page_rows)


def lance_table(table: pa.Table, version: str, page_rows: int | None = None) -> bytes:
    """Return the file that pylance writes for a table; ``page_rows`` makes pages that small."""
    cache_bytes = None if page_rows is None else 1  # nothing is kept back: a batch is a page
    with TemporaryDirectory() as folder:
        path = Path(folder) / "file.lance"
        with LanceFileWriter(
            str(path), table.schema, version=version, data_cache_bytes=cache_bytes
        ) as writer:
            for batch in table.to_batches(max_chunksize=page_rows):
                writer.write_batch(unsliced(batch))
        return path.read_bytes()


def unsliced(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return a copy of a batch, because pylance panics on slices of some nested columns."""
    columns = [pa.concat_arrays([column]) for column in batch.columns]
    return pa.record_batch(columns, schema=batch.schema)


def open_bytes(data: bytes) -> LanceFileReader:
    """Open a file that lies in memory."""
    store = MemoryStore()
    store.put("file.lance", data)
    return LanceFileReader.open(RangeScheduler(store), "file.lance", len(data))


def with_nulls(column: pa.Array, seed: int = 0) -> pa.Array:
    """Return the column with every fifth value, more or less, made null."""
    mask = np.random.default_rng(seed).random(len(column)) < 0.2
    return pa.array(column.to_pylist(), column.type, mask=mask)


def _lists(element: str, dimension: int) -> pa.Array:
    rng = np.random.default_rng(dimension)
    values = (rng.standard_normal(NUM_ROWS * dimension) * 50).astype(element)
    return pa.FixedSizeListArray.from_arrays(pa.array(values), dimension)


def _integers() -> dict[str, pa.Array]:
    rng = np.random.default_rng(1)
    columns: dict[str, pa.Array] = {}
    for name in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"):
        kind = np.dtype(name)
        small = rng.integers(0, 100, NUM_ROWS).astype(kind)
        bounds = np.iinfo(kind)
        columns[f"{name} random"] = pa.array(
            rng.integers(bounds.min, bounds.max, NUM_ROWS, dtype=kind)
        )
        columns[f"{name} sequential"] = pa.array(np.arange(NUM_ROWS).astype(kind))
        columns[f"{name} small"] = pa.array(small)
        columns[f"{name} runs"] = pa.array(np.repeat(small[: NUM_ROWS // 50], 50))
        columns[f"{name} nulls"] = with_nulls(pa.array(small))
    return columns


def _scalars() -> dict[str, pa.Array]:
    rng = np.random.default_rng(2)
    numbers = rng.integers(0, 10**6, NUM_ROWS)
    flags = pa.array(rng.random(NUM_ROWS) < 0.5)
    return {
        "float16": pa.array(rng.standard_normal(NUM_ROWS).astype(np.float16)),
        "float32": pa.array(rng.standard_normal(NUM_ROWS).astype(np.float32)),
        "float64": pa.array(rng.random(NUM_ROWS)),
        "float64 nulls": with_nulls(pa.array(rng.random(NUM_ROWS))),
        "bool": flags,
        "bool nulls": with_nulls(flags),
        "bool constant": pa.array([True] * NUM_ROWS),
        "constant": pa.array([7] * NUM_ROWS),
        "constant nulls": pa.array([7, None] * (NUM_ROWS // 2)),
        "all null": pa.nulls(NUM_ROWS, pa.int32()),
        "null type": pa.nulls(NUM_ROWS),
        "one row": pa.array([5.5]),
        "no rows": pa.array([], pa.int64()),
        "date32": pa.array((numbers % 20000).astype(np.int32)).cast(pa.date32()),
        "time32": pa.array((numbers % 80000).astype(np.int32)).cast(pa.time32("s")),
        "time64": pa.array(numbers).cast(pa.time64("us")),
        "timestamp": pa.array(numbers * 10**9).cast(pa.timestamp("us", "UTC")),
        "timestamp local": pa.array(numbers).cast(pa.timestamp("s")),
        "duration": pa.array(numbers).cast(pa.duration("ms")),
        "decimal128": pa.array(numbers).cast(pa.decimal128(25, 2)),
        "decimal256": pa.array(numbers).cast(pa.decimal256(50, 2)),
    }


def _strings() -> dict[str, pa.Array]:
    rng = np.random.default_rng(3)
    texts = pa.array([f"value {i} {'x' * (i % 20)}" for i in range(NUM_ROWS)])
    few = pa.array([f"category {i % 7}" for i in range(NUM_ROWS)])
    longer = pa.array([f"{i} é" * 60 for i in range(NUM_ROWS)])
    short = pa.array([rng.bytes(i % 40) for i in range(NUM_ROWS)])
    return {
        "string": texts,
        "string short": pa.array([f"{i % 97}" for i in range(NUM_ROWS)]),
        "string tiny page": texts.slice(0, 5),
        "string nulls": with_nulls(texts),
        "string long": longer,
        "string long nulls": with_nulls(longer),
        "string few": few,
        "string few nulls": with_nulls(few),
        "string constant": pa.array(["same value"] * NUM_ROWS),
        "string empty": pa.array([""] * NUM_ROWS),
        "large_string": texts.cast(pa.large_string()),
        "binary": short,
        "binary long": pa.array([rng.bytes(300) for _ in range(NUM_ROWS)]),
        "binary huge": pa.array([b"x" * 40000] + [b"ab"] * (NUM_ROWS - 1)),
        "large_binary": short.cast(pa.large_binary()),
        "fixed_size_binary 16": pa.array([rng.bytes(16) for _ in range(NUM_ROWS)], pa.binary(16)),
        "fixed_size_binary 300": pa.array(
            [rng.bytes(300) for _ in range(NUM_ROWS)], pa.binary(300)
        ),
        "dictionary": few.dictionary_encode(),
        "dictionary nulls": with_nulls(few).dictionary_encode(),
        **{
            f"dictionary of {items.type}": pa.DictionaryArray.from_arrays(
                pa.array([i % 3 if i % 7 else None for i in range(NUM_ROWS)], pa.int8()), items
            )
            for items in (
                pa.array([7, -8, 9]),
                pa.array(np.array([1, 2, 0.5], np.float16)),
                pa.array([1.5, 2.5, -0.0]),
                pa.array([b"a", b"", b"ccc"]),
                pa.array(["a", "", "é"], pa.large_string()),
            )
        },
    }


def _fixed_size_lists() -> dict[str, pa.Array]:
    shapes = [("float32", 4), ("float32", 128), ("float16", 64), ("float16", 256), ("float64", 10)]
    shapes += [("float64", 100), ("uint8", 16), ("uint8", 256), ("int8", 3)]
    columns = {f"list of {dimension} {kind}": _lists(kind, dimension) for kind, dimension in shapes}
    rows = pa.array(np.random.default_rng(4).random(NUM_ROWS) < 0.2)
    for dimension in (8, 128):
        values = _lists("float32", dimension).values
        from_arrays = pa.FixedSizeListArray.from_arrays
        columns[f"null lists of {dimension}"] = from_arrays(values, dimension, mask=rows)
        columns[f"lists of {dimension} nulls"] = from_arrays(with_nulls(values), dimension)
        columns[f"lists of {dimension} only nulls"] = from_arrays(
            pa.nulls(NUM_ROWS * dimension, pa.float32()), dimension
        )
    inner = pa.FixedSizeListArray.from_arrays(_lists("float32", 12).values, 3)
    columns["lists of 4 lists of 3"] = pa.FixedSizeListArray.from_arrays(inner, 4)
    return columns


def _nested() -> dict[str, pa.Array]:
    rows = range(NUM_ROWS)
    numbers = [list(range(i % 5)) if i % 7 else None for i in rows]
    structs = [{"a": i if i % 3 else None, "b": f"x{i}"} if i % 5 else None for i in rows]
    inner = [
        [{"p": j, "q": {"z": str(j)} if j % 2 else None} if j % 3 else None for j in range(i % 5)]
        if i % 7
        else None
        for i in rows
    ]
    items = pa.array([{"x": i, "y": str(i) if i % 3 else None} for i in range(NUM_ROWS * 3)])
    return {
        "list": pa.array(numbers),
        "large_list": pa.array(numbers, pa.large_list(pa.int64())),
        "list nulls": pa.array(
            [[j if j % 2 else None for j in range(i % 5)] if i % 7 else None for i in rows]
        ),
        "list of strings": pa.array([[f"s{j}" * 30 for j in range(i % 5)] for i in rows]),
        "list of long strings": pa.array(
            [[f"s{j}" * 300 for j in range(i % 3)] if i % 9 else None for i in rows]
        ),
        "list of lists": pa.array(
            [
                [list(range(j % 3)) if j % 4 else None for j in range(i % 5)] if i % 7 else None
                for i in rows
            ]
        ),
        "list that spans chunks": pa.array(
            [list(range(9000)), [1], [], list(range(5000))] * 3 + [[1]] * 50
        ),
        "only null lists": pa.array([None] * NUM_ROWS, pa.list_(pa.int32())),
        "only empty lists": pa.array([[]] * NUM_ROWS, pa.list_(pa.int32())),
        "struct": pa.array([{"a": i, "b": f"x{i}"} for i in rows]),
        "struct nulls": pa.array(structs),
        "struct without children": pa.array([{}] * NUM_ROWS, pa.struct([])),
        "struct around one without children": pa.array(
            [{"e": {}, "i": i} for i in rows],
            pa.struct([("e", pa.struct([])), ("i", pa.int64())]),
        ),
        "list of structs": pa.array(inner),
        "map": pa.array(
            [[(f"k{j}", j) for j in range(i % 4)] if i % 5 else None for i in rows],
            pa.map_(pa.string(), pa.int32()),
        ),
        "map of lists": pa.array(
            [[(i, ["x", None]), (i + 1, [])] if i % 3 else [] for i in rows],
            pa.map_(pa.int64(), pa.list_(pa.string())),
        ),
        "list of maps": pa.array(
            [[[(i, "x")], [], None] if i % 3 else None for i in rows],
            pa.list_(pa.map_(pa.int64(), pa.string())),
        ),
        "list of lists of 3": pa.ListArray.from_arrays(
            pa.array(range(NUM_ROWS + 1), pa.int32()),
            pa.FixedSizeListArray.from_arrays(
                with_nulls(pa.array(np.arange(3.0 * NUM_ROWS))),
                3,
                mask=pa.array([i % 4 == 0 for i in rows]),
            ),
        ),
        "lists of 3 structs": pa.FixedSizeListArray.from_arrays(
            items, 3, mask=pa.array([i % 7 == 0 for i in rows])
        ),
    }


@cache
def sample_columns() -> dict[str, tuple[pa.Array, dict[str, str]]]:
    """Return columns by name, each with the metadata of its field."""
    plain = {**_integers(), **_scalars(), **_strings(), **_fixed_size_lists(), **_nested()}
    columns: dict[str, tuple[pa.Array, dict[str, str]]] = {
        name: (column, {}) for name, column in plain.items()
    }
    for scheme in ("zstd", "lz4", "fsst"):
        for name in ("int64 small", "string", "float32", "int64 nulls", "binary", "string long"):
            columns[f"{name} by {scheme}"] = (plain[name], {COMPRESSION: scheme})
    packed = pa.StructArray.from_arrays(
        [pa.array(np.arange(NUM_ROWS)), pa.array(np.arange(NUM_ROWS).astype(np.float32))],
        ["a", "b"],
    )
    columns["packed struct"] = (packed, {"lance-encoding:packed": "true"})
    within = pa.StructArray.from_arrays(
        [packed, plain["string"]],
        fields=[
            pa.field("p", packed.type, metadata={"lance-encoding:packed": "true"}),
            pa.field("s", pa.string()),
        ],
    )
    columns["packed struct in a struct"] = (within, {})
    for name in ("bool", "bool nulls"):
        columns[f"{name} full-zip"] = (
            plain[name],
            {"lance-encoding:structural-encoding": "fullzip"},
        )
    columns["packed struct of strings"] = (
        pa.StructArray.from_arrays(
            [pa.array(np.arange(NUM_ROWS)), plain["string"], plain["list of 4 float32"]],
            ["a", "b", "c"],
            mask=pa.array(np.arange(NUM_ROWS) % 7 == 0),
        ),
        {"lance-encoding:packed": "true"},
    )
    return columns


def not_written(name: str, version: str) -> bool:
    """Say whether pylance refuses to write the column in that version (file format, 7)."""
    maps = {"map", "map of lists", "list of maps"}
    in_2_2_only = {*maps, "lists of 3 structs", "packed struct of strings"}
    not_in_2_0 = {"struct nulls", "list of structs"}
    return (name in in_2_2_only and version != "2.2") or (name in not_in_2_0 and version == "2.0")
