"""The guide of the pipeline says what there is."""

from __future__ import annotations

import re
from pathlib import Path

from typer.main import get_group

from pipeline.cli.main import app

TESTS = Path(__file__).parent.parent
GUIDE = (TESTS.parent / "pipeline" / "README.md").read_text()


def test_every_command_stands_in_the_guide():
    told = set(re.findall(r"^\| `([a-z-]+)[ `]", GUIDE, re.MULTILINE))
    assert set(get_group(app).commands) <= told


def test_every_option_that_the_guide_names_is_one():
    options = {
        option
        for command in get_group(app).commands.values()
        for parameter in command.params
        for option in parameter.opts
    }
    of_others = {"--archives", "--deploy-mode", "--help"}
    told = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", GUIDE))
    assert told - of_others <= options


def test_every_test_that_the_guide_names_is_one():
    told = re.findall(r"`(test_\w+)`", GUIDE)
    assert len(told) > 10
    texts = [path.read_text() for path in TESTS.rglob("test_pipeline_*.py")]
    texts += [path.read_text() for path in (TESTS / "spark").glob("test_*.py")]
    there = set(re.findall(r"def (test_\w+)\(", "\n".join(texts)))
    assert set(told) <= there
