"""Parts of the OpenAPI document that many routes share: headers, errors, what bodies look like."""

from __future__ import annotations

from typing import Any

_UUID = "574fd648-6014-4f7a-ac00-249b235ff518"

HEADERS: dict[str, dict[str, Any]] = {
    "Database": {
        "name": "x-lancedb-database",
        "in": "header",
        "schema": {"type": "string"},
        "description": "Database, where the service has several; else the first part of the"
        " identifier names it. A service with a single root does not look at it.",
    },
    "DatabasePrefix": {
        "name": "x-lancedb-database-prefix",
        "in": "header",
        "schema": {"type": "string"},
        "description": "Folder of the database that all identifiers are below of, `a/b`.",
    },
    "MinVersion": {
        "name": "x-lancedb-min-version",
        "in": "header",
        "schema": {"type": "string"},
        "description": "Look for a newer version where the one that is held is older than this.",
    },
    "MinReadVersion": {
        "name": "x-lancedb-min-read-version",
        "in": "header",
        "schema": {"type": "string"},
        "description": "The same; clients send the `x-lancedb-version` of their last answer.",
    },
    "MinTimestamp": {
        "name": "x-lancedb-min-timestamp",
        "in": "header",
        "schema": {"type": "string"},
        "description": "RFC 3339: look for a newer version where the last look was before this.",
    },
    "Timeout": {
        "name": "x-request-timeout-ms",
        "in": "header",
        "schema": {"type": "integer", "minimum": 0},
        "description": "Time allowed in all, as `timeout_ms`; the shorter one counts.",
    },
    "RequestId": {
        "name": "x-request-id",
        "in": "header",
        "schema": {"type": "string"},
        "description": "Name of the request in the log; one is made where it is absent.",
    },
    "IfNoneMatch": {
        "name": "if-none-match",
        "in": "header",
        "schema": {"type": "string"},
        "description": "The `etag` of an earlier answer: 304 if this one would be the same.",
    },
}
"""Header parameters by name in the document."""

OF_TABLES = (
    "Database",
    "DatabasePrefix",
    "MinVersion",
    "MinReadVersion",
    "MinTimestamp",
    "Timeout",
)
OF_ALL = ("RequestId",)


def header_references(*names: str) -> list[dict[str, str]]:
    """Return what refers to header parameters."""
    return [{"$ref": f"#/components/parameters/{name}"} for name in names]


def _problem(error: str, code: int, status: int, title: str) -> dict[str, object]:
    return {
        "error": error,
        "code": code,
        "detail": None,
        "instance": _UUID,
        "title": title,
        "status": status,
    }


PROBLEM: dict[str, Any] = {
    "description": "An error; `code` is the Lance Namespace error code, `instance` the request id."
    " Errors of the server tell no more than that.",
    "content": {
        "application/json": {
            "schema": {"$ref": "#/components/schemas/ProblemBody"},
            "examples": {
                name: {"summary": summary, "value": _problem(*value)}
                for name, summary, value in (
                    (
                        "bad_request",
                        "A member is wrong, or a limit exceeded",
                        ("k is 2000000, the limit is 1000000 (setting max_k)", 13, 400,
                         "Bad Request"),
                    ),
                    (
                        "unknown_column",
                        "A column that is not there",
                        ('unknown column "prise" in the filter at character 1; columns are: id,'
                         " price, vec", 12, 400, "Bad Request"),
                    ),
                    (
                        "no_key",
                        "No valid key",
                        ("no valid key; send it as x-api-key or as Authorization: Bearer", 16, 401,
                         "Unauthorized"),
                    ),
                    (
                        "no_right",
                        "A place or a table that the caller may not see",
                        ("the name leads outside the served roots (through a symbolic link)", 15,
                         403, "Forbidden"),
                    ),
                    ("no_table", "No such table", ("table 't1' not found", 4, 404, "Not Found")),
                    (
                        "no_version",
                        "No such version; of a tag the code is 8, of a branch 22",
                        ("table 't1': there is no version 99; it has 4 versions, 1 to 4", 11, 404,
                         "Not Found"),
                    ),
                    (
                        "not_yet",
                        "Not supported by this release",
                        ("/v1/table/t1/insert is not supported by this release", 0, 406,
                         "Not Acceptable"),
                    ),
                    (
                        "too_late",
                        "The time allowed ran out",
                        ("the time allowed ran out while searching", 17, 408, "Request Timeout"),
                    ),
                    (
                        "busy",
                        "Too many requests wait; `retry-after` says when to come again",
                        ("1024 requests are waiting already (setting max_queued_requests)", 21, 429,
                         "Too Many Requests"),
                    ),
                    (
                        "fault",
                        "A fault of the server",
                        ("Internal Server Error", 18, 500, "Internal Server Error"),
                    ),
                )
            },
        }
    },
}  # fmt: skip
"""The answer of every error."""

