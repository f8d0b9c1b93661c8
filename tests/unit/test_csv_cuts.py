"""Files of comma-separated values are cut between rows only, whatever stands in quotes."""

import io
import random
from itertools import pairwise

import pyarrow as pa
import pyarrow.csv as pc
import pytest

from lance_core.operations import csv_cuts
from lance_core.operations.csv_cuts import RowStarts
from lance_core.operations.csv_rows import csv_batches

_TYPES = {"a": pa.string(), "b": pa.string()}
_VALUES = [
    "x",
    "",
    '"x"',
    '""',
    '"\n"',
    '"\r\n"',
    '"1\n2;3\n4"',
    '"x""\n""y"',
    '""""',
    '"""\n"""',
    '5" pipe',
    '7""',
    '"x"y"z',
    ' "q',
]
_ENDS = ["\n", "\r\n", "\n\n", "\r\n\r\n"]


def _starts(data: bytes, delimiter: str = ";") -> RowStarts:
    return RowStarts(lambda begin, end: data[begin:end], len(data), delimiter)


def _rows(data: bytes, header: list[str] | None = None) -> list[dict[str, str | None]]:
    batches = csv_batches(lambda: pa.BufferReader(data), _TYPES, ";", header)
    return [row for batch in batches for row in batch.to_pylist()]


@pytest.mark.parametrize("seed", range(30))
def test_pieces_have_the_rows_of_the_whole(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv_cuts, "_BLOCK_BYTES", 7)
    draw = random.Random(seed)
    lines = [
        f"{draw.choice(_VALUES)};{draw.choice(_VALUES)}{draw.choice(_ENDS)}" for _ in range(60)
    ]
    head = draw.choice(["", "\ufeff", "\n", "\r\n"]) + "a;b\n"
    data = (head + "".join(lines)).encode()
    starts = _starts(data)
    wanted = [1, *sorted(draw.sample(range(len(head), len(data)), 25)), len(data)]
    cuts = [starts.at_or_after(each) for each in wanted]
    found = [
        row
        for begin, end in pairwise(cuts)
        if begin < end
        for row in _rows(data[begin:end], ["a", "b"])
    ]
    assert found == _rows(data)
    assert len(found) == 60
    assert len(set(cuts)) > 10


def test_each_row_begins_where_it_was_written() -> None:
    rows = ["id;s\n", '1;"x\n2;y"\n', '2;5" pipe\n', '3;"a""\n"\n']
    data = "".join(rows).encode()
    starts, found = _starts(data), [0]
    while found[-1] < len(data):
        found.append(starts.at_or_after(found[-1] + 1))
    assert found == [len("".join(rows[:count])) for count in range(5)]


def test_a_place_that_was_found_is_found_again_for_places_before_it() -> None:
    starts = _starts(b'a;b\n1;"long\n\n\nvalue"\n2;c\n')
    place = starts.at_or_after(6)
    assert [starts.at_or_after(each) for each in (7, 12, place)] == [place] * 3


def test_a_quote_that_is_never_closed_leaves_the_rest_uncut() -> None:
    data = b'a;b\n1;"open\n2;c\n3;d\n'
    starts = _starts(data)
    assert [starts.at_or_after(each) for each in (1, 6, 17)] == [4, len(data), len(data)]


def test_values_in_quotes_may_span_the_blocks_that_are_read() -> None:
    text = "line\n" * 500_000
    table = pa.table({"a": ["1", text, "3"], "b": ["x", text, "z"]})
    written = io.BytesIO()
    pc.write_csv(table, written, pc.WriteOptions(delimiter=";"))
    assert _rows(written.getvalue()) == table.to_pylist()
