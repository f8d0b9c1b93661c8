"""Why a row is not in the answer to a query for words: the query is run again, and parts of it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from lance_core.errors import InvalidRequestError
from lance_core.query.request import ScanQuery
from lance_core.query.why_not import WhyNot
from lance_core.row_address import OFFSET_BITS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Literal

    from lance_core.query.query_result import QueryResult
    from lance_core.query.text_request import TextQuery
    from lance_core.query.why_not import WhyNotReason
    from lance_core.table.snapshot import Snapshot

_ROW_ID_BOUND = 2**64


class TextWhyNotFinder:
    """One query for words, asked about rows.

    Parameters
    ----------
    snapshot
        The version.
    run
        Answers queries at that version.
    request
        The query.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        run: Callable[[TextQuery | ScanQuery], QueryResult],
        request: TextQuery,
    ) -> None:
        self._snapshot = snapshot
        self._run = run
        self._request = replace(request, columns=("_rowid",))

    def find(self, row_id: int) -> WhyNot:
        """Return what keeps a row out of the answer.

        Raises
        ------
        InvalidRequestError
            That is no row id, or the query does not fit the table.
        """
        if not 0 <= row_id < _ROW_ID_BOUND:
            raise InvalidRequestError(f"{row_id} is no row id; they are 0 to 2^64 - 1")
        reason, detail = self._reason(row_id)
        return WhyNot(row_id, reason, detail)

    def _reason(self, row_id: int) -> tuple[WhyNotReason, Mapping[str, object]]:
        request = self._request
        wanted = None if request.k is None else request.offset + request.k
        ranked = self._run(replace(request, offset=0, k=wanted)).table
        ids, scores = ranked["_rowid"].to_pylist(), ranked["_score"].to_pylist()
        if row_id in ids:
            rank = ids.index(row_id) + 1
            detail = {"rank": rank, "score": scores[rank - 1]}
            return ("before_offset" if rank <= request.offset else "present"), detail
        if not self._has(f"_rowid = {row_id}", None):
            return self._absence(row_id), {}
        if request.prefilter and not self._passes(row_id):
            return "filtered", {"filter": request.filter}
        score = self._score(row_id, fast_search=request.fast_search)
        if score is None:
            if request.fast_search and self._score(row_id, fast_search=False) is not None:
                return "not_indexed", {
                    "cause": "no index covers it, and a fast search asks no more"
                }
            return "no_match", {}
        return self._behind(row_id, score, wanted)

    def _behind(
        self, row_id: int, score: float, wanted: int | None
    ) -> tuple[WhyNotReason, Mapping[str, object]]:
        """Tell what becomes of a row that has the words and passes the filter before the search."""
        plain = replace(self._request, offset=0, k=wanted)
        if not plain.prefilter:
            plain = replace(plain, filter=None, params=None)
        first = self._run(plain).table
        if row_id in first["_rowid"].to_pylist():
            return "filtered", {"filter": self._request.filter, "score": score}
        last = first["_score"].to_pylist()[-1] if first.num_rows > 0 else None
        return "beaten", {"score": score, "wanted": wanted, "last_score": last}

    def _score(self, row_id: int, *, fast_search: bool) -> float | None:
        """Return the score of one row, None if it has not what is looked for."""
        alone = replace(
            self._request,
            filter=f"_rowid = {row_id}",
            params=None,
            prefilter=True,
            offset=0,
            k=1,
            fast_search=fast_search,
        )
        scores = self._run(alone).table["_score"].to_pylist()
        return scores[0] if len(scores) > 0 else None

    def _passes(self, row_id: int) -> bool:
        text = self._request.filter
        given = self._request.params
        return text is None or self._has(f"({text}) AND _rowid = {row_id}", given)

    def _has(self, text: str, params: Mapping[str, object] | None) -> bool:
        query = ScanQuery(columns=("_rowid",), limit=1, filter=text, params=params)
        return bool(self._run(query).table.num_rows > 0)

    def _absence(self, row_id: int) -> Literal["unknown", "deleted"]:
        snapshot = self._snapshot
        if snapshot.has_stable_row_ids:
            return "deleted" if row_id < snapshot.manifest.next_row_id else "unknown"
        rows = {int(each.id): each.physical_rows for each in snapshot.fragments}
        fragment, offset = row_id >> OFFSET_BITS, row_id & ((1 << OFFSET_BITS) - 1)
        return "deleted" if offset < rows.get(fragment, 0) else "unknown"
