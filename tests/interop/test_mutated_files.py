"""Damaged files give data or an error of the library, within bounds; `mutation_runs` has more."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from tests.lance_columns import lance_file
from tests.mutation_corpus import write_corpus
from tests.mutation_runs import run_seeds
from tests.soak import many_examples

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.interop
PARTS = 2


@pytest.mark.parametrize("part", range(PARTS))
def test_a_damaged_file_gives_data_or_an_error_of_the_library(part: int, tmp_path: Path) -> None:
    write_corpus(tmp_path)
    per_part = 2 * many_examples() // PARTS  # 1,000 in all in CI
    failures = run_seeds(tmp_path, part * per_part, (part + 1) * per_part)
    assert failures == []


@pytest.mark.parametrize(
    ("reads", "told"),
    [
        ("raise KeyError(data)", "KeyError"),
        ("np.ones(600 << 20, np.uint8)", "MemoryError"),
        ("while time.process_time() < start + 2.5: pass", "took 2"),
        ("ctypes.string_at(0)", "died 3"),
    ],
    ids=["a foreign error", "much memory", "a long time", "a crash"],
)
def test_the_run_notices(
    reads: str, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = f"""
        import ctypes, sys, time
        import numpy as np
        from tests import mutation_worker

        def read(data, seed):
            start = time.process_time()
            if seed == 3:
                {reads}

        mutation_worker.read_everywhere = read
        mutation_worker.main()
    """
    (tmp_path / "reads_badly.py").write_text(textwrap.dedent(source), encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    folder = tmp_path / "files"
    folder.mkdir()
    (folder / "a.lance").write_bytes(lance_file(pa.array([1, 2]), "2.2"))
    failures = run_seeds(folder, 0, 6, worker="reads_badly")
    assert len(failures) == 1
    assert told in failures[0]
    assert "3" in failures[0].split("\n", maxsplit=1)[0]
