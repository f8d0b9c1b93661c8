"""An independent implementation of the Lance table format, file format and indices."""

from lance_core.dataset import ColumnChange, Dataset, open_dataset, write_dataset
from lance_core.errors import LanceError
from lance_core.index.text.queries import (
    BooleanQuery,
    BoostQuery,
    CombinedFieldsQuery,
    MatchQuery,
    MultiMatchQuery,
    PhraseQuery,
    text_query,
)
from lance_core.operations.new_index import NewIndex
from lance_core.query.fusion import WeightedFusion
from lance_core.query.hybrid_request import HybridQuery
from lance_core.query.query_result import QueryResult
from lance_core.query.request import ScanQuery, VectorQuery
from lance_core.query.session import Session
from lance_core.query.text_request import TextQuery
from lance_core.scan.ordering import OrderBy

__all__ = [
    "BooleanQuery",
    "BoostQuery",
    "ColumnChange",
    "CombinedFieldsQuery",
    "Dataset",
    "HybridQuery",
    "LanceError",
    "MatchQuery",
    "MultiMatchQuery",
    "NewIndex",
    "OrderBy",
    "PhraseQuery",
    "QueryResult",
    "ScanQuery",
    "Session",
    "TextQuery",
    "VectorQuery",
    "WeightedFusion",
    "open_dataset",
    "text_query",
    "write_dataset",
]
