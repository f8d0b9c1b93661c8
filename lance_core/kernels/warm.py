"""Compile or load every kernel before the first query."""

from __future__ import annotations

import gc
import importlib
import os
import pkgutil
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import TYPE_CHECKING

import lance_core.kernels
from lance_core.kernels.compile import registered_warmups

if TYPE_CHECKING:
    from collections.abc import Callable

_MOST_PROCESSES = 4


def warm_kernels(progress: Callable[[str, int, int], None] | None = None) -> None:
    """Run every kernel once, so that none is compiled or loaded during a query.

    Parameters
    ----------
    progress
        Called before each module with its name, the number done and the number of all.
    """
    calls = _all_warmups()
    for done, (name, call) in enumerate(calls.items()):
        if progress is not None:
            progress(name.rpartition(".")[2], done, len(calls))
        call()
    gc.collect()  # what loading leaves takes 10 ms to look through: not during the first query


def compile_kernels(
    progress: Callable[[str, int, int], None] | None = None, num_processes: int | None = None
) -> None:
    """Compile every kernel into the cache on disk, several at a time, and load all of them.

    The compiler holds the GIL, so processes share the work. A helper that kernels of two modules
    call may be compiled twice, which takes a fifth more CPU time in all.

    Parameters
    ----------
    progress
        Called after each module with its name, the number done and the number of all.
    num_processes
        None = one for each core, four at most: each takes 400 MB.
    """
    names = list(_all_warmups())
    number = min(os.cpu_count() or 1, _MOST_PROCESSES) if num_processes is None else num_processes
    with ProcessPoolExecutor(number, mp_context=get_context("spawn")) as pool:
        for done, name in enumerate(pool.map(_compile, names), start=1):
            if progress is not None:
                progress(name.rpartition(".")[2], done, len(names))
    warm_kernels()  # also what one process kept and another, at the same moment, wrote over


def _compile(name: str) -> str:
    """Run the kernels of a module; in a process of its own."""
    _all_warmups()[name]()
    return name


def _all_warmups() -> dict[str, Callable[[], None]]:
    for module in pkgutil.iter_modules(lance_core.kernels.__path__):
        importlib.import_module(f"lance_core.kernels.{module.name}")
    return registered_warmups()
