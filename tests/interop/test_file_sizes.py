"""Our files are hardly larger than pylance's, whatever the values are like."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from benchmarks.file_sizes import MAX_RATIO, file_sizes
from lance_core.encodings.version import FileVersion
from tests.lance_leaves import SHAPES, TEXTS, leaf

pytestmark = pytest.mark.interop
NUM_ROWS = 40_000
NUMBERS = {
    "int32": pa.int32(),
    "int64": pa.int64(),
    "uint8": pa.uint8(),
    "float": pa.float32(),
    "double": pa.float64(),
    "half": pa.float16(),
    "timestamp": pa.timestamp("us", "UTC"),
    "date": pa.date32(),
    "bool": pa.bool_(),
    "decimal": pa.decimal128(18, 2),
}
STRINGS = {"string": pa.string(), "large": pa.large_string(), "binary": pa.binary()}
MANY_BYTES = {"huge": 200, "long": 5_000}


def with_nulls(values: pa.Array) -> pa.Array:
    mask = np.random.default_rng(2).random(len(values)) < 0.1
    return values.take(pa.array(np.arange(len(values)), mask=mask))


def nested() -> dict[str, pa.Array]:
    rng = np.random.default_rng(3)
    offsets = pa.array(np.concatenate([[0], np.cumsum(rng.integers(0, 6, NUM_ROWS))]), pa.int32())
    count = offsets[-1].as_py()
    numbers = leaf(pa.int32(), count, "small", rng)
    structs = pa.StructArray.from_arrays(
        [numbers, with_nulls(leaf(pa.string(), count, "prose", rng))], ["a", "b"]
    )
    vectors = pa.FixedSizeListArray.from_arrays(
        leaf(pa.float32(), NUM_ROWS * 16, "random", rng), 16
    )
    lists = pa.ListArray.from_arrays(offsets, numbers)
    return {
        "lists": lists,
        "lists of nulls": pa.ListArray.from_arrays(offsets, with_nulls(numbers)),
        "lists of words": pa.ListArray.from_arrays(offsets, leaf(pa.string(), count, "few", rng)),
        "lists of structs": pa.ListArray.from_arrays(offsets, structs),
        "structs of lists": pa.StructArray.from_arrays([lists, vectors], ["a", "b"]),
        "maps": pa.MapArray.from_arrays(offsets, leaf(pa.string(), count, "few", rng), numbers),
        "vectors": vectors,
        "labels": leaf(pa.string(), NUM_ROWS, "few", rng).dictionary_encode(),
    }


def columns() -> dict[str, pa.Array]:
    rng = np.random.default_rng(1)
    found = {
        f"{shape} {name}": leaf(kind, NUM_ROWS, shape, rng)
        for name, kind in NUMBERS.items()
        for shape in SHAPES
    }
    found |= {
        f"{shape} {name}": leaf(kind, MANY_BYTES.get(shape, NUM_ROWS), shape, rng)
        for name, kind in STRINGS.items()
        for shape in TEXTS
    }
    found |= nested()
    return found | {f"{name} with nulls": with_nulls(found[name]) for name in list(found)[::5]}


COLUMNS = columns()


@pytest.mark.parametrize("version", [FileVersion.V2_1, FileVersion.V2_2], ids=["2.1", "2.2"])
@pytest.mark.parametrize("name", COLUMNS)
def test_a_column_is_hardly_larger_than_pylance_writes_it(name: str, version: FileVersion) -> None:
    column = COLUMNS[name]
    if version is FileVersion.V2_1 and pa.types.is_map(column.type):
        pytest.skip("2.1 has no maps")
    sizes = file_sizes(pa.table({"c": column}), version)
    assert sizes.ours <= MAX_RATIO * sizes.peer
