"""Searching by a vector and by words at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lance_core.dataset.query_arguments import answer_columns, as_vectors
from lance_core.dataset.reads import DatasetReads
from lance_core.errors import InvalidRequestError
from lance_core.index.text.queries import text_query
from lance_core.query.fusion import RRF
from lance_core.query.hybrid_request import HybridQuery
from lance_core.query.request import VectorQuery
from lance_core.query.text_request import TextQuery

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pyarrow as pa
    from numpy.typing import ArrayLike

    from lance_core.index.text.queries import TextNode
    from lance_core.query.fusion import Fusion

_BY_PLACES = RRF()


class DatasetHybrid(DatasetReads):
    """What is found by a vector and by words at once."""

    def search_hybrid(
        self,
        vector: ArrayLike | None,
        query: str | TextNode,
        k: int | None = 10,
        *,
        row_id: int | None = None,
        column: str | None = None,
        columns: Sequence[str] | Mapping[str, str] | None = None,
        fusion: Fusion = _BY_PLACES,
        metric: str | None = None,
        nprobes: int | None = None,
        refine_factor: int | None = None,
        ef: int | None = None,
        offset: int = 0,
        use_index: bool = True,
        fast_search: bool = False,
        with_row_id: bool = False,
        filter: str | None = None,
        params: Mapping[str, object] | None = None,
        prefilter: bool = True,
    ) -> pa.Table:
        """Find the rows nearest to a vector, and those whose texts fit some words, as one answer.

        Both searches look for ``offset + k`` rows, which are then ranked by their relevance.

        Parameters
        ----------
        vector, column, metric, nprobes, refine_factor, ef, use_index
            See `search`; where rows hold lists, ``vector`` may be several ones.
        query
            See `search_text`.
        k
            Rows wanted; None = all that are found by either.
        row_id
            Instead of ``vector``, which is None then: the id of a row whose stored vector counts.
        columns
            Columns of the answer, or expressions by name, which may use ``_distance``, ``_score``
            and ``_relevance_score``; None = all. These three are added; the first two are null
            where a search did not find the row.
        fusion
            ``RRF``: by places in both rankings, as clients of LanceDB do it. ``WeightedFusion``: by
            distances and scores.
        offset
            Rows to skip of those of both.
        fast_search
            True: only rows that an index covers, of vectors and of texts each.
        with_row_id
            Add the column ``_rowid``.
        filter, params, prefilter
            See `search`; they count for both.

        Returns
        -------
        pyarrow.Table
            Most relevant rows first, ties by row address.

        Raises
        ------
        InvalidRequestError
            A parameter is wrong in itself or does not fit the schema.
        """
        if (vector is None) == (row_id is None):
            raise InvalidRequestError("give either a vector or a row_id")
        nearest = VectorQuery(
            vectors=None if vector is None else np.atleast_2d(as_vectors(vector)),
            row_ids=None if row_id is None else (row_id,),
            column=column,
            metric=metric,
            min_probes=nprobes,
            max_probes=nprobes,
            refine_factor=refine_factor,
            ef=ef,
            use_index=use_index,
            fast_search=fast_search,
            filter=filter,
            params=params,
            prefilter=prefilter,
        )
        matching = TextQuery(
            query=text_query(query) if isinstance(query, str) else query,
            fast_search=fast_search,
            filter=filter,
            params=params,
            prefilter=prefilter,
        )
        request = HybridQuery(
            nearest,
            matching,
            k=k,
            offset=offset,
            columns=answer_columns(columns),
            with_row_id=with_row_id,
            fusion=fusion,
        )
        return self.run(request).table
