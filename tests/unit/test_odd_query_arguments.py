"""Reading answers or refuses by name, whatever is given for any of its arguments."""

from __future__ import annotations

import inspect
from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest

import lance_core
from lance_core.errors import LanceError
from lance_core.index.text.queries import MatchQuery

if TYPE_CHECKING:
    from pathlib import Path

Dataset = Any

VECTORS = np.random.default_rng(3).standard_normal((40, 8), dtype=np.float32)
TABLE = pa.table(
    {
        "id": range(40),
        "s": ["a word", None] * 20,
        "v": pa.FixedSizeListArray.from_arrays(pa.array(VECTORS.ravel()), 8),
    }
)
USUAL: dict[str, dict[str, Any]] = {
    "count_rows": {},
    "scan": {},
    "search": {"vector": VECTORS[0], "k": 3},
    "search_text": {"query": MatchQuery("word", "s")},
    "search_hybrid": {"vector": VECTORS[0], "query": MatchQuery("word", "s")},
    "take": {"indices": [1, 2]},
    "prewarm": {"index": "id_idx"},
    "checkout": {},
}
UNCHECKED = {"progress", "deadline", "self"}
"""Objects of ours: a wrong one is a mistake in a program, not in what was asked."""

ODD: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 5, 1 << 70, 1.5, float("nan"), float("inf"), 2 + 1j),
    *("", "x", "id", "id = 1", "\ud800", "\x00", b"id", bytearray(b"id"), Ellipsis, object()),
    *([], [None], [5], ["id"], ["id", "id"], ["nope"], [[1]], [b"id"], [1.5], ["\ud800"]),
    *((), ("id",), set(), {"id"}, frozenset([1]), range(3), {}, {"id": "s"}, {"a": 5}, {5: "a"}),
    *([("a", 1)], {"a": object()}, {"a": {"b": 1}}, iter([1]), lambda: 1, int, Exception("x")),
    *(np.int64(3), np.float32("nan"), np.array(5), np.zeros((2, 8)), np.array(["a"]), np.zeros(0)),
    *(pa.scalar(1), pa.array([1]), pa.table({"a": [1]}), Decimal("1.5"), Decimal("NaN")),
    *(datetime(2024, 1, 1, tzinfo=UTC), datetime(2024, 1, 1)),  # noqa: DTZ001 - no zone is odd
    *("$p", "id = $p", "s LIKE 'a%'", "-" * 50, "(" * 400, "'", "`"),
)


def cases() -> list[tuple[str, str]]:
    return [
        (name, argument)
        for name in USUAL
        for argument in inspect.signature(getattr(lance_core.Dataset, name)).parameters
        if argument not in UNCHECKED
    ]


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    path: Path = tmp_path_factory.mktemp("odd") / "t"
    return lance_core.write_dataset(path, TABLE).create_index("id", "BTREE")


@pytest.mark.parametrize(("name", "argument"), cases())
def test_odd_arguments_of_reading_are_answered_or_refused(
    name: str, argument: str, dataset: Dataset
) -> None:
    untyped = {}
    for value in ODD:
        given = {"filter": "id = $p"} if argument == "params" else {}
        try:
            getattr(dataset, name)(**{**USUAL[name], **given, argument: value})
        except LanceError:
            pass
        except Exception as error:
            untyped[repr(value)] = f"{type(error).__name__}: {error}"
    assert untyped == {}
