"""Lists and maps of texts that callers hand over, checked; wrong ones say what would work."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from lance_core.errors import InvalidRequestError
from lance_core.file.arguments import checked_text


def checked_names(what: str, names: object) -> tuple[str, ...]:
    """Return a list of names, of which there is at least one and none twice.

    Raises
    ------
    InvalidRequestError
        It is none.
    """
    if isinstance(names, str | bytes | Mapping) or not isinstance(names, Iterable):
        raise InvalidRequestError(f"{what} is {names!r}; give a list of names")
    found = tuple(checked_text(f"each of {what}", name) for name in names)
    if len(found) == 0 or len(set(found)) < len(found):
        raise InvalidRequestError(
            f"{what} has {len(found)} names, {len(set(found))} different ones; name at least one,"
            " and each once"
        )
    return found


def checked_entries(what: str, entries: object) -> dict[str, str | None]:
    """Return texts by key, where None stands for no text.

    Raises
    ------
    InvalidRequestError
        They are none.
    """
    if not isinstance(entries, Mapping):
        raise InvalidRequestError(f"{what} is {entries!r}; give a map of texts by key")
    return {
        checked_text(f"a key of {what}", key): None
        if value is None
        else checked_text(f"the text of {key!r} in {what}", value)
        for key, value in entries.items()
    }
