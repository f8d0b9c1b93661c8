from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from numba.core import config

from lance_core.kernels import compile as compile_module, topk
from lance_core.kernels.compile import (
    choose_directory,
    kernel,
    registered_warmups,
    source_fingerprint,
)
from lance_core.kernels.warm import compile_kernels, warm_kernels

if TYPE_CHECKING:
    from numpy.typing import NDArray


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    for source in Path(compile_module.__file__).parent.glob("*.py"):
        shutil.copy(source, tmp_path)
    return tmp_path


def test_a_changed_helper_in_another_file_changes_the_fingerprint(sources: Path) -> None:
    before = source_fingerprint(sources / "ivf_pq.py")
    with (sources / "memory.py").open("a") as helper:
        helper.write("# changed\n")
    assert source_fingerprint(sources / "ivf_pq.py") != before


def test_a_changed_kernel_leaves_the_others_compiled(sources: Path) -> None:
    before = source_fingerprint(sources / "rank.py")
    with (sources / "ivf_pq.py").open("a") as other:
        other.write("# changed\n")
    assert source_fingerprint(sources / "rank.py") == before


def test_the_first_writable_directory_is_chosen(tmp_path: Path) -> None:
    a_file = tmp_path / "occupied"
    a_file.touch()
    assert choose_directory([a_file / "kernels", tmp_path / "kernels"]) == tmp_path / "kernels"


def test_compiled_code_in_a_place_that_cannot_be_used_is_copied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    built, writable = tmp_path / "image", tmp_path / "volume"
    built.mkdir()
    (built / "code.nbi").write_text("compiled")
    is_writable = compile_module._can_write
    monkeypatch.setattr(compile_module, "_can_write", lambda d: d != built and is_writable(d))
    assert choose_directory([built, writable]) == writable
    assert (writable / "code.nbi").read_text() == "compiled"


def test_without_a_writable_directory_kernels_are_compiled_anew_and_a_warning_says_so(
    tmp_path: Path,
) -> None:
    a_file = tmp_path / "occupied"
    a_file.touch()
    with pytest.warns(RuntimeWarning, match="set NUMBA_CACHE_DIR"):
        assert choose_directory([a_file / "kernels"]) is None


def test_a_given_cache_directory_comes_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    assert compile_module._cache_roots()[0] == tmp_path


def test_a_kernel_that_no_directory_can_keep_still_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compile_module, "_cache_directory", lambda _: None)

    @kernel(ordered=True)
    def twice(number: int) -> int:
        return 2 * number

    assert twice(21) == 42


def test_sums_of_ordinary_kernels_keep_nan_and_infinity() -> None:
    @kernel
    def total(values: NDArray[np.float32]) -> np.float32:
        result = np.float32(0)
        for value in values:
            result += value
        return result

    assert np.isnan(total(np.array([1, np.nan], np.float32)))
    assert total(np.array([1, np.inf], np.float32)) == np.inf


def test_warming_reports_its_progress_and_leaves_no_module_out() -> None:
    seen: list[tuple[str, int, int]] = []
    warm_kernels(lambda *step: seen.append(step))
    assert {"topk", "rank", "exact", "ivf_flat", "ivf_pq", "ordinals"} <= {s[0] for s in seen}
    assert [done for _, done, _ in seen] == list(range(len(registered_warmups())))


def test_compiling_in_processes_reports_every_module_when_it_is_done() -> None:
    seen: list[tuple[str, int, int]] = []
    compile_kernels(lambda *step: seen.append(step), num_processes=2)
    number = len(registered_warmups())
    assert len({name for name, _, _ in seen}) == number
    assert [step[1:] for step in seen] == [(done, number) for done in range(1, number + 1)]


def test_decorating_leaves_the_settings_of_numba_as_they_were() -> None:
    before = vars(config)["CACHE_DIR"]
    kernel(topk.TopRows.merge)
    assert vars(config)["CACHE_DIR"] == before
