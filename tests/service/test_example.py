"""What a newcomer meets first: the shipped dataset, its request body and README's code."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import orjson

from lance_core import open_dataset

if TYPE_CHECKING:
    import pytest

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
LARGEST_BYTES = 16_000_000


def test_the_example_holds_indexed_appended_and_deleted_rows() -> None:
    snapshot = open_dataset(str(EXAMPLES / "data" / "wordnet.lance")).snapshot
    assert [fragment.physical_rows for fragment in snapshot.fragments] == [6_000, 2_000]
    assert [list(index.fragment_bitmap or []) for index in snapshot.indices] == [[0]]
    assert open_dataset(str(EXAMPLES / "data" / "wordnet.lance")).count_rows() == 7_800


def test_the_example_stays_small() -> None:
    sizes = [path.stat().st_size for path in (EXAMPLES / "data").rglob("*") if path.is_file()]
    assert sum(sizes) < LARGEST_BYTES


def test_the_licence_notice_is_beside_the_example() -> None:
    assert "WordNet 3.0 Copyright 2006 by Princeton University" in (
        EXAMPLES / "NOTICE.md"
    ).read_text().replace("\n> ", " ")


def test_the_example_request_asks_for_the_vector_of_its_row() -> None:
    body = orjson.loads((EXAMPLES / "query.json").read_bytes())
    dataset = open_dataset(str(EXAMPLES / "data" / "wordnet.lance"))
    nearest = dataset.search(body["vector"], k=1, columns=["id", "vector"], use_index=False)
    assert nearest["id"].to_pylist() == [1_896]
    np.testing.assert_array_equal(
        nearest["vector"][0].values.to_numpy(), np.array(body["vector"], np.float32)
    )


def test_the_python_code_of_the_readme_runs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    search, scan = (block for block in blocks if "open_dataset" in block)
    monkeypatch.chdir(ROOT)
    exec(compile(search, "README.md", "exec"), {})  # noqa: S102 - our own documentation
    assert "'title': 'schuss'" in capsys.readouterr().out
    exec(compile(scan, "README.md", "exec"), {})  # noqa: S102 - as above
    assert "'PARITY BIT'" in capsys.readouterr().out
