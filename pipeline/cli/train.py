"""``lance-pipeline train``: the model that segments of a vector index share."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from lance_core.operations.new_index import NewIndex, recipe_of, usual_index_name
from pipeline import train as job
from pipeline.index_items import request_of

if TYPE_CHECKING:
    from pipeline.cli.common import Shared
    from pipeline.cli.index_parameters import IndexChoice


def train(shared: Shared, column: str, choice: IndexChoice) -> None:
    """Learn centroids and codes from a sample of a column of vectors, and print where they are.

    `build-index --model` takes what is printed. That command trains a model by itself where none
    is given; so this one is for those that several builds share.
    """
    with shared.context(job.KIND) as context:
        dataset = context.open()
        index = NewIndex(
            usual_index_name(dataset.snapshot, column),
            column,
            "IVF_PQ" if choice.index_type is None else choice.index_type,
            choice.parameters,
        )
        if context.dry_run:
            recipe_of(dataset.snapshot, index)
            context.progress.event(
                "plan", kind=job.KIND, version=dataset.version, **request_of(index)
            )
            return
        trained = job.train_model(context, index, options=choice.train)
    if trained.uri is None:
        typer.echo(f"{trained.training.num_rows} vectors are too few to train a model", err=True)
    else:
        typer.echo(trained.uri)
