"""The commands that keep datasets in shape, each once from the shell to the end."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from pipeline.cli import common
from pipeline.cli.main import app
from tests.pipeline_upkeep import made
from tests.verified import verified


@pytest.fixture
def run(spark, monkeypatch):
    """Run a command on the session of the tests; return what it printed."""
    monkeypatch.setattr(common, "make_session", lambda *_, **__: spark)
    monkeypatch.setattr(common, "stop_session", lambda _: None)

    def command(*arguments, code=0):
        found = CliRunner().invoke(app, [*arguments, "--progress", "json"])
        assert found.exit_code == code, found.output
        return found

    return command


def events(found):
    return [json.loads(line) for line in found.stderr.splitlines()]


def test_a_dataset_is_compacted_followed_trimmed_and_cleaned(run, tmp_path):
    kept = made(tmp_path / "t", 600)
    kept.index("IVF_PQ", "BTREE", "BITMAP", "INVERTED")
    kept.delete(range(2, 600, 5))
    uri = ("--uri", str(tmp_path / "t"))
    size = ("--target-rows-per-fragment", "200")
    planned = events(run("compact", *uri, *size, "--dry-run"))
    assert planned[0]["items"] == 2
    told = events(run("compact", *uri, *size, "--job-id", "one"))
    assert told[-1]["version"] == kept.dataset.version
    assert (told[-1]["fragments_before"], told[-1]["fragments"]) == (6, 4)
    assert "phase_end" in [each["event"] for each in told]
    kept.check("IVF_PQ", "BTREE", "BITMAP", "INVERTED")
    again = events(run("compact", *uri, *size, "--job-id", "one"))
    assert again[-1]["version"] == told[-1]["version"]
    status = json.loads(run("status", *uri, "--json").stdout)
    assert status["reuse"]["num_versions"] == 1
    assert [each["state"] for each in status["jobs"]] == ["done"]
    told = events(run("trim-fri", *uri, "--max-versions", "0"))
    assert (told[-1]["compactions_before"], told[-1]["compactions_left"]) == (1, 0)
    kept.check("IVF_PQ", "BTREE", "BITMAP", "INVERTED")
    told = events(run("cleanup", *uri, "--older-than", "0s", "--delete-concurrency", "3"))
    assert told[-1]["versions"] == kept.dataset.version - 1
    kept.check("IVF_PQ", "BTREE", "BITMAP", "INVERTED")
    assert verified(kept.root) == []


def test_commands_say_what_is_wrong_by_their_exit_codes(run, tmp_path):
    kept = made(tmp_path / "t", 300)
    uri = ("--uri", str(tmp_path / "t"))
    assert "age" in run("cleanup", *uri, "--older-than", "soon", code=2).stderr
    assert "300 rows in 3 fragments" in run("status", *uri).stdout
    run("compact", "--uri", str(tmp_path / "nothing"), code=2)
    run("compact", *uri, "--target-rows-per-fragment", "0", code=2)
    run("compact", *uri, "--job-id", "one")
    run("compact", *uri, "--job-id", "one", "--commit-every", "0", "--memory", "9", code=2)
    assert len(kept.dataset.snapshot.fragments) == 1
