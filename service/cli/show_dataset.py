"""What ``lance-serve inspect`` shows of a dataset, with a picture of its coverage."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.markup import escape
from rich.table import Table

from service.cli.index_list import index_table
from service.cli.output import print_table
from service.cli.places import bytes_text, counted
from service.cli.show_advice import show_advice

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from lance_core.dataset.inspect import DatasetReport

_SHADES = "·░▒▓█"
_PICTURE_WIDTH = 60
_VERSIONS_SHOWN = 10
_FRAGMENTS_SHOWN = 20


def show_dataset(console: Console, report: DatasetReport) -> None:
    """Print all of a report: what there is, a picture of coverage, and advice."""
    _print_summary(console, report)
    print_table(console, _schema(report), folded=("type",))
    print_table(console, _versions(report), folded=("tags",))
    print_table(console, _fragments(report))
    if report.indices:
        table = index_table(report.indices)
        table.title, table.title_justify = "Indices", "left"
        print_table(console, table)
    _print_picture(console, report)
    _print_reuse(console, report)
    show_advice(console, report.advice)


def _print_summary(console: Console, report: DatasetReport) -> None:
    branch = "" if report.branch is None else f" of branch {escape(report.branch)}"
    sizes = [each.num_bytes for each in report.fragments]
    known = [size for size in sizes if size is not None]
    size = bytes_text(sum(known)) if len(known) == len(sizes) else "size not recorded"
    console.print(f"[bold]{escape(report.uri)}[/bold]", highlight=False)
    console.print(
        f"version {report.version}{branch}, {counted(report.num_rows, 'row')},"
        f" {counted(len(report.fragments), 'fragment')}, {size},"
        f" files of version {', '.join(report.data_storage_versions) or '-'},"
        f" row ids {'stable' if report.has_stable_row_ids else 'are addresses'}"
    )
    if report.branches:
        console.print(f"branches: {escape(', '.join(report.branches))}", highlight=False)
    for key, value in report.config.items():
        console.print(f"{escape(key)} = {escape(value)}", highlight=False)


def _schema(report: DatasetReport) -> Table:
    table = Table("column", "type", title="Schema", title_justify="left")
    for name, kind in report.schema.items():
        table.add_row(escape(name), escape(kind))
    return table


def _versions(report: DatasetReport) -> Table:
    hidden = len(report.versions) - _VERSIONS_SHOWN
    title = "Versions" if hidden <= 0 else f"Versions, the last {_VERSIONS_SHOWN} and tagged ones"
    table = Table(title=title, title_justify="left")
    table.add_column("version", justify="right")
    table.add_column("committed")
    table.add_column("tags")
    for place, each in enumerate(report.versions):
        if place >= hidden or each.tags:
            table.add_row(str(each.version), each.timestamp, escape(", ".join(each.tags)))
    return table


def _fragments(report: DatasetReport) -> Table:
    shown = report.fragments[:_FRAGMENTS_SHOWN]
    some = "" if len(shown) == len(report.fragments) else f", the first {len(shown)}"
    table = Table(title=f"Fragments{some}", title_justify="left")
    for name in ("id", "rows", "deleted", "files", "bytes"):
        table.add_column(name, justify="right")
    for each in shown:
        table.add_row(
            str(each.id),
            f"{each.physical_rows:,}",
            f"{each.num_deleted_rows:,}",
            str(each.num_data_files),
            "-" if each.num_bytes is None else bytes_text(each.num_bytes),
        )
    return table


def _print_picture(console: Console, report: DatasetReport) -> None:
    """Print one line of shades for the deleted share and one per index, fragments from the left."""
    fragments = report.fragments
    if len(fragments) == 0:
        return
    lines = {"deleted": [_share(each.num_deleted_rows, each.physical_rows) for each in fragments]}
    for index in report.indices:
        covered = set(index.covered)
        lines[index.name] = [float(each.id in covered) for each in fragments]
    width = max(map(len, lines))
    each_stands_for = -(-len(fragments) // _PICTURE_WIDTH)
    unit = "a fragment" if each_stands_for == 1 else f"up to {each_stands_for} fragments"
    console.print(f"Coverage: a character is {unit}, {_SHADES[0]} none to {_SHADES[-1]} all")
    for name, shares in lines.items():
        console.print(f"{escape(name):<{width}}  {_picture(shares)}", highlight=False)


def _picture(shares: Sequence[float]) -> str:
    """Return a character per fragment, or per group of neighbours where there are many."""
    step = -(-len(shares) // _PICTURE_WIDTH)
    groups = [shares[start : start + step] for start in range(0, len(shares), step)]
    return "".join(_shade(sum(group) / len(group)) for group in groups)


def _shade(share: float) -> str:
    """Return the darkest shade for everything only, and the lightest for nothing only."""
    last = len(_SHADES) - 1
    if share in {0.0, 1.0}:
        return _SHADES[round(share) * last]
    return _SHADES[min(max(round(share * last), 1), last - 1)]


def _print_reuse(console: Console, report: DatasetReport) -> None:
    if report.reuse is None:
        return
    reuse = report.reuse
    console.print(
        f"Fragment Reuse Index: {counted(reuse.num_versions, 'deferred compaction')} of"
        f" {counted(reuse.num_fragments, 'fragment')}, {bytes_text(reuse.num_bytes)};"
        f" {reuse.num_removable} are no longer needed"
    )


def _share(part: int, whole: int) -> float:
    return part / whole if whole > 0 else 0.0
