"""How large texts and lists may become that a filter makes."""

from __future__ import annotations

from lance_core.errors import TypeMismatchError

_MOST_BYTES = 1 << 28


def require_size(num_bytes: int) -> None:
    """Refuse to make values of more bytes than a batch of rows may have.

    Raises
    ------
    TypeMismatchError
        They would be larger; tells the limit.
    """
    if num_bytes > _MOST_BYTES:
        raise TypeMismatchError(
            f"what is made of some rows would have {num_bytes} bytes, the limit is {_MOST_BYTES}"
        )
