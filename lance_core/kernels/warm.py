"""Compile or load every kernel before the first query."""

from __future__ import annotations

import gc
import importlib
import pkgutil
from typing import TYPE_CHECKING

import lance_core.kernels
from lance_core.kernels.compile import registered_warmups

if TYPE_CHECKING:
    from collections.abc import Callable


def warm_kernels(progress: Callable[[str, int, int], None] | None = None) -> None:
    """Run every kernel once, so that none is compiled or loaded during a query.

    Parameters
    ----------
    progress
        Called before each module with its name, the number done and the number of all.
    """
    for module in pkgutil.iter_modules(lance_core.kernels.__path__):
        importlib.import_module(f"lance_core.kernels.{module.name}")
    calls = registered_warmups()
    for done, (name, call) in enumerate(calls.items()):
        if progress is not None:
            progress(name.rpartition(".")[2], done, len(calls))
        call()
    gc.collect()  # what loading leaves takes 10 ms to look through: not during the first query
