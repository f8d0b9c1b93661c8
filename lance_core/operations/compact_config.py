"""What the configuration of a dataset says about its compaction."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from lance_core.errors import InvalidRequestError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

T = TypeVar("T")

_PREFIX = "lance.compaction."


def compaction_setting(config: Mapping[str, str], name: str, parse: Callable[[str], T]) -> T | None:
    """Return a setting, None where there is none.

    Parameters
    ----------
    config
        The configuration.
    name
        Of the setting, without what all of compaction begin with.
    parse
        Raises ``ValueError`` for what is no value.

    Raises
    ------
    InvalidRequestError
        Names the key.
    """
    text = config.get(_PREFIX + name)
    if text is None:
        return None
    try:
        return parse(text)
    except ValueError:
        raise InvalidRequestError(f"{_PREFIX}{name} is {text!r} in the configuration") from None


def truth(text: str) -> bool:
    """Parse a truth value as the reference writes it."""
    if text not in {"true", "false"}:
        raise ValueError(text)
    return text == "true"
