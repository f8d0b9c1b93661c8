"""Running a query only if nothing has to be read for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_core.errors import LanceError
from lance_core.query.residency import NotResidentError
from service.catalog.missing_objects import is_about_missing_object

if TYPE_CHECKING:
    from lance_core.dataset import Dataset
    from lance_core.query.deadline import Deadline
    from lance_core.query.engine import Request
    from lance_core.query.query_result import QueryResult


def run_if_resident(dataset: Dataset, request: Request, deadline: Deadline) -> QueryResult | None:
    """Return the answer, or None when it needs something that is not in memory or has vanished."""
    try:
        return dataset.run(request, deadline, resident_only=True)
    except NotResidentError:
        return None
    except LanceError as error:
        if is_about_missing_object(error):
            return None
        raise
