"""Vector index segments that we build over tables of pylance, and that it commits."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import lance
import numpy as np
import pyarrow as pa
from lance.dataset import Index, IndexFile

from lance_core.encodings.version import FileVersion
from lance_core.index.segment_files import SegmentFiles
from lance_core.index.vector.build.given_parameters import vector_parameters
from lance_core.index.vector.build.segment_builder import SegmentBuilder
from lance_core.index.vector.build.stored_rows import CodedRows, stored_rows
from lance_core.index.vector.build.train import train
from lance_core.index.vector.build.usable import usable_vectors
from lance_core.index.vector.segment import VectorSegment
from lance_core.io.open import open_store
from lance_core.io.scheduler import RangeScheduler
from lance_core.table.base_paths import Place

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from lance_core.index.segment_files import IndexDetails
    from lance_core.index.vector.build.model import VectorModel

MEMORY_BYTES = 64 << 20


def open_built(path: Path, built: BuiltSegment) -> VectorSegment:
    """Open a segment that no version names."""
    place = Place(RangeScheduler(open_store(str(path))), f"_indices/{built.uuid}")
    return VectorSegment.open(place, built.uuid)


def sorted_rows(segment: VectorSegment) -> CodedRows:
    """Return all coded rows by partition and row id."""
    parts = list(stored_rows(segment))
    row_ids = np.concatenate([each.row_ids for each in parts])
    partitions = np.concatenate([each.partitions for each in parts])
    order = np.lexsort((row_ids, partitions))
    columns = {
        name: np.concatenate([each.columns[name] for each in parts])[order]
        for name in parts[0].columns
    }
    return CodedRows(row_ids[order], partitions[order], columns)


@dataclass(frozen=True, eq=False)
class BuiltSegment:
    """Files of a segment that no version names."""

    uuid: str
    files: SegmentFiles
    details: IndexDetails


def train_on(
    path: Path, index_type: str, given: Mapping[str, Any] = MappingProxyType({})
) -> VectorModel:
    """Train with all vectors of the column ``v``."""
    table = lance.dataset(str(path)).to_table(columns=["v"], with_row_id=True)
    column = table["v"].combine_chunks()
    parameters = vector_parameters(index_type, column.type, given)
    vectors = usable_vectors(column, table["_rowid"].to_numpy(), parameters.metric)
    return train(vectors, parameters, len(vectors))


def write_segment(
    path: Path, model: VectorModel, version: str = "2.1", memory_bytes: int = MEMORY_BYTES
) -> BuiltSegment:
    """Write the files of a segment over all rows of the column ``v``."""
    name = str(uuid.uuid4())
    out = SegmentFiles(open_store(str(path)), f"_indices/{name}", FileVersion.of(version))
    with SegmentBuilder(model, out, memory_bytes) as builder:
        scanner = lance.dataset(str(path)).scanner(columns=["v"], with_row_id=True)
        for batch in scanner.to_batches():
            builder.add(batch.column("v"), batch.column("_rowid").to_numpy())
        return BuiltSegment(name, out, builder.finish())


def commit_by_pylance(path: Path, built: BuiltSegment) -> None:
    """Have pylance commit a segment over all fragments."""
    dataset = lance.dataset(str(path))
    covered: Any = {each.fragment_id for each in dataset.get_fragments()}
    field = dataset.lance_schema.field("v")
    assert field is not None
    index = Index(
        uuid=built.uuid,
        name="v_idx",
        fields=[field.id()],
        dataset_version=dataset.version,
        fragment_ids=covered,
        index_version=built.details.index_version,
        files=[IndexFile(each.path, each.size) for each in built.files.finished],
        index_details=(built.details.type_url, built.details.value),
    )
    operation = lance.LanceOperation.CreateIndex([index], [])
    lance.LanceDataset.commit(str(path), operation, read_version=dataset.version)


def vector_table(values: np.ndarray[Any, Any]) -> pa.Table:
    """Return a table with ``id`` and the vectors ``v``, of shape ``(n, d)``."""
    column = pa.FixedSizeListArray.from_arrays(pa.array(values.ravel()), values.shape[1])
    return pa.table({"id": np.arange(len(values)), "v": column})
