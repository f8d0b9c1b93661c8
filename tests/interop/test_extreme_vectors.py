"""Cosine distances of vectors whose squares leave the range of float32."""

from __future__ import annotations

from typing import TYPE_CHECKING

import lance
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import lance_core
from tests.neighbour_checks import exact_distances

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

pytestmark = pytest.mark.interop

SCALES = (1.0, 1e-15, 1e-22, 1e-30, 1e-38, 1e15, 1e22, 1e37)
DIMENSION = 16


def write(path: Path) -> tuple[lance_core.Dataset, NDArray[np.float32]]:
    """Write vectors of every length that float32 has."""
    generator = np.random.default_rng(4)
    vectors = generator.standard_normal((400, DIMENSION))
    scaled = (vectors * np.resize(SCALES, (400, 1))).astype(np.float32)
    column = pa.FixedSizeListArray.from_arrays(pa.array(scaled.ravel()), DIMENSION)
    rows = pa.table({"id": np.arange(400), "v": column})
    return lance_core.write_dataset(str(path), rows), scaled


@pytest.mark.parametrize("scale", SCALES)
def test_the_length_of_vectors_and_queries_does_not_matter(tmp_path: Path, scale: float) -> None:
    dataset, vectors = write(tmp_path)
    query = (np.random.default_rng(5).standard_normal((2, DIMENSION)) * scale).astype(np.float32)
    true = np.array([exact_distances(vectors, each, "cosine") for each in query])
    for _ in range(3):  # later ones may be answered in other ways
        found = dataset.search(query, 400, metric="cosine", columns=["id"])
        for number in range(2):
            own = found.filter(pc.equal(found["query_index"], number))
            assert own.num_rows == 400
            expected = true[number][own["id"].to_numpy()]
            # The shortest are subnormal, of few bits each.
            np.testing.assert_allclose(own["_distance"].to_numpy(), expected, atol=1e-5)


@pytest.mark.parametrize("scale", SCALES[1:])
def test_an_index_is_searched_for_the_direction_of_a_query(tmp_path: Path, scale: float) -> None:
    generator = np.random.default_rng(6)
    vectors = generator.standard_normal((300, DIMENSION)).astype(np.float32)
    column = pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), DIMENSION)
    stored = lance.write_dataset(pa.table({"id": np.arange(300), "v": column}), str(tmp_path))
    stored.create_index("v", "IVF_FLAT", metric="cosine", num_partitions=2)
    dataset = lance_core.open_dataset(str(tmp_path))
    query = vectors[7] * np.float32(scale)
    found = dataset.search(query, 5, nprobes=2, columns=["id"])
    expected = dataset.search(vectors[7], 5, nprobes=2, columns=["id"])
    assert found["id"].to_pylist() == expected["id"].to_pylist()
