"""What a query does, did, or leaves out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_core.dataset.reads import DatasetReads
from lance_core.query.deadline import NO_DEADLINE, Deadline
from lance_core.query.explain import PlanReport

if TYPE_CHECKING:
    from lance_core.query.engine import Request
    from lance_core.query.request import VectorQuery
    from lance_core.query.text_request import TextQuery
    from lance_core.query.why_not import WhyNot


class DatasetExplained(DatasetReads):
    """What queries on a dataset do, and why a row is not in their answers."""

    def why_not(
        self, request: VectorQuery | TextQuery, row_id: int, deadline: Deadline = NO_DEADLINE
    ) -> WhyNot:
        """Tell what keeps a row out of the answer to a query, or where it stands in it.

        Runs the query, and parts of it; may look through a whole index for the row.

        Parameters
        ----------
        request
            A query with one vector, or by one row; or one for words.
        row_id
            The row, by its ``_rowid``.
        deadline
            Looked at between pieces of work.

        Raises
        ------
        InvalidRequestError
            The request does not fit the schema, has several vectors, or that is no row id.
        UnsupportedFeatureError
            Rows hold lists of vectors, and an index was searched for this one.
        """
        return self._engine.why_not(request, row_id, deadline)

    def explain(self, request: Request, deadline: Deadline = NO_DEADLINE) -> str:
        """Return what `run` would do, as text."""
        return self.explain_plan(request, deadline).text()

    def analyze(self, request: Request, deadline: Deadline = NO_DEADLINE) -> str:
        """Run a request and return what was done, as text."""
        return self.analyze_plan(request, deadline).text()

    def explain_plan(self, request: Request, deadline: Deadline = NO_DEADLINE) -> PlanReport:
        """Return what `run` would do, as a tree for programs; filters are judged for that."""
        return PlanReport.of_plan(self._engine.plan(request, deadline), self.version)

    def analyze_plan(self, request: Request, deadline: Deadline = NO_DEADLINE) -> PlanReport:
        """Run a request and return what was done, as a tree for programs."""
        return PlanReport.of_run(self._engine.run(request, deadline, measured=True))
