"""Locust users that ask recorded or made-up queries of a running service.

    locust -f deploy/load/locustfile.py --host http://127.0.0.1:8000

Environment: ``LOAD_QUERIES``, a file of JSON lines with ``path`` and ``body``; without it,
queries are made up from the table ``LOAD_TABLE`` (default ``wordnet``); ``LOAD_API_KEY``.
"""

from __future__ import annotations

import os
import sys
from itertools import count
from pathlib import Path

from locust import FastHttpUser, constant, task

sys.path.insert(0, str(Path(__file__).parent))  # Locust loads this file, and no package

from queries import Query, made_up, recorded

_HEADERS = {"Content-Type": "application/json", "Accept": "application/json"}
_USERS = count()


class Reader(FastHttpUser):
    """Asks one query after the other, as fast as they are answered."""

    wait_time = constant(0)

    def on_start(self) -> None:
        """Take the queries, each user from another place on."""
        key = os.environ.get("LOAD_API_KEY", "")
        self._headers = {**_HEADERS, **({"x-api-key": key} if key != "" else {})}
        self._queries = _queries(self.host or "", self._headers)
        self._next = count(next(_USERS) * 37)

    @task
    def ask(self) -> None:
        """Ask the next query; every status but 200 counts as a failure."""
        path, body = self._queries[next(self._next) % len(self._queries)]
        self.client.post(path, data=body, headers=self._headers)


def _queries(url: str, headers: dict[str, str]) -> list[Query]:
    file = os.environ.get("LOAD_QUERIES", "")
    if file != "":
        return recorded(Path(file))
    return made_up(url, os.environ.get("LOAD_TABLE", "wordnet"), headers)
