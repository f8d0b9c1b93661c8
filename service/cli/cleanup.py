"""``lance-serve cleanup``: remove old versions and files that nothing needs."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape
from rich.table import Table

from lance_core.operations.cleanup_plan import FileKind
from service.cli.output import output, print_table
from service.cli.places import (
    BranchOption,
    DatasetArgument,
    StorageOptions,
    bytes_text,
    counted,
    open_for_command,
    progress_bar,
    told_errors,
)

if TYPE_CHECKING:
    from lance_core.operations.cleanup import CleanupReport

_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_OPTIONS = {
    "older_than": "--older-than",
    "retain_versions": "--retain-versions",
    "delete_unverified": "--delete-unverified",
    "error_if_tagged=False": "--keep-tagged",
}
"""What users type for the arguments of the library."""

_AGE = re.compile(r"(\d{1,9})([smhdw])")


def cleanup(
    dataset: DatasetArgument,
    older_than: Annotated[
        str | None,
        typer.Option(
            metavar="AGE",
            help="Only versions older than this, such as `7d`, `12h` or `30m`; 14d if no limit is"
            " given.",
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
            help="Remove files that no version names at once, not after 7 days; nobody may be"
            " writing.",
        ),
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="List what would be removed, and remove nothing.")
    ] = False,
    branch: BranchOption = None,
    storage_option: StorageOptions = None,
) -> None:
    """Remove old versions with all files that only they need, and what failed writers left."""
    age = None if older_than is None else _parse_age(older_than)
    with told_errors(_OPTIONS):
        opened = open_for_command(dataset, storage_option, branch)
        with progress_bar("looking through all versions", None):
            report = opened.cleanup(
                older_than=age,
                retain_versions=retain_versions,
                delete_unverified=delete_unverified,
                error_if_tagged=not keep_tagged,
                dry_run=dry_run,
            )
    _print(report, dry_run=dry_run)


def _parse_age(text: str) -> timedelta:
    found = _AGE.fullmatch(text)
    if found is None:
        raise typer.BadParameter(f"{text!r} is no age; write a number and s, m, h, d or w, as 7d")
    try:
        return timedelta(**{_UNITS[found[2]]: int(found[1])})
    except OverflowError as error:
        raise typer.BadParameter(f"{text!r} is longer than time has been counted") from error


def _print(report: CleanupReport, *, dry_run: bool) -> None:
    console = output()
    verb = "would remove" if dry_run else "removed"
    console.print(
        f"{verb} {counted(len(report.versions), 'version')}, {counted(len(report.files), 'file')},"
        f" {bytes_text(report.num_bytes)}"
    )
    if len(report.files) == 0:
        return
    table = Table("kind")
    for name in ("files", "bytes"):
        table.add_column(name, justify="right")
    for kind in FileKind:
        if report.num_files(kind) > 0:
            num_bytes = sum(file.num_bytes for file in report.files if file.kind is kind)
            table.add_row(kind.value, f"{report.num_files(kind):,}", bytes_text(num_bytes))
    print_table(console, table)
    for file in report.files if dry_run else ():
        console.print(escape(file.path), highlight=False)
