"""Numbers by chance."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from lance_core.expr.functions.signature import Function, always, takes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lance_core.expr.convert import Values


def _numbers(rows: pa.Array, others: Sequence[Values]) -> pa.Array:  # takes none
    return pa.array(np.random.default_rng().random(len(rows)))


RANDOM = Function("random", "()", takes(), always(pa.float64()), _numbers)
"""Uniform between 0 and 1, another one for every row."""