_VECTOR = [0.12, -0.5, 0.33, 0.9]
_QUERY = {"vector": _VECTOR, "k": 3, "columns": ["id"], "filter": "price < 10"}
_FIELD = {"name": "id", "nullable": True, "type": {"type": "int64"}}
_SEGMENT_ID = "8eda338a-57ce-4907-9648-d3481c2c56a4"

EXAMPLES: dict[str, object] = {
    "IdBody": {"id": ["t1"]},
    "VersionedBody": {"version": 5},
    "DescribeBody": {"version": 5},
    "CountBody": {"predicate": "price < $most", "params": {"most": 10}},
    "ExplainBody": {"query": _QUERY},
    "AnalyzeBody": _QUERY,
    "WhyNotBody": {**_QUERY, "row": {"row_id": 4294967334}},
    "IndexListBody": {"version": 5},
    "PrewarmBody": {"timeout_ms": 60000},
    "TagBody": {"tag": "v1"},
    "PageCacheBody": {"columns": ["vec"]},
    "RecallBody": {"column": "vec", "k": 10, "sample": 50, "nprobes": 4},
    "Tables": {"tables": ["t1", "t2"], "page_token": None},
    "Namespaces": {"namespaces": ["a"], "page_token": None},
    "NamespaceDescription": {"properties": None},
    "TableDescription": {
        "table": "t1",
        "namespace": [],
        "version": 12,
        "location": "s3://bucket/root/t1.lance",
        "table_uri": "s3://bucket/root/t1.lance",
        "schema": {"fields": [_FIELD], "metadata": {}},
        "stats": {"num_deleted_rows": 0, "num_fragments": 2},
        "metadata": {},
        "properties": None,
        "storage_options": None,
        "managed_versioning": False,
        "is_only_declared": False,
    },
    "Versions": {
        "versions": [
            {
                "version": 7,
                "manifest_path": "t1.lance/_versions/18446744073709551608.manifest",
                "manifest_size": 1167,
                "e_tag": None,
                "timestamp": "2026-11-27T21:08:42.160000+00:00",
                "timestamp_millis": 1795813722160,
                "metadata": {},
            }
        ],
        "page_token": None,
    },
    "TagVersion": {"version": 1, "branch": None},
    "Branches": {
        "branches": {
            "dev": {
                "parentBranch": None,
                "parentVersion": 28,
                "createAt": 1700000000,
                "manifestSize": 811,
                "metadata": {},
            }
        }
    },
    "TableStatistics": {
        "total_bytes": 14641,
        "num_rows": 300,
        "num_indices": 1,
        "fragment_stats": {
            "num_fragments": 1,
            "num_small_fragments": 1,
            "lengths": {
                "min": 300, "max": 300, "mean": 300, "p25": 300, "p50": 300, "p75": 300, "p99": 300,
            },
        },
    },
    "Coverage": {
        "version": 4,
        "fragments": [{"id": 0, "rows": 300, "deleted": 6}, {"id": 1, "rows": 20, "deleted": 0}],
        "indices": [
            {
                "name": "vec_idx",
                "columns": ["vec"],
                "segments": [
                    {"uuid": _SEGMENT_ID, "type": "IVF_PQ", "usable": True, "reason": None}
                ],
                "covered": [0],
                "gaps": [
                    {"fragment": 1, "reason": "written after the index was built or extended"}
                ],
            }
        ],
    },
    "Indices": {
        "indexes": [
            {
                "index_name": "vec_idx",
                "index_uuid": _SEGMENT_ID,
                "columns": ["vec"],
                "status": "SUCCEEDED",
                "index_type": "IVF_PQ",
                "type_url": "/lance.index.pb.VectorIndexDetails",
                "num_indexed_rows": 300,
                "num_unindexed_rows": 20,
                "size_bytes": 4926,
                "num_segments": 1,
                "created_at": "2026-11-27T21:08:42.048000+00:00",
                "index_version": 1,
                "index_details": "{}",
            }
        ],
        "page_token": None,
    },
    "IndexStatistics": {
        "index_type": "IVF_PQ",
        "distance_type": "l2",
        "num_indexed_rows": 300,
        "num_unindexed_rows": 20,
        "num_indices": 1,
    },
    "PrewarmAnswer": {
        "version": 4,
        "index": "vec_idx",
        "is_complete": True,
        "stopped": None,
        "partitions": 64,
        "partitions_total": 64,
        "rows": 300,
        "bytes": 20480,
        "bytes_read": 16384,
        "store_requests": 3,
        "elapsed_ms": 12.5,
        "skipped": [],
    },
    "RecallAnswer": {
        "version": 4,
        "column": "vec",
        "recall": 0.96,
        "sample": 50,
        "k": 10,
        "p50_ms": 0.8,
        "exact_p50_ms": 3.4,
    },
    "PageCacheAnswer": {
        "version": 4,
        "columns": ["vec"],
        "rows": 300,
        "bytes_read": 19200,
        "store_requests": 1,
        "elapsed_ms": 2.5,
    },
}  # fmt: skip
"""One value of each body and answer, by the name of its schema."""
