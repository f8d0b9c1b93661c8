"""Scans of some fragments, as workers make them that share a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

import lance
import numpy as np
import pyarrow as pa
import pytest

import lance_core
from lance_core.errors import InvalidRequestError

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.interop

FILTERS = (None, "u < 40", "u >= 40 AND name = 'b'", "id IN (3, 450, 470)", "_rowaddr > 10")


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("fragments") / "t.lance"
    generator = np.random.default_rng(3)
    rows = pa.table(
        {
            "id": np.arange(600),
            "u": generator.integers(0, 100, 600),
            "name": generator.choice(["a", "b", "c"], 600),
        }
    )
    dataset = lance.write_dataset(rows.slice(0, 500), str(folder), max_rows_per_file=100)
    dataset.create_scalar_index("u", "BTREE")
    lance.write_dataset(rows.slice(500), str(folder), mode="append")
    lance.dataset(str(folder)).delete("id % 9 = 0")
    return folder


@pytest.mark.parametrize("text", FILTERS)
@pytest.mark.parametrize("use_index", [True, False], ids=["index", "no index"])
def test_a_scan_of_fragments_finds_what_pylance_finds(
    path: Path, text: str | None, *, use_index: bool
) -> None:
    ours, theirs = lance_core.open_dataset(str(path)), lance.dataset(str(path))
    for ids in ([0], [1, 4], [5], list(range(6)), []):
        found = ours.scan(
            ["id", "name"], filter=text, fragment_ids=ids, with_row_id=True, use_index=use_index
        )
        own = [each for each in theirs.get_fragments() if each.fragment_id in ids]
        if not own:
            assert found.read_all().num_rows == 0
            continue
        wanted = theirs.scanner(
            ["id", "name"], filter=text, fragments=own, with_row_id=True, scan_in_order=True
        ).to_table()
        assert found.read_all().sort_by("_rowid").equals(wanted.sort_by("_rowid"))


def test_rows_in_order_are_those_of_the_fragments(path: Path) -> None:
    ours = lance_core.open_dataset(str(path))
    found = ours.scan(["id"], order_by=["u"], fragment_ids=[1]).read_all()["id"].to_pylist()
    assert sorted(found) == [each for each in range(100, 200) if each % 9 != 0]


def test_limits_count_all_rows_so_they_do_not_go_with_fragments(path: Path) -> None:
    ours = lance_core.open_dataset(str(path))
    with pytest.raises(InvalidRequestError, match="rows of all fragments"):
        ours.scan(fragment_ids=[1], limit=3)
    with pytest.raises(InvalidRequestError, match="rows of all fragments"):
        ours.scan(fragment_ids=[1], offset=3)
    with pytest.raises(InvalidRequestError, match="fragment"):
        ours.scan(fragment_ids=["a"])  # type: ignore[list-item]  # what users may give
