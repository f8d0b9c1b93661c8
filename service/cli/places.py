"""What the commands on datasets share: options, errors, numbers as people read them."""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from lance_core.dataset import Dataset, open_dataset
from lance_core.errors import InvalidRequestError, LanceError
from lance_core.table.dataset_stores import open_dataset_store
from lance_core.table.naming import VERSIONS_FOLDER
from service.cli.output import output

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_FEW_BYTES = 10_000
_UNITS = {"": 0, "k": 10, "m": 20, "g": 30}
_BYTES = re.compile(r"(\d{1,12})\s*([kmg]?)(?:i?b)?", re.IGNORECASE)

DatasetArgument = Annotated[
    str,
    typer.Argument(
        help="Folder or URI of the dataset: `a.lance`, `s3://bucket/a.lance`.", metavar="DATASET"
    ),
]
StorageOptions = Annotated[
    list[str] | None,
    typer.Option(
        "--storage-option",
        metavar="KEY=VALUE",
        help="Configuration of the object store, such as `aws_region=eu-west-1`; may be repeated.",
    ),
]
BranchOption = Annotated[
    str | None, typer.Option("--branch", help="Branch to work on; the main one if left out.")
]
MemoryOption = Annotated[
    str | None,
    typer.Option(
        "--memory",
        metavar="SIZE",
        help="About how much memory to take, such as `512M` or `2G`; 256M if left out. What does"
        " not fit is put on disk meanwhile.",
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON, with everything.")]


def parse_options(given: list[str] | None) -> dict[str, str] | None:
    """Return storage options as a mapping, None where there are none."""
    if not given:
        return None
    pairs = [each.partition("=") for each in given]
    for key, equals, _ in pairs:
        if key == "" or equals == "":
            raise typer.BadParameter("give storage options as KEY=VALUE")
    return {key: value for key, _, value in pairs}


def open_for_command(
    dataset: str,
    storage_options: list[str] | None,
    branch: str | None = None,
    version: str | None = None,
) -> Dataset:
    """Open a dataset; ``version`` is a number or a tag."""
    wanted = int(version) if version is not None and version.isdecimal() else version
    options = parse_options(storage_options)
    return open_dataset(dataset, wanted, branch=branch, storage_options=options)


def is_dataset(uri: str, storage_options: list[str] | None) -> bool:
    """Tell whether there are versions of a dataset at a place."""
    folders, _ = open_dataset_store(uri, parse_options(storage_options)).list_folder("")
    return VERSIONS_FOLDER in folders


@contextmanager
def told_errors(options: Mapping[str, str] | None = None) -> Iterator[None]:
    """Print what went wrong and end with status 1; arguments are named as those of commands.

    Parameters
    ----------
    options
        What users type, by the name of the argument of the library that it stands for.
    """
    try:
        yield
    except (LanceError, OSError) as error:
        text = str(error)
        if isinstance(error, InvalidRequestError):
            text = as_typed(text, {} if options is None else options)
        output(stderr=True).print(f"[red]error:[/red] {escape(text)}", highlight=False)
        raise typer.Exit(1) from error


def as_typed(text: str, options: Mapping[str, str]) -> str:
    """Put what users type where a text names arguments of the library.

    A plain word is taken for a name only where the text begins with it, and nothing in quotes is.

    Examples
    --------
    >>> options = {"zone_size": "--zone-rows", "m": "--m"}
    >>> as_typed("zone_size is 0; it may be 1 to 9", options)
    '--zone-rows is 0; it may be 1 to 9'
    >>> as_typed('column "zone_size" has no m', options)
    'column "zone_size" has no m'
    """
    for name, option in options.items():
        start = r"^" if name.isalpha() else r"(?<![\w.\"'`])"
        text = re.sub(rf"{start}{re.escape(name)}(?![\w\"'`])", option, text)
    return text


@contextmanager
def progress_bar(text: str, total: int | None) -> Iterator[ProgressBar]:
    """Show a bar on standard error while the block runs, with the time taken and the time left.

    A spinner where the end is unknown, and nothing where standard error is no terminal.
    """
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    console = Console(stderr=True)
    is_hidden = not console.is_interactive  # else it would leave an empty line
    with Progress(*columns, console=console, transient=True, disable=is_hidden) as progress:
        yield ProgressBar(progress, text, total)


class ProgressBar:
    """One bar."""

    def __init__(self, progress: Progress, text: str, total: int | None) -> None:
        self._progress = progress
        self._task = progress.add_task(text, total=total)

    def advance(self, count: int = 1) -> None:
        """Move on by some."""
        self._progress.advance(self._task, count)

    def move_to(self, done: int, total: int) -> None:
        """Say how much is done of how much."""
        self._progress.update(self._task, completed=done, total=total)


def parse_bytes(text: str) -> int:
    """Read a number of bytes as people write it; units are powers of 1024.

    Examples
    --------
    >>> parse_bytes("512M"), parse_bytes("2 GiB"), parse_bytes("1000")
    (536870912, 2147483648, 1000)
    """
    found = _BYTES.fullmatch(text.strip())
    if found is None:
        raise typer.BadParameter(f"{text!r} is no size; write a number and K, M or G, as 512M")
    return int(found[1]) << _UNITS[found[2].lower()]


def bytes_text(count: int) -> str:
    """Write a number of bytes with about three digits.

    Examples
    --------
    >>> bytes_text(512), bytes_text(123_456)
    ('512 B', '120.6 KiB')
    """
    size = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < _FEW_BYTES:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} TiB"


def counted(count: int, what: str) -> str:
    """Write a number of things.

    Examples
    --------
    >>> counted(1, "row"), counted(12_000, "row")
    ('1 row', '12,000 rows')
    """
    return f"{count:,} {what}" if count == 1 else f"{count:,} {what}s"
