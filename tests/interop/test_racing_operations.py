"""Operations that race one another, and pylance's: no update is lost, no key comes twice."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import lance
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from lance_core.dataset import open_dataset, write_dataset

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.interop

NUM_ROUNDS = 6


def raced(*work: Callable[[int], object]) -> None:
    """Let all run at the same time, each some rounds."""

    def rounds(each: Callable[[int], object]) -> None:
        for number in range(NUM_ROUNDS):
            each(number)

    with ThreadPoolExecutor(len(work)) as pool:
        list(pool.map(rounds, work))


@pytest.mark.parametrize("stable", [False, True])
def test_counters_count_every_update(tmp_path: Path, stable: bool) -> None:
    uri = str(tmp_path / "t")
    write_dataset(uri, pa.table({"id": range(20), "n": [0] * 20}), stable_row_ids=stable)

    def ours(_: int) -> None:
        more = {"n": lambda batch: pc.add(batch["n"], 1)}
        open_dataset(uri).update(more, where="id IN (3, 4)")

    def others(_: int) -> None:
        lance.dataset(uri).update({"n": "n + 1"}, where="id = 3", conflict_retries=100)

    def appends(number: int) -> None:
        table = pa.table({"id": [100 + number], "n": [0]})
        open_dataset(uri).append(table).delete(f"id = {100 + number}")

    raced(ours, ours, others, appends)
    for table in (open_dataset(uri).scan().read_all(), lance.dataset(uri).to_table()):
        found = dict(zip(table["id"].to_pylist(), table["n"].to_pylist(), strict=True))
        assert (found[3], found[4], len(found)) == (3 * NUM_ROUNDS, 2 * NUM_ROUNDS, 20)
    assert list(open_dataset(uri).verify()) == []


def test_a_key_is_inserted_once(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    write_dataset(uri, pa.table({"id": [0], "n": [0]}))

    def upserts(number: int) -> None:
        rows = pa.table({"id": range(number, number + 5), "n": [number] * 5})
        open_dataset(uri).merge_insert(rows, "id")

    def adds_columns(number: int) -> None:
        open_dataset(uri).add_columns(pa.field(f"c{number}", pa.int32()))

    raced(upserts, upserts, upserts, adds_columns)
    table = lance.dataset(uri).to_table()
    assert sorted(table["id"].to_pylist()) == list(range(NUM_ROUNDS + 4))
    assert len(table.schema.names) == 2 + NUM_ROUNDS
