"""``lance-serve index create``: build an index over all rows of a column."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import orjson
import typer
from rich.markup import escape

from lance_core.index.vector.metric import Metric  # noqa: TC001 - typer reads it
from lance_core.operations.new_index import parameters_of, usual_index_name, usual_index_type
from lance_core.operations.write_segment import MEMORY_BYTES
from service.cli.output import output
from service.cli.places import (
    BranchOption,
    DatasetArgument,
    JsonOption,
    MemoryOption,
    StorageOptions,
    bytes_text,
    counted,
    open_for_command,
    parse_bytes,
    progress_bar,
    told_errors,
)
from service.cli.text_options import (
    TEXT_OPTIONS,
    AsciiFolding,
    BaseTokenizer,
    BlockSize,
    CustomStopWords,
    FormatVersion,
    IndexOperators,
    Language,
    LowerCase,
    MaxNgram,
    MaxTokenLength,
    MinNgram,
    Positions,
    PrefixOnly,
    PreserveOriginal,
    SplitIdentifiers,
    SplitOnNumerics,
    Stem,
    StopWords,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lance_core.dataset import Dataset
    from lance_core.query.index_statistics import IndexStatistics

_VECTORS, _SCALARS = "Vectors", "Values"


class IndexType(StrEnum):
    """How an index is built."""

    IVF_FLAT = "ivf_flat"
    IVF_PQ = "ivf_pq"
    IVF_SQ = "ivf_sq"
    IVF_RQ = "ivf_rq"
    IVF_HNSW_FLAT = "ivf_hnsw_flat"
    IVF_HNSW_PQ = "ivf_hnsw_pq"
    IVF_HNSW_SQ = "ivf_hnsw_sq"
    BTREE = "btree"
    BITMAP = "bitmap"
    LABEL_LIST = "label_list"
    NGRAM = "ngram"
    ZONEMAP = "zonemap"
    BLOOMFILTER = "bloomfilter"
    INVERTED = "inverted"
    FTS = "fts"


class Rotation(StrEnum):
    """How vectors are turned before they are coded."""

    FAST = "fast"
    MATRIX = "matrix"


def _vector_option(name: str, text: str) -> object:
    return typer.Option(name, help=text, rich_help_panel=_VECTORS)


_OPTIONS: Mapping[str, tuple[str, ...]] = {
    "--metric": ("metric",),
    "--partitions": ("num_partitions",),
    "--partition-rows": ("target_partition_size",),
    "--sub-vectors": ("num_sub_vectors",),
    "--bits": ("num_bits",),
    "--rotation": ("rotation_type",),
    "--m": ("m",),
    "--ef-construction": ("ef_construction",),
    "--max-level": ("max_level",),
    "--sample-rate": ("sample_rate",),
    "--max-iters": ("max_iters",),
    "--zone-rows": ("zone_size", "rows_per_zone", "number_of_items"),
    "--probability": ("probability",),
    **TEXT_OPTIONS,
}
"""The parameter that each option stands for: that of the names which the type of index takes."""

_TYPED = {
    "memory_bytes": "--memory",
    "replace=True": "--replace",
    **{name: option for option, names in _OPTIONS.items() for name in names},
}
"""What users type for the arguments of the library."""


def create(
    dataset: DatasetArgument,
    column: Annotated[
        str,
        typer.Argument(help="Column, or a part of a struct: `price`, `point.x`.", metavar="COLUMN"),
    ],
    index_type: Annotated[
        IndexType | None,
        typer.Option(
            "--type",
            case_sensitive=False,
            help="Of vectors an `ivf_` one: `flat` keeps them whole, `sq`, `rq` and `pq` make them"
            " shorter and less exact, `hnsw` has a graph for few large partitions. Of values"
            " `btree`, `bitmap` for few different ones, `label_list` for lists, `ngram` for parts"
            " of texts; `zonemap` and `bloomfilter` are small. `fts`, or `inverted`, for words of"
            " texts. Left out: `ivf_pq` of vectors, else"
            " `btree` or `label_list`.",
        ),
    ] = None,
    name: Annotated[
        str | None, typer.Option(help="Name of the index; that of the column and `_idx`.")
    ] = None,
    replace: Annotated[
        bool, typer.Option(help="Whether to replace an index of the name on the same column.")
    ] = True,
    memory: MemoryOption = None,
    metric: Annotated[
        Metric | None,
        _vector_option("--metric", "How vectors are compared; `l2`, or `hamming` for bytes."),
    ] = None,
    partitions: Annotated[
        int | None,
        _vector_option("--partitions", "Partitions; as many as the rows ask for if left out."),
    ] = None,
    partition_rows: Annotated[
        int | None,
        _vector_option("--partition-rows", "Rows wanted in a partition, in place of their number."),
    ] = None,
    sub_vectors: Annotated[
        int | None,
        _vector_option(
            "--sub-vectors", "Of `pq`: parts that a vector is coded in; a divisor of the dimension."
        ),
    ] = None,
    bits: Annotated[
        int | None, _vector_option("--bits", "Of a code: `pq` 8 or 4, `rq` 1 to 9 (5).")
    ] = None,
    rotation: Annotated[
        Rotation | None, _vector_option("--rotation", "Of `rq`: how vectors are turned; `fast`.")
    ] = None,
    m: Annotated[
        int | None, _vector_option("--m", "Of `hnsw`: neighbours of a row in the graph; 20.")
    ] = None,
    ef_construction: Annotated[
        int | None,
        _vector_option("--ef-construction", "Of `hnsw`: rows looked at for neighbours; 150."),
    ] = None,
    max_level: Annotated[
        int | None, _vector_option("--max-level", "Of `hnsw`: levels of the graph at most; 7.")
    ] = None,
    sample_rate: Annotated[
        int | None,
        _vector_option("--sample-rate", "Vectors to train with for each partition or code; 256."),
    ] = None,
    max_iters: Annotated[
        int | None, _vector_option("--max-iters", "Rounds of training at most; 50.")
    ] = None,
    zone_rows: Annotated[
        int | None,
        typer.Option(
            help="Rows of a page of a `btree` (4096), or of a zone of a `zonemap` or `bloomfilter`"
            " (8192).",
            rich_help_panel=_SCALARS,
        ),
    ] = None,
    probability: Annotated[
        float | None,
        typer.Option(
            help="Of a `bloomfilter`: share of zones that are looked at in vain; 0.00057.",
            rich_help_panel=_SCALARS,
        ),
    ] = None,
    positions: Positions = None,
    tokenizer: BaseTokenizer = None,
    language: Language = None,
    stem: Stem = None,
    drop_stop_words: StopWords = None,
    stop_word: CustomStopWords = None,
    lower_case: LowerCase = None,
    fold_accents: AsciiFolding = None,
    max_word_bytes: MaxTokenLength = None,
    min_ngram: MinNgram = None,
    max_ngram: MaxNgram = None,
    prefix_only: PrefixOnly = None,
    split_identifiers: SplitIdentifiers = None,
    split_numbers: SplitOnNumerics = None,
    keep_originals: PreserveOriginal = None,
    operators: IndexOperators = None,
    block_size: BlockSize = None,
    format_version: FormatVersion = None,
    json: JsonOption = False,
    branch: BranchOption = None,
    storage_option: StorageOptions = None,
) -> None:
    """Build an index over all rows, so that searches and filters need not look at each.

    For example:

    `lance-serve index create a.lance vector --type ivf_pq --metric cosine --partitions 256`

    `lance-serve index create a.lance price --type btree`

    `lance-serve index create a.lance title --type fts --language German --positions`
    """
    given = {
        "--metric": metric,
        "--partitions": partitions,
        "--partition-rows": partition_rows,
        "--sub-vectors": sub_vectors,
        "--bits": bits,
        "--rotation": rotation,
        "--m": m,
        "--ef-construction": ef_construction,
        "--max-level": max_level,
        "--sample-rate": sample_rate,
        "--max-iters": max_iters,
        "--zone-rows": zone_rows,
        "--probability": probability,
        "--positions": positions,
        "--tokenizer": tokenizer,
        "--language": language,
        "--stem": stem,
        "--drop-stop-words": drop_stop_words,
        "--stop-word": stop_word,
        "--lower-case": lower_case,
        "--fold-accents": fold_accents,
        "--max-word-bytes": max_word_bytes,
        "--min-ngram": min_ngram,
        "--max-ngram": max_ngram,
        "--prefix-only": prefix_only,
        "--split-identifiers": split_identifiers,
        "--split-numbers": split_numbers,
        "--keep-originals": keep_originals,
        "--operators": operators,
        "--block-size": block_size,
        "--format-version": format_version,
    }
    memory_bytes = MEMORY_BYTES if memory is None else parse_bytes(memory)
    with told_errors(_TYPED):
        before = open_for_command(dataset, storage_option, branch)
        usual = usual_index_type(before.snapshot, column)
        kind = IndexType(usual.lower()) if index_type is None else index_type
        parameters = _parameters(
            kind, {key: each for key, each in given.items() if each is not None}
        )
        index_name = usual_index_name(before.snapshot, column) if name is None else name
        replaced = _index_named(before, index_name)
        with progress_bar(f"building {escape(index_name)}", None) as bar:
            after = before.create_index(
                column,
                kind.value,
                index_name,
                replace=replace,
                memory_bytes=memory_bytes,
                progress=bar.move_to,
                **parameters,
            )
        made = after.index_statistics(index_name)
    if json:
        was = None if replaced is None else replaced.to_dict()
        report = {"version": after.version, "replaced": was, **made.to_dict()}
        typer.echo(orjson.dumps(report).decode())
    else:
        _tell(after, made, replaced)


def _parameters(kind: IndexType, given: Mapping[str, object]) -> dict[str, object]:
    """Return the parameters that options stand for; refuse those that the type has no use for."""
    taken = parameters_of(kind)
    found: dict[str, object] = {}
    for option, value in given.items():
        names = [each for each in _OPTIONS[option] if each in taken]
        if len(names) == 0:
            fitting = [key for key, known in _OPTIONS.items() if set(known) & set(taken)]
            fits = ", ".join(fitting) if fitting else "no such option"
            raise typer.BadParameter(f"{option} is of no use to {kind}, which takes {fits}")
        found[names[0]] = value
    return found


def _index_named(dataset: Dataset, name: str) -> IndexStatistics | None:
    known = {each.name for each in dataset.snapshot.indices if not each.is_system}
    return dataset.index_statistics(name) if name in known else None


def _tell(dataset: Dataset, made: IndexStatistics, replaced: IndexStatistics | None) -> None:
    metric = "" if made.metric is None else f", {made.metric}"
    number = made.num_partitions
    partitions = "" if number is None else f" in {counted(number, 'partition')}"
    was = "" if replaced is None else f"; replaced {_kind_text(replaced)}"
    console = output()
    console.print(
        f"version {dataset.version}: index {escape(made.name)} ({made.index_type}{metric}) of"
        f" {counted(made.num_indexed_rows, 'row')}{partitions}, {bytes_text(made.num_bytes)}{was}"
    )
    if made.num_indexed_rows == 0 and dataset.count_rows() > 0:
        console.print(
            "there are too few vectors to train it: searches scan them; `lance-serve index"
            " optimize` builds it when there are more",
        )


def _kind_text(index: IndexStatistics) -> str:
    return index.index_type if index.metric is None else f"{index.index_type} ({index.metric})"
