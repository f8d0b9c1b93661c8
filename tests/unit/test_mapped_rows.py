from __future__ import annotations

import numpy as np
import pytest

from lance_core.file.mapped_rows import MappedRows

PAGES = MappedRows(
    mapping=memoryview(b""),
    first_rows=np.array([0, 10, 25]),
    addresses=np.array([1_000, 5_000]),
    row_bytes=8,
)


@pytest.mark.parametrize(
    ("start", "end", "address"),
    [
        (0, 10, 1_000),
        (3, 4, 1_024),
        (10, 25, 5_000),
        (12, 12, 5_016),
        (9, 11, None),
        (0, 25, None),
        (25, 25, None),
    ],
)
def test_rows_of_one_page_lie_at_one_address(start: int, end: int, address: int | None) -> None:
    assert PAGES.address(start, end) == address
