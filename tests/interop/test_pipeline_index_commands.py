"""The commands of ``lance-pipeline`` that build and keep indices, on stages without Spark."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from typer.testing import CliRunner

import lance_core
from lance_core.table.index_upkeep import coverage
from pipeline.cli import common
from pipeline.cli.main import app
from tests.pipeline_stages import LocalStages
from tests.pipeline_tables import coverage_of, exact, nearest, vectors_of, write

if TYPE_CHECKING:
    from pathlib import Path

    from typer.testing import Result

pytestmark = pytest.mark.interop

NUM_ROWS = 1000


class _Stages(LocalStages):
    def __init__(self, *_: object) -> None:
        super().__init__()

    def stop(self) -> None:
        pass


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(common, "_LateStages", _Stages)
    write(tmp_path / "t.lance", range(NUM_ROWS), 100)
    return tmp_path / "t.lance"


def run(path: Path, command: str, *given: Any, code: int = 0) -> Result:
    """Run a command, and check its exit code."""
    arguments = [command, "--uri", str(path), "--progress", "json", *map(str, given)]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == code, result.output
    return result


def events(result: Result) -> dict[str, dict[str, Any]]:
    """Return the last event of each name."""
    return {each["event"]: each for each in map(json.loads, result.stderr.splitlines())}


def test_a_model_is_trained_built_with_refreshed_merged_and_optimised(path: Path) -> None:
    how = ("--column", "v", "--index-type", "ivf_flat", "--num-partitions", 4)
    model = run(path, "train", *how, "--metric", "l2", "--train-mode", "distributed").stdout.strip()
    assert model.endswith("/model.bin")
    parts = ("--num-segments", 2, "--merge-to-rows", 0)
    told = events(run(path, "build-index", *how, "--model", model, *parts))
    assert told["summary"]["version"] == 2
    assert (told["coverage"]["segments"], told["coverage"]["uncovered_rows"]) == (2, 0)
    write(path, range(NUM_ROWS, NUM_ROWS + 100), 100)
    assert events(run(path, "refresh-index"))["coverage"]["segments"] == 3
    run(path, "merge", "--name", "v_idx", "--merge-to-rows", 600)
    assert coverage_of(path, "v_idx") == [[*range(5)], [*range(5, 11)]]
    run(path, "optimize-index", "--name", "v_idx", "--max-segments", 1)
    assert coverage_of(path, "v_idx") == [[*range(11)]]
    for query in vectors_of(range(5000, 5005)):
        assert nearest(path, query) == exact(np.arange(NUM_ROWS + 100), query)


def test_usual_names_types_and_other_parameters_are_taken(path: Path) -> None:
    run(path, "build-index", "--column", "price")
    words = ("--parameter", "with_position=true", "--parameter", "language=German")
    run(path, "build-index", "--column", "text", "--index-type", "inverted", *words)
    run(path, "build-index", "--column", "v", "--name", "mine", "--fragment", 0, "--fragment", 4)
    dataset = lance_core.open_dataset(path)
    kinds = {each.name: each.index_type for each in dataset.list_indices()}
    assert kinds == {"price_idx": "BTREE", "text_idx": "INVERTED", "mine": "IVF_PQ"}
    assert sorted(coverage(dataset.segments_of("mine")[0])) == []  # 200 vectors are too few for PQ
    assert dataset.search_text('"apple n30"', 1)["id"].to_pylist() == [30]
    run(path, "build-index", "--column", "price", "--index-type", "bitmap", "--replace")
    assert lance_core.open_dataset(path).index_statistics("price_idx").index_type == "BITMAP"


def test_a_dry_run_tells_the_plan_and_does_nothing(path: Path) -> None:
    how = ("--column", "v", "--num-segments", 2, "--dry-run")
    plan = events(run(path, "build-index", *how))["plan"]
    assert plan["names"] == ["v_idx: fragments 0 to 4", "v_idx: fragments 5 to 9"]
    trained = events(run(path, "train", "--column", "v", "--dry-run"))["plan"]
    assert trained["index_type"] == "IVF_PQ"
    assert lance_core.open_dataset(path).version == 1
    assert not path.with_name(".t.lance.pipeline").exists()


def test_too_few_vectors_are_told_of(path: Path) -> None:
    lance_core.open_dataset(path).delete("id >= 100")
    result = run(path, "train", "--column", "v")
    assert result.stdout == ""
    assert "100 vectors are too few" in result.stderr


@pytest.mark.parametrize(
    ("command", "given", "code", "text"),
    [
        ("build-index", ("--column", "none"), 2, "none"),
        ("build-index", ("--column", "v", "--parameter", "x"), 2, "KEY=VALUE"),
        (
            "build-index",
            ("--column", "v", "--metric", "l2", "--parameter", "metric=l2"),
            2,
            "twice",
        ),
        ("build-index", ("--column", "price", "--metric", "l2"), 2, "metric"),
        ("train", ("--column", "v", "--train-mode", "all"), 2, "auto, driver or distributed"),
        ("build-index", ("--column", "v", "--num-segments", "0"), 2, "num_segments is 0"),
        ("build-index", ("--column", "v", "--segment-rows", "0"), 2, "segment_rows is 0"),
        ("build-index", ("--column", "v", "--fragment", "77"), 2, "no fragments [77]"),
        ("merge", ("--name", "none"), 2, "none"),
        ("refresh-index", ("--name", "none"), 2, "none"),
        ("optimize-index", ("--max-segments", "0"), 2, "max_segments"),
        ("optimize-index", ("--name", "none"), 2, "none"),
    ],
)
def test_what_makes_no_sense_is_told(
    path: Path, command: str, given: tuple[str, ...], code: int, text: str
) -> None:
    assert text in run(path, command, *given, code=code).stderr


_NUMBERS: dict[str, dict[str, tuple[object, ...]]] = {
    "build-index": {
        "--num-segments": (0,),
        "--segment-rows": (0,),
        "--merge-to-rows": (-1,),
        "--memory": (0, -1),
    },
    "merge": {"--merge-to-rows": (0, -1), "--memory": (0,)},
    "refresh-index": {"--num-segments": (0,), "--segment-rows": (0,), "--memory": (0,)},
    "optimize-index": {
        "--max-segments": (0,),
        "--min-segment-rows": (-1,),
        "--retrain-if-growth": ("nan", 1),
        "--retrain-if-error": ("nan", -1),
        "--segment-rows": (0,),
        "--memory": (0,),
    },
    "compact": {
        "--memory": (0,),
        "--target-rows-per-fragment": (0,),
        "--max-bytes-per-file": (0,),
        "--materialize-deletions-threshold": ("nan", 2),
        "--max-source-fragments": (1,),
        "--commit-every": (-1,),
    },
    "trim-fri": {"--memory": (0,), "--max-versions": (-1,)},
}


@pytest.mark.parametrize("command", _NUMBERS)
def test_numbers_that_make_no_sense_are_told_even_where_nothing_is_to_do(
    path: Path, command: str
) -> None:
    run(path, "build-index", "--column", "price")
    needed = {"build-index": ("--column", "price"), "merge": ("--name", "price_idx")}
    for option, values in _NUMBERS[command].items():
        for value in values:
            told = run(path, command, *needed.get(command, ()), option, value, code=2).stderr
            name = option.removeprefix("--").replace("-", "_")
            assert name.removeprefix("materialize_") in told
    assert lance_core.open_dataset(path).version == 2


def test_a_model_that_is_not_there_is_told_even_where_nothing_is_to_do(path: Path) -> None:
    how = ("--column", "v", "--index-type", "ivf_flat", "--num-partitions", 4)
    run(path, "build-index", *how)
    gone = path.parent / "gone"
    assert f"no model at {gone}" in run(path, "build-index", *how, "--model", gone, code=2).stderr
