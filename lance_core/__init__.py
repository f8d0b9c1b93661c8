"""An independent implementation of the Lance table format, file format and indices."""

from lance_core.dataset import Dataset, open_dataset
from lance_core.query.session import Session

__all__ = ["Dataset", "Session", "open_dataset"]
