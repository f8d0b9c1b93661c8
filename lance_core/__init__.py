"""An independent implementation of the Lance table format, file format and indices."""

from lance_core.dataset import ColumnChange, Dataset, open_dataset, write_dataset
from lance_core.errors import LanceError
from lance_core.operations.new_index import NewIndex
from lance_core.query.query_result import QueryResult
from lance_core.query.request import ScanQuery, VectorQuery
from lance_core.query.session import Session
from lance_core.scan.ordering import OrderBy

__all__ = [
    "ColumnChange",
    "Dataset",
    "LanceError",
    "NewIndex",
    "OrderBy",
    "QueryResult",
    "ScanQuery",
    "Session",
    "VectorQuery",
    "open_dataset",
    "write_dataset",
]
