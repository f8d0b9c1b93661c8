"""Everything that can go wrong, as one tree.

::

    LanceError
      InvalidRequestError            the caller's mistake; the same call can never work
        UnknownColumnError           names the columns that exist
        TypeMismatchError            column type, given type, how to write it
        LimitExceededError           which limit, its value, the request's value
      NotFoundError
        DatasetNotFoundError
        VersionNotFoundError
          TagNotFoundError
          BranchNotFoundError
        IndexNotFoundError
      UnsupportedFeatureError        the dataset or request needs something this release lacks
      CorruptFileError               file, offset, what was expected
      StoreError                     the object store refused or failed
        ObjectNotFoundError
        ObjectExistsError            put-if-absent found an object
        StoreThrottledError
        StoreUnavailableError
      CommitConflictError            with which version, and whether reading anew can help
      DeadlineExceededError          where the work stopped
      CancelledByClientError         nobody waits for the answer any more
      MemoryBudgetError              asked for, budget, in use

Messages say what was wrong, what was given and what would work. The HTTP edge maps each class to a
status and an error code; nothing below it knows about HTTP.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


class LanceError(Exception):
    """Root of every error that this library raises on purpose."""


class InvalidRequestError(LanceError):
    """The request is wrong in itself; repeating it cannot help."""


class UnknownColumnError(InvalidRequestError):
    """A column was named that the schema does not have."""

    def __init__(
        self, column: str, available: Sequence[str], *, where: str = "the request"
    ) -> None:
        self.column = column
        self.available = tuple(available)
        names = ", ".join(self.available)
        super().__init__(f'unknown column "{column}" in {where}; columns are: {names}')


class TypeMismatchError(InvalidRequestError):
    """A value has a type that the column or parameter cannot take."""


class LimitExceededError(InvalidRequestError):
    """A configured limit is smaller than what the request asks for.

    Parameters
    ----------
    limit
        Name of the setting.
    allowed
        Its value.
    given
        The request's value.
    asked
        What the request calls that value.
    """

    def __init__(self, limit: str, allowed: int, given: int, *, asked: str) -> None:
        self.limit = limit
        self.allowed = allowed
        self.given = given
        super().__init__(f"{asked} is {given}, the limit is {allowed} (setting {limit})")


class NotFoundError(LanceError):
    """Something that the request names does not exist."""


class DatasetNotFoundError(NotFoundError):
    """No dataset lies at the location."""


class VersionNotFoundError(NotFoundError):
    """The dataset has no such version."""


class TagNotFoundError(VersionNotFoundError):
    """The dataset has no tag of that name."""


class BranchNotFoundError(VersionNotFoundError):
    """The dataset has no branch of that name."""


class IndexNotFoundError(NotFoundError):
    """The dataset has no index of that name."""


class UnsupportedFeatureError(LanceError):
    """The dataset, file or request uses a feature that this release does not implement."""


class CorruptFileError(LanceError):
    """A file contradicts its format.

    Parameters
    ----------
    path
        The file, as the store names it.
    reason
        What was expected and what was found.
    offset
        Byte position in the file where the contradiction was seen, if one position can be named.
    """

    def __init__(self, path: str, reason: str, *, offset: int | None = None) -> None:
        self.path = path
        self.reason = reason
        self.offset = offset
        place = path if offset is None else f"{path} at byte {offset}"
        super().__init__(f"corrupt file {place}: {reason}")


class StoreError(LanceError):
    """The object store refused a request or failed to answer it."""


class ObjectNotFoundError(StoreError):
    """The store holds no object at that path."""


class ObjectExistsError(StoreError):
    """Put-if-absent found an object at that path."""


class StoreThrottledError(StoreError):
    """The store asks for fewer requests; try again later."""


class StoreUnavailableError(StoreError):
    """The store cannot be reached or answers with a passing fault."""


class CommitConflictError(LanceError):
    """Another writer committed something that this commit cannot be put on top of.

    Parameters
    ----------
    reason
        What the two have in common.
    version
        The version that the other writer committed.
    is_retryable
        Whether the same work, done anew on that version, may be committed.
    remedy
        How to do it anew.
    """

    def __init__(
        self,
        reason: str,
        *,
        version: int,
        is_retryable: bool,
        remedy: str = "read the dataset anew and repeat the operation",
    ) -> None:
        self.reason = reason
        self.version = version
        self.is_retryable = is_retryable
        advice = remedy if is_retryable else "give it up"
        super().__init__(f"conflict with version {version}: {reason}; {advice}")


class DeadlineExceededError(LanceError):
    """The time allowed for the work ran out."""


class CancelledByClientError(LanceError):
    """The caller went away; the work was stopped."""


class MemoryBudgetError(LanceError):
    """The work needs more memory than its budget leaves."""

    def __init__(self, asked_bytes: int, budget_bytes: int, used_bytes: int) -> None:
        self.asked_bytes = asked_bytes
        self.budget_bytes = budget_bytes
        self.used_bytes = used_bytes
        super().__init__(
            f"{asked_bytes} bytes asked for, budget is {budget_bytes}, {used_bytes} are in use"
        )
