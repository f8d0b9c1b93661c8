"""Damage of branches is found from the main one, and named as it lies below the main root."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import lance
import pyarrow as pa
import pytest
from typer.testing import CliRunner

from lance_core.dataset import open_dataset
from lance_core.errors import CorruptFileError
from service.cli.main import app

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.interop

RUNNER = CliRunner()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Make a dataset with branches of pylance and of ours, each with rows of its own."""
    path = tmp_path / "t.lance"
    table = pa.table({"id": range(5)})
    theirs = lance.write_dataset(table, str(path)).create_branch("feature/x")
    lance.write_dataset(table, theirs, mode="append")
    dataset = open_dataset(path).create_branch("br").append(table).append(table)
    dataset.delete("id = 3")
    return path


def places(root: Path, branch: str | None = None) -> list[str]:
    return [finding.where for finding in open_dataset(root, branch=branch).verify()]


def break_file(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-20])


def test_sound_branches_have_no_fault(root: Path) -> None:
    assert places(root) == places(root, "br") == places(root, "feature/x") == []
    assert "no fault found" in RUNNER.invoke(app, ["verify", str(root)]).output


@pytest.mark.parametrize(
    ("branch", "folder"),
    [
        *(("br", each) for each in ("_versions", "data", "_deletions", "_transactions")),
        *(("feature/x", each) for each in ("_versions", "data", "_transactions")),
    ],
)
def test_broken_files_of_branches_are_named(root: Path, branch: str, folder: str) -> None:
    files = (root / "tree" / branch / folder).iterdir()
    broken = min(file for file in files if file.suffix != ".json")
    break_file(broken)
    place = broken.relative_to(root).as_posix()
    assert place in places(root)
    told = RUNNER.invoke(app, ["verify", str(root)])
    assert told.exit_code == 1
    assert f"{place}: " in told.output
    others = {"br", "feature/x"} - {branch}
    assert places(root, others.pop()) == []


def test_a_broken_file_that_a_branch_shares_is_named_once_where_it_lies(root: Path) -> None:
    (shared,) = (root / "data").iterdir()
    break_file(shared)
    place = f"data/{shared.name}"
    assert set(places(root)) == set(places(root, "br")) == {place}
    shared.unlink()
    assert not any(each.startswith("tree/") for each in places(root))


def test_branches_that_are_gone_or_unnamed_are_faults(root: Path) -> None:
    shutil.rmtree(root / "tree" / "br")
    (root / "_refs" / "branches" / "feature%2Fx.json").write_text("{")
    found = places(root)
    assert "tree/br/_versions" in found
    assert "_refs/branches/feature%2Fx.json" in found


def test_errors_of_opening_a_branch_name_the_place_below_the_main_root(root: Path) -> None:
    whole = open_dataset(root, branch="br")
    old = open_dataset(root, 1, branch="br")
    newest = min((root / "tree" / "br" / "_versions").glob("*.manifest"))
    break_file(newest)
    for opens in (
        lambda: open_dataset(root, branch="br"),
        lambda: open_dataset(root).checkout(branch="br"),
        whole.checkout,
        old.versions,
    ):
        with pytest.raises(CorruptFileError) as caught:
            opens()
        assert caught.value.path == f"tree/br/_versions/{newest.name}"
        assert str(caught.value).startswith(f"corrupt file tree/br/_versions/{newest.name}")
