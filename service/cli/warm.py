"""``lance-serve warm``: compile all kernels into the cache on disk."""

from __future__ import annotations

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from lance_core.kernels.warm import compile_kernels


def warm() -> None:
    """Compile the kernels now, so that the service starts in a second.

    Needed once per machine and release; image builds run it. The compiled code lies in the
    directory NUMBA_CACHE_DIR or beside the package.
    """
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=console) as progress:
        task = progress.add_task("kernels", total=None)
        compile_kernels(
            lambda name, done, total: progress.update(
                task, description=name, completed=done, total=total
            )
        )
    console.print("kernels are compiled")
