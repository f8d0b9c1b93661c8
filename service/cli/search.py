"""``lance-serve search``: find rows by words, by a vector, or by both."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import orjson
import pyarrow as pa
import typer
from rich.markup import escape
from rich.table import Table

from lance_core.errors import InvalidRequestError
from lance_core.query.engine import Request  # noqa: TC001 - typer reads annotations
from service.api.json_bodies import json_chunks
from service.api.json_rows import encode_rows
from service.api.query_bodies import parse_query
from service.cli.output import output, print_table
from service.cli.places import (
    BranchOption,
    DatasetArgument,
    JsonOption,
    StorageOptions,
    counted,
    open_for_command,
    told_errors,
)
from service.limits import NO_LIMITS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lance_core.query.query_result import QueryResult

_TEXT, _VECTOR = "By words", "By a vector"
_TYPED = {
    "full_text_query": "--text",
    "full_text_query.columns": "--text-column",
    "vector": "--vector",
    "row_id": "--row-id",
    "fusion.weights": "--weights",
    "fusion": "--weights",
    "filter": "--filter",
    "k": "--k",
    'create_index(column, "INVERTED")': "`lance-serve index create DATASET COLUMN --type fts`",
    "with_position=True": "--positions",
}
"""What users type for the members of a query, and for calls of the library."""

_FILE_MARK = "@"


def search(
    dataset: DatasetArgument,
    text: Annotated[
        str | None,
        typer.Option(
            "--text",
            metavar="WORDS",
            help="Words to look for; a phrase stands in double quotes of its own: `'\"red fox\"'`."
            " Or a JSON object, such as"
            ' `\'{"query": {"match": {"terms": "fox", "fuzziness": 1}}}\'`, as HTTP takes it.',
            rich_help_panel=_TEXT,
        ),
    ] = None,
    text_column: Annotated[
        list[str] | None,
        typer.Option(
            "--text-column",
            metavar="COLUMN",
            help="Where to look for the words; may be repeated. Left out: in all columns with a"
            " text index.",
            rich_help_panel=_TEXT,
        ),
    ] = None,
    vector: Annotated[
        str | None,
        typer.Option(
            "--vector",
            metavar="NUMBERS",
            help="A vector as JSON: `'[0.5, 0.25]'`, or `@FILE` that holds it. With words too, rows"
            " of both are ranked as one answer.",
            rich_help_panel=_VECTOR,
        ),
    ] = None,
    row_id: Annotated[
        int | None,
        typer.Option(
            "--row-id",
            min=0,
            help="Instead of a vector: the `_rowid` of a row whose own vector counts.",
            rich_help_panel=_VECTOR,
        ),
    ] = None,
    vector_column: Annotated[
        str | None,
        typer.Option(
            "--vector-column",
            metavar="COLUMN",
            help="Left out: the only vector column.",
            rich_help_panel=_VECTOR,
        ),
    ] = None,
    weights: Annotated[
        tuple[float, float] | None,
        typer.Option(
            "--weights",
            metavar="VECTOR TEXT",
            help="With a vector and words: what each counts, by distance and score. Left out: only"
            " places in both rankings count, the same.",
            rich_help_panel=_VECTOR,
        ),
    ] = None,
    k: Annotated[int, typer.Option("--k", min=1, help="Rows wanted.")] = 10,
    offset: Annotated[int, typer.Option("--offset", min=0, help="Rows to skip.")] = 0,
    filter: Annotated[
        str | None,
        typer.Option("--filter", help="Only rows for which this is true: `price < 10`."),
    ] = None,
    column: Annotated[
        list[str] | None,
        typer.Option(
            "--column",
            metavar="COLUMN",
            help="Column to show; may be repeated. Left out: all but vectors.",
        ),
    ] = None,
    with_row_id: Annotated[bool, typer.Option("--with-row-id", help="Show `_rowid` too.")] = False,
    plan: Annotated[
        bool, typer.Option("--plan", help="Print what was done to find the rows, not these.")
    ] = False,
    version: Annotated[
        str | None, typer.Option("--version", help="Number or tag; the latest if left out.")
    ] = None,
    json: JsonOption = False,
    branch: BranchOption = None,
    storage_option: StorageOptions = None,
) -> None:
    """Find the rows whose texts fit some words best, that are nearest to a vector, or both.

    Words are found by the text index of a column, or by reading it where there is none. The best
    rows come first: by `_score`, by `_distance`, or by the `_relevance_score` made of both.

    For example:

    `lance-serve search a.lance --text "wild dog" --text-column text --filter "price < 10"`

    `lance-serve search a.lance --text "wild dog" --vector @query.json --weights 0.7 0.3`
    """
    with told_errors(_TYPED):
        opened = open_for_command(dataset, storage_option, branch, version)
        request = _request(
            {
                "full_text_query": _text_member(text, text_column),
                "vector": _vector_member(vector),
                "row_id": row_id,
                "vector_column": vector_column,
                "fusion": None if weights is None else {"weights": list(weights)},
                "k": k,
                "offset": offset,
                "filter": filter,
                "columns": column or _shown_columns(opened.schema),
                "with_row_id": with_row_id,
            }
        )
        if plan:
            report = opened.analyze_plan(request)
            typer.echo(_indented(report.to_dict()) if json else report.text())
            return
        result = opened.run(request)
    if json:
        typer.echo(_as_json(result))
    else:
        _show(result)


def _request(members: dict[str, object]) -> Request:
    if all(members[name] is None for name in ("full_text_query", "vector", "row_id")):
        raise typer.BadParameter("give --text, --vector or --row-id")
    return parse_query(members, limits=NO_LIMITS).request


def _text_member(text: str | None, columns: Sequence[str] | None) -> object:
    if text is None:
        if columns:
            raise typer.BadParameter("--text-column says where to look for words: give --text too")
        return None
    if not text.lstrip().startswith("{"):
        return {"query": text, "columns": columns}
    if columns:
        raise typer.BadParameter("the object of --text names its columns itself")
    return _loaded("--text", text)


def _vector_member(vector: str | None) -> object:
    if vector is None or not vector.startswith(_FILE_MARK):
        return None if vector is None else _loaded("--vector", vector)
    return _loaded("--vector", Path(vector.removeprefix(_FILE_MARK)).read_bytes())


def _loaded(option: str, text: str | bytes) -> object:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise InvalidRequestError(f"{option}: is no JSON: {error}") from error


def _shown_columns(schema: pa.Schema) -> list[str]:
    """Return the columns that people can read: vectors are hundreds of numbers."""
    return [field.name for field in schema if not _is_vector(field.type)]


def _is_vector(kind: pa.DataType) -> bool:
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return bool(pa.types.is_fixed_size_list(kind.value_type))
    return bool(pa.types.is_fixed_size_list(kind))


def _as_json(result: QueryResult) -> str:
    rows, stats = result.rows, result.stats
    chunks = json_chunks(stats.version, rows.schema, [rows], stats.to_dict)
    return _indented(orjson.loads(b"".join(chunks)))


def _indented(value: object) -> str:
    return orjson.dumps(value, option=orjson.OPT_INDENT_2).decode()


def _show(result: QueryResult) -> None:
    rows, stats = result.rows, result.stats
    names: list[str] = rows.schema.names
    table = Table()
    for field in rows.schema:
        is_number = pa.types.is_integer(field.type) or pa.types.is_floating(field.type)
        table.add_column(escape(field.name), justify="right" if is_number else "left")
    for row in orjson.loads(b"[" + encode_rows(rows) + b"]"):
        table.add_row(*(_cell(row[name]) for name in names))
    if rows.num_rows > 0:
        texts = [field.name for field in rows.schema if pa.types.is_string(field.type)]
        print_table(output(), table, folded=tuple(map(escape, texts)))
    output(stderr=True).print(
        f"{counted(rows.num_rows, 'row')} of version {stats.version} in {stats.elapsed_ms:,.1f} ms"
        f" ({stats.plan})",
        highlight=False,
    )


def _cell(value: object) -> str:
    """Return a value on one line."""
    text = value if isinstance(value, str) else orjson.dumps(value).decode()
    return escape(" ".join(text.split()))
