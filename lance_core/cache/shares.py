"""Which part of the budget may go to what only saves time."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lance_core.cache.byte_cache import ByteCache

_PART_OF_CODES = 8


def most_bytes_of_codes(cache: ByteCache) -> int:
    """Return how many bytes the byte codes of one column or one index may take.

    With more, what they stand for would have to leave, or they would be made again and again.
    """
    return cache.stats.budget_bytes // _PART_OF_CODES
