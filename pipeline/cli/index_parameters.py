"""Options that say how an index is built, of ``lance-pipeline train`` and ``build-index``."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

from lance_core.errors import InvalidRequestError

if TYPE_CHECKING:
    from collections.abc import Sequence

_VECTORS = "Vectors"


def _vector_option(name: str, text: str) -> object:
    return typer.Option(name, help=text, rich_help_panel=_VECTORS, show_default=False)


ColumnOption = Annotated[
    str, typer.Option("--column", help="Column, or a part of a struct: `price`, `point.x`.")
]
NameOption = Annotated[
    str | None, typer.Option("--name", help="Name of the index; that of the column and `_idx`.")
]
TypeOption = Annotated[
    str | None,
    typer.Option(
        "--index-type",
        help="Of vectors `IVF_FLAT`, `IVF_PQ`, `IVF_SQ`, `IVF_RQ`, or `IVF_HNSW_FLAT`,"
        " `IVF_HNSW_PQ`, `IVF_HNSW_SQ` with graphs; of values `BTREE`, `BITMAP`, `LABEL_LIST`,"
        " `NGRAM`, `ZONEMAP`, `BLOOMFILTER`; of texts `INVERTED`. Left out: `IVF_PQ` of vectors,"
        " else `BTREE` or `LABEL_LIST`.",
        show_default=False,
    ),
]
MetricOption = Annotated[
    str | None, _vector_option("--metric", "`l2`, `cosine` or `dot`; of bytes `hamming`.")
]
PartitionsOption = Annotated[
    int | None,
    _vector_option("--num-partitions", "Partitions; as many as the rows ask for if left out."),
]
SubVectorsOption = Annotated[
    int | None, _vector_option("--num-sub-vectors", "Of PQ: parts that a vector is coded in.")
]
BitsOption = Annotated[
    int | None, _vector_option("--num-bits", "Of a code: PQ 8 or 4, RQ 1 to 9 (5).")
]
RateOption = Annotated[
    int | None,
    _vector_option("--sample-rate", "Vectors to train with for each partition or code; 256."),
]
ItersOption = Annotated[
    int | None, _vector_option("--max-iters", "Rounds of training at most; 50.")
]
HnswMOption = Annotated[
    int | None, _vector_option("--hnsw-m", "Of HNSW: neighbours of a row in the graph; 20.")
]
HnswEfOption = Annotated[
    int | None,
    _vector_option("--hnsw-ef-construction", "Of HNSW: rows looked at for neighbours; 150."),
]
ModeOption = Annotated[
    str,
    typer.Option(
        "--train-mode",
        help="Who reads the sample that a model is trained with: `driver`, `distributed` for tasks,"
        " `auto` for tasks where it is more than 64 MiB.",
        rich_help_panel=_VECTORS,
    ),
]
SampleBytesOption = Annotated[
    int,
    typer.Option(
        "--max-sample-bytes",
        help="Bytes that the sample may take in the driver; a larger one is made smaller.",
        rich_help_panel=_VECTORS,
    ),
]
SeedOption = Annotated[
    int,
    typer.Option(
        "--seed",
        help="Of what is drawn, and of what training starts with: another one, another model.",
        rich_help_panel=_VECTORS,
    ),
]
ParameterOption = Annotated[
    list[str] | None,
    typer.Option(
        "--parameter",
        metavar="KEY=VALUE",
        help="Any other parameter of the type, such as `language=German`, `with_position=true` or"
        " `rows_per_zone=4096`; may be repeated.",
    ),
]


def parameters_of(
    given: dict[str, object | None], others: Sequence[str] | None
) -> dict[str, object]:
    """Return the parameters that options stand for.

    Parameters
    ----------
    given
        By the names that the core has for them; None = left out.
    others
        As ``--parameter`` has them; values are JSON where they can be read so, else texts.

    Raises
    ------
    InvalidRequestError
        One is no pair, or is given twice.
    """
    found = {name: value for name, value in given.items() if value is not None}
    for each in [] if others is None else others:
        name, equals, text = each.partition("=")
        if name == "" or equals == "":
            raise InvalidRequestError("give --parameter as KEY=VALUE")
        if name in found:
            raise InvalidRequestError(f"{name} is given twice")
        found[name] = _value(text)
    return found


def _value(text: str) -> object:
    """Return a value as JSON has it, else the text.

    Examples
    --------
    >>> _value("true"), _value("3"), _value("German")
    (True, 3, 'German')
    """
    try:
        value: object = json.loads(text)
    except ValueError:
        return text
    return value
