"""``lance-pipeline cleanup``: remove old versions, and files that nothing needs."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated

import typer

from lance_core.errors import InvalidRequestError
from lance_core.operations.cleanup_plan import CleanupOptions
from pipeline.gc import clean_up_dataset

if TYPE_CHECKING:
    from pipeline.cli.common import Shared

_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_AGE = re.compile(r"(\d{1,7})([smhdw])")


def cleanup(
    shared: Shared,
    older_than: Annotated[
        str | None,
        typer.Option(
            metavar="AGE",
            help="Only versions older than this, such as `7d` or `12h`; 14d if no limit is given.",
        ),
    ] = None,
    retain_versions: Annotated[
        int | None, typer.Option(help="Only versions before the last so many.")
    ] = None,
    keep_tagged: Annotated[
        bool,
        typer.Option("--keep-tagged", help="Keep tagged versions silently instead of refusing."),
    ] = False,
    delete_unverified: Annotated[
        bool,
        typer.Option(
            "--delete-unverified",
            help="Remove files that no version names at once, not after 7 days; nobody else may be"
            " writing. Without effect while jobs are open.",
        ),
    ] = False,
    delete_concurrency: Annotated[int, typer.Option(help="Files to delete at the same time.")] = 64,
    forget_jobs: Annotated[
        str | None,
        typer.Option(
            metavar="AGE",
            help="Remove journals of jobs that were over so long ago too, such as `30d`; models"
            " of `train` stay. Such a job would be done anew if its id were given again.",
        ),
    ] = None,
) -> None:
    """Remove old versions with all files that only they need, and what writers left.

    What open jobs read and have written stays, as do versions that streams go on from.
    """
    options = CleanupOptions(
        older_than=None if older_than is None else _parse_age(older_than),
        retain_versions=retain_versions,
        delete_unverified=delete_unverified,
        error_if_tagged=not keep_tagged,
    )
    with shared.context("cleanup") as context:
        cleaned = clean_up_dataset(
            context,
            options,
            delete_concurrency=delete_concurrency,
            forget_jobs_after=None if forget_jobs is None else _parse_age(forget_jobs),
        )
        if len(cleaned.open_jobs) > 0:
            context.progress.event("kept", for_jobs=", ".join(cleaned.open_jobs))
        report = cleaned.report
        if shared.dry_run:
            for file in report.files:
                typer.echo(file.path)
        context.progress.event(
            "summary",
            kind="cleanup",
            dry_run=shared.dry_run,
            versions=len(report.versions),
            files=len(report.files),
            bytes=report.num_bytes,
            forgotten_jobs=len(cleaned.forgotten_jobs),
        )


def _parse_age(text: str) -> timedelta:
    """Return an age as people write it.

    Examples
    --------
    >>> _parse_age("12h")
    datetime.timedelta(seconds=43200)
    """
    found = _AGE.fullmatch(text)
    if found is None:
        raise InvalidRequestError(
            f"{text!r} is no age; write a number and s, m, h, d or w, such as 7d"
        )
    return timedelta(**{_UNITS[found[2]]: int(found[1])})
