"""Valid files of every kind, small and of several pages, for damage to be done to."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import lance
import numpy as np
import pyarrow as pa

from tests.lance_cases import LanceCase
from tests.lance_columns import VERSIONS, not_written, sample_columns
from tests.pylance_files import write_with_pylance

_NUM_ROWS = 400
_PAGE_ROWS = 137
_MANY = {"binary huge": 3, "list that spans chunks": 5}
_VECTOR_INDICES = ("IVF_FLAT", "IVF_PQ", "IVF_SQ", "IVF_HNSW_PQ", "IVF_HNSW_SQ", "IVF_RQ")
_SCALAR_INDICES: dict[str, Any] = {
    "id": "BTREE",
    "kind": "BITMAP",
    "text": "INVERTED",
    "price": "ZONEMAP",
}


def write_corpus(folder: Path) -> None:
    """Write all files into a folder; names say what they hold."""
    for version in VERSIONS:
        for name, (column, metadata) in {**sample_columns(), **_others()}.items():
            if not_written(name, version):
                continue
            field = pa.field("c", column.type, metadata=metadata)
            rows = column.slice(0, _MANY.get(name, _NUM_ROWS))
            table = pa.table([rows], schema=pa.schema([field]))
            case = LanceCase(table, version, _PAGE_ROWS)
            write_with_pylance(case, folder / f"{version} {name}.lance")
    _write_index_files(folder)


def _others() -> dict[str, tuple[pa.Array, dict[str, str]]]:
    rows = range(_NUM_ROWS)
    blobs = pa.array([None if i % 7 == 0 else b"x" * i for i in rows], pa.large_binary())
    texts = pa.array([f'{{"a": [{i}, null, "b"]}}' for i in rows], pa.json_())
    empty = pa.array([None if i % 7 == 0 else b"" for i in rows], pa.binary(0))
    return {
        "blob": (blobs, {"lance-encoding:blob": "true"}),
        "json": (texts, {}),
        "no bytes": (empty, {}),
        "lists of no bytes": (
            pa.array([[b"", None][: i % 3] for i in rows], pa.list_(empty.type)),
            {},
        ),
        "pairs of no bytes": (pa.array([[b"", None] for _ in rows], pa.list_(empty.type, 2)), {}),
    }


def _write_index_files(folder: Path) -> None:
    rng = np.random.default_rng(5)
    num_rows = 600
    vectors = rng.standard_normal(num_rows * 16).astype(np.float32)
    table = pa.table(
        {
            "id": pa.array(rng.permutation(num_rows)),
            "kind": [f"kind {index % 5}" for index in range(num_rows)],
            "text": [f"some words and {index % 50} more" for index in range(num_rows)],
            "price": rng.random(num_rows),
            "vec": pa.FixedSizeListArray.from_arrays(pa.array(vectors), 16),
        }
    )
    with TemporaryDirectory() as place:
        dataset = lance.write_dataset(table, f"{place}/scalar.lance")
        for column, kind in _SCALAR_INDICES.items():
            dataset.create_scalar_index(column, kind)
        for kind in _VECTOR_INDICES:
            options: dict[str, Any] = {"num_sub_vectors": 4} if kind.endswith("PQ") else {}
            dataset = lance.write_dataset(table, f"{place}/{kind}.lance")
            dataset.create_index("vec", kind, num_partitions=2, metric="l2", **options)
        for path in sorted(Path(place).glob("*.lance/_indices/*/*")):
            if path.suffix in {".lance", ".idx"}:
                kind = path.relative_to(place).parts[0].removesuffix(".lance")
                (folder / f"{kind} {path.name}").write_bytes(path.read_bytes())
