"""How answers tell of indices, in the names that both families of clients read.

HTTP page, section 5.6: one name of a type that LanceDB's clients do not know makes them reject a
whole list.
"""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import orjson

if TYPE_CHECKING:
    from lance_core.query.index_statistics import IndexStatistics

_UNKNOWN = "Unknown"
_TYPES = {
    **{f"IVF_{each}": f"IVF_{each}" for each in ("FLAT", "SQ", "PQ", "RQ")},
    **{f"IVF_HNSW_{each}": f"IVF_HNSW_{each}" for each in ("FLAT", "SQ", "PQ")},
    **{each: each for each in ("BTREE", "BITMAP", "LABEL_LIST", "NGRAM", "ZONEMAP", "RTREE")},
    "BLOOMFILTER": "BLOOM_FILTER",
    "INVERTED": "FTS",
}


def index_entry(index: IndexStatistics) -> dict[str, object]:
    """Return the entry of an index in ``index/list``."""
    return {
        "index_name": index.name,
        "index_uuid": index.segments[-1].uuid,
        "columns": index.columns,
        "status": "SUCCEEDED",
        "index_type": _type_of(index),
        "type_url": index.type_url,
        "num_indexed_rows": index.num_indexed_rows,
        "num_unindexed_rows": index.num_unindexed_rows,
        "size_bytes": index.num_bytes,
        "num_segments": len(index.segments),
        "created_at": _time_of(index),
        "index_version": index.index_version,
        "index_details": _details_of(index),
    }


def index_statistics(index: IndexStatistics) -> dict[str, object]:
    """Return the answer of ``index/{name}/stats``."""
    return {
        "index_type": _type_of(index),
        "distance_type": index.metric,
        "num_indexed_rows": index.num_indexed_rows,
        "num_unindexed_rows": index.num_unindexed_rows,
        "num_indices": len(index.segments),
    }


def _details_of(index: IndexStatistics) -> str:
    """Return how an index of texts makes tokens, as LanceDB's clients read it; else nothing.

    Notes
    -----
    HTTP page, section 5: clients make tokens of queries by it. The names are those of pylance's
    ``IndexDescription.details``, which has no stop words of one's own.
    """
    if index.text is None:
        return "{}"
    granularity = "list_element" if index.text.by_element else "row"
    told = {**asdict(index.text.parameters), "document_granularity": granularity}
    return orjson.dumps(told).decode()


def _type_of(index: IndexStatistics) -> str:
    return _TYPES.get(index.index_type, _UNKNOWN)


def _time_of(index: IndexStatistics) -> str | None:
    if index.created_at_ms is None:
        return None
    try:
        return datetime.fromtimestamp(index.created_at_ms / 1e3, UTC).isoformat()
    except (ValueError, OverflowError, OSError):  # nobody's calendar has it
        return None
