"""Full-text search through both servers, over keep-alive connections."""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.cases import K
from benchmarks.load import build_request, run_load
from benchmarks.over_http import measure_server
from benchmarks.report import throughput_row, timing_rows
from benchmarks.servers import start_ours, start_peer
from benchmarks.summary import interleave

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from benchmarks.report import Row
    from benchmarks.text_engines import TextAsk
    from benchmarks.text_sets import Texts

CONNECTIONS = (1, 8)


def measure_text_over_http(
    texts: Texts, asks: Mapping[str, Sequence[TextAsk]], num_blocks: int
) -> list[Row]:
    """Return latency, server CPU and throughput of queries of each name, asked again and again."""
    rows: list[Row] = []
    with ExitStack() as stack:
        logs = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        servers = (
            stack.enter_context(start_ours(texts.root, logs / "ours.log")),
            stack.enter_context(start_peer(texts.root, logs / "peer.log")),
        )
        ours, peer = servers
        for name, some in asks.items():
            requests = [build_request(texts.indexed.stem, _members(ask), "arrow") for ask in some]
            for server in servers:
                run_load(server.port, requests, 2)  # fills both caches
            for num_connections in CONNECTIONS:
                label = f"HTTP arrow, text, {name}, {num_connections} conn"
                print(label, flush=True)
                blocks = interleave(
                    partial(measure_server, ours, num_connections),
                    partial(measure_server, peer, num_connections),
                    [requests] * num_blocks,
                )
                rows += [*timing_rows(label, *blocks), throughput_row(label, *blocks, None)]
    return rows


def _members(ask: TextAsk) -> dict[str, object]:
    node: dict[str, object] = {"column": "text", "terms": ask.words}
    if ask.kind != "phrase":
        node["operator"] = ask.kind.capitalize()
    kind = "phrase" if ask.kind == "phrase" else "match"
    query = {"structured_query": {"query": {kind: node}}}
    members: dict[str, object] = {"full_text_query": query, "k": K, "columns": ["id"]}
    return members if ask.filter is None else {**members, "filter": ask.filter}
