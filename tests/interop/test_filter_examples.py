"""Every example of the dialect's page: the rows of pylance, or refused as there."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import lance
import pytest

from lance_core.errors import InvalidRequestError
from lance_core.operations.found_rows import find_rows
from tests.filter_examples import ANSWERED, ONLY_OURS, ONLY_THEIRS, OTHERWISE, REFUSED
from tests.filter_table import TABLE
from tests.opened_table import open_table

if TYPE_CHECKING:
    from tests.opened_table import OpenedTable

pytestmark = pytest.mark.interop


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> lance.LanceDataset:
    folder = tmp_path_factory.mktemp("filter-examples") / "t.lance"
    return lance.write_dataset(TABLE, str(folder), data_storage_version="2.1")


@pytest.fixture(scope="module")
def table(dataset: lance.LanceDataset) -> OpenedTable:
    return open_table(Path(dataset.uri))


def theirs(dataset: lance.LanceDataset, text: str) -> list[int] | None:
    """Return the rows that pylance finds, None if it refuses."""
    try:
        found = dataset.to_table(columns=["row"], filter=text)["row"]
    except BaseException:  # it panics at some
        return None
    rows: list[int] = found.to_pylist()
    return rows


def ours(table: OpenedTable, text: str) -> list[int]:
    found = find_rows(table.files, table.snapshot, text)
    return [row for rows in found.values() for row in rows]


@pytest.mark.parametrize("text", ANSWERED)
def test_a_filter_finds_the_rows_that_pylance_finds(dataset, table, text):
    assert ours(table, text) == theirs(dataset, text)


@pytest.mark.parametrize("text", REFUSED)
def test_what_pylance_refuses_is_refused_with_its_place(dataset, table, text):
    assert theirs(dataset, text) is None
    with pytest.raises(InvalidRequestError, match="filter at character"):
        ours(table, text)


@pytest.mark.parametrize(("text", "rows"), ONLY_OURS)
def test_more_is_understood_than_pylance_understands(dataset, table, text, rows):
    assert ours(table, text) == rows
    assert theirs(dataset, text) is None


@pytest.mark.parametrize("text", ONLY_THEIRS)
def test_some_that_pylance_answers_is_refused(dataset, table, text):
    with pytest.raises(InvalidRequestError, match="the filter at character"):
        ours(table, text)
    assert theirs(dataset, text) is not None


@pytest.mark.parametrize(("text", "rows"), OTHERWISE)
def test_some_filters_find_other_rows_on_purpose(dataset, table, text, rows):
    assert ours(table, text) == rows
    assert theirs(dataset, text) not in (rows, None)
