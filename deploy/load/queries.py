"""The queries of a load test: recorded ones, or some made up from what a table holds."""

from __future__ import annotations

import json
from itertools import cycle
from typing import TYPE_CHECKING, Any
from urllib.request import Request, urlopen

if TYPE_CHECKING:
    from pathlib import Path

Query = tuple[str, bytes]
"""Path and body of a request."""
Body = dict[str, Any]

_NUM_ROWS = 400
_PAIRS_OF_WORDS = ("small animal", "running water", "bright light", "part of a plant", "to move")


def recorded(path: Path) -> list[Query]:
    """Return what a file of JSON lines records.

    Each line is an object with ``path``, such as ``/v1/table/NAME/query``, and ``body``.
    """
    lines = [json.loads(line) for line in path.read_text().splitlines() if line.strip() != ""]
    return [(each["path"], json.dumps(each["body"]).encode()) for each in lines]


def written(queries: list[Query]) -> str:
    """Return the text of a file that `recorded` reads."""
    lines = [json.dumps({"path": path, "body": json.loads(body)}) for path, body in queries]
    return "\n".join(lines) + "\n"


def made_up(url: str, table: str, headers: dict[str, str]) -> list[Query]:
    """Return neighbours of rows all over a table, filtered and not, and words if it has an index.

    Of five queries one is plain, with a filter, and one asks for words.
    """
    base = f"/v1/table/{table}"
    kinds = {each["index_type"] for each in ask(f"{url}{base}/index/list", {}, headers)["indexes"]}
    kinds_of_query = [_filtered, _nearest_of_some, _nearest, _nearest, _nearest]
    if "FTS" in kinds:
        kinds_of_query[2] = _with_words
    bodies = [
        make(number, row_id)
        for number, (make, row_id) in enumerate(
            zip(cycle(kinds_of_query), _row_ids(url, base, headers), strict=False)
        )
    ]
    return [(f"{base}/query", json.dumps(body).encode()) for body in bodies]


def _nearest(_: int, row_id: int) -> Body:
    return {"k": 10, "row_id": row_id}


def _nearest_of_some(number: int, row_id: int) -> Body:
    return {"k": 10, "row_id": row_id, "filter": f"_rowid % 3 = {number % 3}"}


def _filtered(number: int, _: int) -> Body:
    return {"k": 20, "filter": f"_rowid % 97 = {number % 97}"}


def _with_words(number: int, _: int) -> Body:
    words = _PAIRS_OF_WORDS[number % len(_PAIRS_OF_WORDS)]
    return {"k": 10, "full_text_query": {"query": words}}


def _row_ids(url: str, base: str, headers: dict[str, str]) -> list[int]:
    """Return ids of live rows, evenly spread over the table."""
    num_rows = ask(f"{url}{base}/count_rows", {}, headers)
    step = max(1, num_rows // _NUM_ROWS)
    body = {"k": _NUM_ROWS, "filter": f"_rowid % {step} = 0", "columns": ["_rowid"]}
    return [row["_rowid"] for row in ask(f"{url}{base}/query", body, headers)["rows"]]


def ask(url: str, body: Body, headers: dict[str, str]) -> Any:  # noqa: ANN401 - JSON
    """Post JSON and return the JSON answer."""
    headers = {"Content-Type": "application/json", "Accept": "application/json", **headers}
    request = Request(url, json.dumps(body).encode(), headers)  # noqa: S310 - the tested server
    with urlopen(request, timeout=30) as answer:  # noqa: S310 - as above
        return json.load(answer)
