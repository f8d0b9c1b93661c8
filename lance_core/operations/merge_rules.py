"""What a merge does with rows whose keys meet, and with those whose do not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from lance_core.errors import InvalidRequestError

WhenMatched = Literal["update", "fail", "nothing"]
WhenNotMatched = Literal["insert", "nothing"]
WhenNotMatchedBySource = Literal["keep", "delete"]


@dataclass(frozen=True, slots=True)
class MergeRules:
    """What becomes of rows whose keys meet, and of those whose do not.

    Parameters
    ----------
    when_matched
        A row of the dataset whose key is given: take the values given, fail, or stay.
    when_not_matched
        A row given whose key the dataset has not, or has a null in it: is inserted, or left out.
    when_not_matched_by_source
        A row of the dataset whose key is not given: stays, or is deleted.

    Raises
    ------
    InvalidRequestError
        A rule is none of these, or nothing would ever change.
    """

    when_matched: WhenMatched = "update"
    when_not_matched: WhenNotMatched = "insert"
    when_not_matched_by_source: WhenNotMatchedBySource = "keep"

    def __post_init__(self) -> None:
        for name, known in (
            ("when_matched", ("update", "fail", "nothing")),
            ("when_not_matched", ("insert", "nothing")),
            ("when_not_matched_by_source", ("keep", "delete")),
        ):
            if getattr(self, name) not in known:
                raise InvalidRequestError(
                    f"{name} is {getattr(self, name)!r}; give {' or '.join(known)}"
                )
        changes = (self.when_matched, self.when_not_matched, self.when_not_matched_by_source)
        if not {"update", "insert", "delete"} & set(changes):
            raise InvalidRequestError("these rules change nothing; update, insert or delete rows")
