"""The command ``lance-pipeline``: what it says and how it ends, where no Spark is needed."""

from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from pipeline.cli import common
from pipeline.cli.main import app
from pipeline.journal import Journal, default_state_uri
from pipeline.lease import Lease
from tests.pipeline_stages import LocalStages


@pytest.fixture
def place(tmp_path):
    for number in range(3):
        pq.write_table(pa.table({"id": [number]}), tmp_path / f"{number}.parquet")
    return tmp_path


def run(*arguments):
    return CliRunner().invoke(app, [*map(str, arguments), "--progress", "json"])


def events(done):
    return [json.loads(line) for line in done.stderr.splitlines() if line.startswith("{")]


def test_a_dry_run_prints_the_plan_and_does_nothing(place):
    done = run("ingest", place, "--uri", place / "a.lance", "--task-rows", 1, "--dry-run")
    assert done.exit_code == 0, done.stderr
    (plan,) = events(done)
    assert (plan["event"], plan["items"], plan["version"]) == ("plan", 3, 0)
    assert plan["names"] == [f"{place}/{number}.parquet [0:1]" for number in range(3)]
    assert sorted(path.suffix for path in place.iterdir()) == [".parquet"] * 3


def test_a_job_that_another_driver_is_at_ends_with_the_code_for_later(place):
    uri = str(place / "a.lance")
    with Lease(Journal.of(default_state_uri(uri), "job")):
        done = run("ingest", place, "--uri", uri, "--job-id", "job")
    assert done.exit_code == common.CONFLICT
    assert "another driver" in done.stderr


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (["--type", "id"], "COLUMN=TYPE"),
        (["--type", "id=no"], "'no' is no type"),
        (["--delimiter", ";;"], "--delimiter is one character"),
        (["--conf", "x"], "give --conf as KEY=VALUE"),
        (["--job-id", "a/b"], "job id 'a/b'"),
        (["--vector-column", "w"], 'unknown column "w"'),
        (["--task-rows", "0"], "task_rows"),
        (["--max-rows-per-file", "0"], "max_rows_per_file"),
        (["--data-storage-version", "9"], "9"),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else None,
)
def test_what_is_wrong_with_the_command_is_told(place, given, told):
    done = run("ingest", place, "--uri", place / "a.lance", *given)
    assert done.exit_code == common.USAGE
    assert told in done.stderr
    assert not (place / "a.lance").exists()


def test_a_command_that_is_interrupted_says_how_to_go_on(place, monkeypatch):
    class Interrupted(LocalStages):
        def run(self, name, items, worker, *, weights=None):
            super().run(name, items[:1], worker)
            raise KeyboardInterrupt

        def stop(self):
            pass

    monkeypatch.setattr(common, "_LateStages", lambda *_: Interrupted())
    done = run("ingest", place, "--uri", place / "a.lance", "--task-rows", 1)
    assert done.exit_code != 0
    (told,) = [each for each in events(done) if each["event"] == "unfinished"]
    job_id = told["resume"].rpartition(" ")[2]
    journal = Journal.of(default_state_uri(str(place / "a.lance")), job_id)
    assert list(journal.recorded()) == [0]


def test_storage_options_are_not_kept_in_the_journal(place, monkeypatch):
    class Local(LocalStages):
        def stop(self):
            pass

    monkeypatch.setattr(common, "_LateStages", lambda *_: Local())
    option = "aws_secret_access_key=do-not-keep"
    done = run("ingest", place, "--uri", place / "a.lance", "--storage-option", option)
    assert done.exit_code == 0, done.stderr
    kept = [path for path in (place / ".a.lance.pipeline").rglob("*") if path.is_file()]
    assert len(kept) >= 3
    assert all(b"do-not-keep" not in path.read_bytes() for path in kept)
