"""Random histories, each step by us or by pylance: both see what plain dicts say, always."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from tests.soak import many_examples
from tests.table_histories import Actor, TableHistory

pytestmark = pytest.mark.interop

ACTIONS = [
    "append",
    "overwrite",
    "delete",
    "update",
    "merge_insert",
    "add_column",
    "drop_column",
    "rename_column",
    "cast_column",
    "restore",
    "tag",
    "compact",
    "index",
]
Step = tuple[str, Actor, int, int]
actors: st.SearchStrategy[Actor] = st.sampled_from(["us", "them"])
numbers = st.integers(0, 40)
steps = st.lists(st.tuples(st.sampled_from(ACTIONS), actors, numbers, numbers), max_size=12)


@settings(max_examples=many_examples() * 2 // 5)
@given(st.sampled_from(["2.0", "2.1", "2.2"]), st.booleans(), steps)
def test_both_see_what_the_history_made_of_the_table(
    data_version: str, stable_row_ids: bool, steps: list[Step]
) -> None:
    folder = Path(tempfile.mkdtemp())
    try:
        history = TableHistory(folder / "t.lance", data_version, stable_row_ids=stable_row_ids)
        for step in steps:
            history.step(*step)
        history.check_whole()
    finally:
        shutil.rmtree(folder)
