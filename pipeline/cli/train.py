"""``lance-pipeline train``: the model that segments of a vector index share."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import typer

from lance_core.index.vector.build.kmeans import SEED
from lance_core.operations.new_index import NewIndex, recipe_of, usual_index_name
from pipeline import train as job
from pipeline.cli.index_parameters import (
    BitsOption,
    ColumnOption,
    HnswEfOption,
    HnswMOption,
    ItersOption,
    MetricOption,
    ModeOption,
    ParameterOption,
    PartitionsOption,
    RateOption,
    SampleBytesOption,
    SeedOption,
    SubVectorsOption,
    TypeOption,
    parameters_of,
)
from pipeline.index_items import request_of
from pipeline.sample import TrainOptions

if TYPE_CHECKING:
    from typing import Literal

    from pipeline.cli.common import Shared


def train(
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
) -> None:
    """Learn centroids and codes from a sample of a column of vectors, and print where they are.

    `build-index --model` takes what is printed. That command trains a model by itself where none
    is given; so this one is for those that several builds share.
    """
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
    options = TrainOptions(
        cast("Literal['auto', 'driver', 'distributed']", train_mode), max_sample_bytes, seed
    )
    with shared.context(job.KIND) as context:
        dataset = context.open()
        index = NewIndex(
            usual_index_name(dataset.snapshot, column),
            column,
            "IVF_PQ" if index_type is None else index_type,
            parameters_of(given, parameter),
        )
        if context.dry_run:
            recipe_of(dataset.snapshot, index)
            context.progress.event(
                "plan", kind=job.KIND, version=dataset.version, **request_of(index)
            )
            return
        trained = job.train_model(context, index, options=options)
    if trained.uri is None:
        typer.echo(f"{trained.training.num_rows} vectors are too few to train a model", err=True)
    else:
        typer.echo(trained.uri)
