"""What ``stream-ingest`` refuses before it starts anything."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from pipeline.cli.main import app

COMMAND = ["stream-ingest", "in", "--uri", "a.lance", "--checkpoint", "c"]


@pytest.mark.parametrize(
    ("options", "error"),
    [
        (["--dry-run"], "streams have --query-id and --checkpoint"),
        (["--job-id", "x"], "streams have --query-id and --checkpoint"),
        (["--dim", "3"], "--vector-column and --dim go together"),
        (["--vector-column", "x"], "--vector-column and --dim go together"),
    ],
)
def test_options_that_make_no_sense_end_the_command_with_2(options, error):
    found = CliRunner().invoke(app, [*COMMAND, *options])
    assert found.exit_code == 2
    assert error in found.stderr
