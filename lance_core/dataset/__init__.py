"""The face of the library: a dataset at one version, to search, scan, take from and change."""

from lance_core.dataset.face import Dataset
from lance_core.dataset.opening import open_dataset, write_dataset
from lance_core.operations.alter_columns import ColumnChange

__all__ = ["ColumnChange", "Dataset", "open_dataset", "write_dataset"]
