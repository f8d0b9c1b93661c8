"""``lance-pipeline status``: jobs of a dataset, and what it needs."""

from __future__ import annotations

import json as json_text
from typing import TYPE_CHECKING, Annotated

import typer

from pipeline.status import status_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pipeline.cli.common import Shared
    from pipeline.status import Status


def status(
    shared: Shared,
    json: Annotated[bool, typer.Option("--json", help="Print JSON, with everything.")] = False,
) -> None:
    """Show the jobs of a dataset, how well its indices cover it, and what there is to do."""
    with shared.context("status") as context:
        found = status_of(context)
    if json:
        typer.echo(json_text.dumps(found.to_dict(), indent=2))
        return
    for line in lines_of(found):
        typer.echo(line)


def lines_of(found: Status) -> Iterator[str]:
    """Yield a status as people read it."""
    yield f"{found.uri} at version {found.version}"
    yield (
        f"{found.num_rows:,} rows in {found.num_fragments:,} fragments,"
        f" {found.num_small_fragments:,} of them worth compacting"
    )
    for index in found.indices:
        behind = f", {index.num_behind} behind" if index.num_behind > 0 else ""
        yield (
            f"index {index.name} ({index.index_type}): {index.num_segments} segments{behind},"
            f" {index.num_unindexed_rows:,} rows unindexed"
        )
    reuse = found.reuse
    yield (
        f"deferred compactions: {reuse.num_versions}, {reuse.num_removable} of them followed by all"
        f" indices, {reuse.num_bytes:,} bytes"
    )
    for stream in found.streams:
        yield f"stream {stream.query_id}: epoch {stream.epoch}, needs version {stream.version}"
    for job in found.jobs:
        ended = "" if job.version is None else f", version {job.version}"
        yield (
            f"job {job.job_id} ({job.kind}): {job.state.value}, {job.num_done} of {job.num_items}"
            f" items{ended}, {job.last_active:%Y-%m-%d %H:%M} UTC"
        )
    yield from (f"warning: {each}" for each in found.warnings)
    yield from (f"advice: {each}" for each in found.advice)
