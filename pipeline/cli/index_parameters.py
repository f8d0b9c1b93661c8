"""Options that say how an index is built, of ``lance-pipeline train`` and ``build-index``."""

from __future__ import annotations

import functools
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Concatenate, ParamSpec, cast

import typer

from lance_core.errors import InvalidRequestError
from lance_core.index.vector.build.kmeans import SEED
from pipeline.cli.common import Shared, declare, parameters_of
from pipeline.sample import TrainOptions

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Literal

P = ParamSpec("P")

_VECTORS = "Vectors"
_NUM_GIVEN = 3
"""Parameters of a command that `with_index_options` gives: shared ones, column, choice."""


def _vector_option(name: str, text: str) -> object:
    return typer.Option(name, help=text, rich_help_panel=_VECTORS, show_default=False)


ColumnOption = Annotated[
    str, typer.Option("--column", help="Column, or a part of a struct: `price`, `point.x`.")
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


@dataclass(frozen=True, slots=True)
class IndexChoice:
    """What options say of an index: its type, None if left out, its parameters, and training."""

    index_type: str | None
    parameters: dict[str, object]
    train: TrainOptions


def with_index_options(
    command: Callable[Concatenate[Shared, str, IndexChoice, P], None],
) -> Callable[..., None]:
    """Give a command the options that say how an index is built.

    Parameters
    ----------
    command
        Takes `Shared`, a column and `IndexChoice`, then what typer makes of its own parameters.
    """

    @functools.wraps(command, assigned=("__module__", "__name__", "__doc__"), updated=())
    def run(
        shared: Shared,
        column: ColumnOption,
        index_type: TypeOption = None,
        metric: MetricOption = None,
        num_partitions: PartitionsOption = None,
        num_sub_vectors: SubVectorsOption = None,
        num_bits: BitsOption = None,
        sample_rate: RateOption = None,
        max_iters: ItersOption = None,
        hnsw_m: HnswMOption = None,
        hnsw_ef_construction: HnswEfOption = None,
        train_mode: ModeOption = "auto",
        max_sample_bytes: SampleBytesOption = 2 << 30,
        seed: SeedOption = SEED,
        parameter: ParameterOption = None,
        **own: object,
    ) -> None:
        given: dict[str, object | None] = {
            "metric": metric,
            "num_partitions": num_partitions,
            "num_sub_vectors": num_sub_vectors,
            "num_bits": num_bits,
            "sample_rate": sample_rate,
            "max_iters": max_iters,
            "m": hnsw_m,
            "ef_construction": hnsw_ef_construction,
        }
        mode = cast("Literal['auto', 'driver', 'distributed']", train_mode)
        train = TrainOptions(mode, max_sample_bytes, seed)
        choice = IndexChoice(index_type, _parameters(given, parameter), train)
        command(shared, column, choice, **own)  # type: ignore[call-arg, arg-type]  # typer has checked them

    *common, _ = parameters_of(run)
    own = parameters_of(command, IndexChoice=IndexChoice)[_NUM_GIVEN:]
    declare(run, (*common, *own))
    return run


def _parameters(given: dict[str, object | None], others: Sequence[str] | None) -> dict[str, object]:
    """Return the parameters that options stand for; of others, values are JSON if they can be."""
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
