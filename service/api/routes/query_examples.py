"""What queries look like, for the OpenAPI document."""

from __future__ import annotations

QUERY_EXAMPLES: dict[str, dict[str, object]] = {
    "vector": {
        "summary": "By a vector",
        "value": {"vector": [0.1, 0.2, 0.3, 0.4], "k": 3, "filter": "price < 10"},
    },
    "words": {
        "summary": "By words, in all columns with a text index",
        "value": {"full_text_query": "red fox", "k": 3},
    },
    "phrase": {
        "summary": "By a phrase, in one column",
        "value": {"full_text_query": {"query": '"red fox"', "columns": ["text"]}, "k": 3},
    },
    "tree": {
        "summary": "By a tree of text queries",
        "value": {
            "full_text_query": {
                "query": {
                    "boolean": {
                        "must": [{"match": {"terms": "foks", "column": "text", "fuzziness": 2}}],
                        "must_not": [{"phrase": {"terms": "red fox", "column": "text"}}],
                    }
                }
            }
        },
    },
    "namespace": {
        "summary": "By words, as clients of Lance Namespace ask",
        "value": {
            "k": 3,
            "vector": {},
            "full_text_query": {"string_query": {"query": "red fox", "columns": ["text"]}},
        },
    },
    "hybrid": {
        "summary": "By a vector and by words, as one answer",
        "value": {
            "vector": [0.1, 0.2, 0.3, 0.4],
            "full_text_query": "red fox",
            "fusion": {"weights": [0.7, 0.3]},
            "k": 3,
        },
    },
    "plain": {
        "summary": "Rows that pass a filter, in an order",
        "value": {
            "filter": "price < 10",
            "order_by": [{"column_name": "price", "ascending": False}],
            "columns": ["id", "price"],
        },
    },
}
"""Bodies by name."""
