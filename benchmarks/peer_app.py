"""pylance behind the thinnest FastAPI route: the peer of the HTTP measurements.

It reads the raw body, answers Arrow or JSON and checks nothing, so that everything it spends is
pylance, the framework and the encoding. Searches run in Starlette's thread pool.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import lance
import numpy as np
import orjson
import pyarrow as pa
from fastapi import FastAPI, Request, Response
from lance.query import FullTextOperator, FullTextQuery, MatchQuery, PhraseQuery
from starlette.concurrency import run_in_threadpool

ROOT_VARIABLE = "LANCE_BENCH_ROOT"


def create_app() -> FastAPI:
    """Open every dataset below the root, then answer queries on them."""
    root = Path(os.environ[ROOT_VARIABLE])
    paths = [*root.glob("*.lance"), *root.glob("*/*.lance")]
    datasets = {
        "$".join(path.relative_to(root).with_suffix("").parts): lance.dataset(str(path))
        for path in paths
    }
    app = FastAPI()

    @app.get("/ready")
    async def ready() -> Response:
        return Response()

    @app.post("/v1/table/{name}/query")
    async def query(name: str, request: Request) -> Response:
        body = orjson.loads(await request.body())
        as_json = request.headers.get("accept") == "application/json"
        return await run_in_threadpool(_answer, datasets[name], body, as_json)

    return app


def _answer(dataset: lance.LanceDataset, body: dict[str, Any], as_json: bool) -> Response:
    table = _searched_texts(dataset, body) if "vector" not in body else _nearest(dataset, body)
    if as_json:
        return Response(orjson.dumps({"rows": table.to_pylist()}), media_type="application/json")
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    return Response(sink.getvalue().to_pybytes(), media_type="application/vnd.apache.arrow.file")


def _nearest(dataset: lance.LanceDataset, body: dict[str, Any]) -> pa.Table:
    return dataset.to_table(
        columns=[*body["columns"], "_distance"],
        nearest={
            "column": "vector",
            "q": np.array(body["vector"], np.float32),
            "k": body["k"],
            "nprobes": body["nprobes"],
            "refine_factor": body["refine_factor"],
        },
        filter=body.get("filter"),
        prefilter=True,
    )


def _searched_texts(dataset: lance.LanceDataset, body: dict[str, Any]) -> pa.Table:
    ((kind, node),) = body["full_text_query"]["structured_query"]["query"].items()
    if kind == "phrase":
        query: FullTextQuery = PhraseQuery(node["terms"], node["column"])
    else:
        operator = FullTextOperator[node["operator"].upper()]
        query = MatchQuery(node["terms"], node["column"], operator=operator)
    return dataset.to_table(
        columns=[*body["columns"], "_score"],
        full_text_query=query,
        limit=body["k"],
        filter=body.get("filter"),
        prefilter=True,
    )
