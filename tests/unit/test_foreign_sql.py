"""What other SQL has and filters do not is refused by its name, where it stands."""

from __future__ import annotations

import pyarrow as pa
import pytest

from lance_core.errors import InvalidRequestError, TypeMismatchError, UnknownColumnError
from lance_core.expr.filter import parse_filter
from lance_core.expr.limits import go_on
from lance_core.query.output_columns import output_columns
from lance_core.query.request import NamedExpression
from lance_core.schema.from_arrow import schema_from_arrow

ARROW = pa.schema({"i": pa.int64(), "s": pa.string(), "interval": pa.int64()})


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("i = CASE i WHEN 1 THEN 2 END", "character 5: CASE is not supported"),
        ("CASE WHEN i = 1 THEN true END", "character 1: CASE is not supported"),
        ("i IN (SELECT i FROM t)", "character 7: sub-queries are not supported"),
        ("EXISTS (SELECT 1)", "character 1: sub-queries are not supported"),
        ("i + INTERVAL '1 day' > 1", "character 5: INTERVAL is not supported"),
        ("SUBSTR(s, 1) = 'a'", "character 1: substr is not supported; write left, right"),
        ("substring(s FROM 1 FOR 2) = 'a'", "character 1: substring is not supported"),
        ("extract(year from s) = 1", r"EXTRACT is not supported; write date_part\('year'"),
        ("count(*) > 1", "count is not supported; a filter judges one row"),
        ("s SIMILAR TO 'a'", "character 3: SIMILAR is not supported; write regexp_like"),
        ("i = 1 ORDER BY i", "character 7: ORDER is not supported"),
        ("i = 1 && i = 2", "character 7: .*write AND"),
        ("!i", "character 1: .*write NOT"),
        ("interval = = 1", "character 12: expected a number"),
        ("`case` = = 1", "character 10: expected a number"),
        ("lenght(s) = 1", "unknown function lenght; is length meant"),
        ("floor(i) = 1", "unknown function floor; known are"),
    ],
)
def test_the_reason_is_named(text: str, told: str) -> None:
    with pytest.raises(InvalidRequestError, match=told):
        parse_filter(text, ARROW)


def test_a_column_may_bear_the_name() -> None:
    assert parse_filter("interval = 1", ARROW).columns == ("interval",)


@pytest.mark.parametrize(
    ("text", "kind", "told"),
    [
        ("i +", InvalidRequestError, '^column "x": the expression at character 4: expected'),
        ("nix", UnknownColumnError, '^column "x": unknown column "nix" in the expression at char'),
        ("i + s", TypeMismatchError, '^column "x": the expression at character'),
        ("CASE i", InvalidRequestError, '^column "x": the expression at character 1: CASE'),
    ],
)
def test_errors_of_computed_columns_name_the_column(
    text: str, kind: type[InvalidRequestError], told: str
) -> None:
    columns = [NamedExpression("x", text)]
    with pytest.raises(kind, match=told):
        output_columns(
            schema_from_arrow(ARROW), columns, with_row_id=False, params=None, check=go_on
        )


def test_errors_of_values_name_the_column() -> None:
    made = output_columns(
        schema_from_arrow(ARROW),
        [NamedExpression("x", "1 / i")],
        with_row_id=False,
        params=None,
        check=go_on,
    )
    batch = pa.record_batch({"i": [0]})
    with pytest.raises(TypeMismatchError, match=r'^column "x": the expression at character 1'):
        made.of(batch, go_on)
