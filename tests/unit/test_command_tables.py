"""Tables and errors of commands: whole in pipes and in terminals of any width."""

from __future__ import annotations

import io

import pytest
from rich.console import Console
from rich.table import Table

from service.cli.output import output, print_table
from service.cli.places import as_typed

NAME, KIND, LONG = "a_rather_long_name_of_an_index", "IVF_HNSW_SQ", "struct<" + "x: int64, " * 20


def printed(*, width, is_terminal, folded=()):
    table = Table("index", "kind", "type", title="All")
    table.add_row(NAME, KIND, LONG)
    table.add_row("b", "BTREE", "int64")
    file = io.StringIO()
    console = Console(
        file=file, width=width, force_terminal=is_terminal, color_system=None, soft_wrap=True
    )
    print_table(console, table, folded=folded)
    return file.getvalue()


@pytest.mark.parametrize("width", [10, 80, 1000])
def test_a_pipe_gets_a_line_per_row_whatever_the_width(width):
    title, header, *lines = printed(width=width, is_terminal=False).splitlines()
    assert title.strip() == "All"
    assert header.split() == ["index", "kind", "type"]
    assert [line.split(maxsplit=2) for line in lines] == [
        [NAME, KIND, LONG.strip()],
        ["b", "BTREE", "int64"],
    ]


def test_a_wide_terminal_gets_a_frame_and_a_narrower_one_folds_long_cells():
    assert any(NAME in line and LONG in line for line in lines_of(width=400))
    lines = lines_of(width=80)
    assert any(NAME in line and KIND in line and "struct<" in line for line in lines)
    assert max(map(len, lines)) <= 80
    assert sum(line.count("int64") for line in lines) == 21


def lines_of(width):
    text = printed(width=width, is_terminal=True, folded=("type",))
    assert "┃" in text
    return text.splitlines()


@pytest.mark.parametrize("folded", [(), ("type",)])
def test_a_terminal_too_narrow_for_names_gets_a_paragraph_per_row(folded):
    lines = printed(width=40, is_terminal=True, folded=folded).splitlines()
    assert lines[:2] == ["All", NAME]
    assert lines[2].startswith(f"    kind {KIND}, type struct<")
    assert max(map(len, lines)) <= 40
    assert [line.strip() for line in lines[-2:]] == ["b", "kind BTREE, type int64"]


def test_names_that_look_like_emojis_are_printed_as_they_are(capsys):
    output().print("index a:smile:b " + "x" * 300)
    assert capsys.readouterr().out == "index a:smile:b " + "x" * 300 + "\n"


def test_arguments_are_named_as_users_type_them_but_not_in_quotes_or_other_words():
    options = {"zone_size": "--zone-rows", "m": "--m", "replace=True": "--replace"}
    assert as_typed("zone_size is 0", options) == "--zone-rows is 0"
    assert as_typed("m is 2; a zone_size", options) == "--m is 2; a --zone-rows"
    assert as_typed("or replace=True", options) == "or --replace"
    for text in ('no column "zone_size", m', "lance.zone_size is x", "my_zone_size", "metric m"):
        assert as_typed(text, options) == text
