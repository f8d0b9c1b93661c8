"""One way to compile a kernel: typed for mypy, kept on disk where that is safe.

numba keys a compiled function by the source of its own file only, so that a changed helper in
another file would go unseen. Kernels therefore live in a directory whose name carries a hash of
all kernel sources that they import (observed with numba 0.68).
"""

from __future__ import annotations

import ast
import hashlib
import inspect
import os
import shutil
import tempfile
import warnings
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, ParamSpec, TypeVar, cast, overload

import numba
from numba.core import config

if TYPE_CHECKING:
    from collections.abc import Callable

P = ParamSpec("P")
R = TypeVar("R")

FAST_SUMS = frozenset({"reassoc", "contract", "nsz"})
"""Lets sums vectorise while NaN and infinity keep their meaning."""

_PACKAGE = "lance_core.kernels"
_FOLDER = Path(__file__).parent
_warmups: dict[str, Callable[[], None]] = {}


@overload
def kernel(fn: Callable[P, R]) -> Callable[P, R]: ...
@overload
def kernel(
    *, ordered: bool = False, brief: bool = False
) -> Callable[[Callable[P, R]], Callable[P, R]]: ...
def kernel(
    fn: Callable[P, R] | None = None, *, ordered: bool = False, brief: bool = False
) -> Callable[P, R] | Callable[[Callable[P, R]], Callable[P, R]]:
    """Compile ``fn`` and keep its Python signature for mypy; it runs without the GIL.

    Parameters
    ----------
    fn
        The function, when the decorator is used bare.
    ordered
        Add floats strictly in the order written, so that sums equal the oracle's bit for bit;
        otherwise sums may be split over vector lanes.
    brief
        Keep the GIL: for microseconds of work on memory that is there. Other threads take the GIL
        when it is let go of, and getting it back costs more than the work.

    Notes
    -----
    Kernels check no bounds: callers check lengths and offsets before. Read-only, non-contiguous
    and unaligned arrays each compile anew, so callers hand over C-contiguous arrays and pass
    mapped memory by address.
    """
    if fn is None:
        return lambda given: _compile(given, ordered=ordered, brief=brief)
    return _compile(fn, ordered=ordered, brief=brief)


def warmup(call: Callable[[], None]) -> Callable[[], None]:
    """Register ``call``, which runs the kernels of its module once with small arrays.

    The arrays have the types of real ones, so that no kernel is compiled during a query.
    """
    _warmups[call.__module__] = call
    return call


def registered_warmups() -> dict[str, Callable[[], None]]:
    """Return the registered calls by the name of their module."""
    return dict(_warmups)


def source_fingerprint(path: Path) -> str:
    """Hash a kernel source together with all kernel sources it imports, and numba's version."""
    digest = hashlib.sha256(numba.__version__.encode())
    for source in sorted(_with_imports(path)):
        digest.update(source.name.encode() + b"\0")
        digest.update(source.read_bytes())
    return digest.hexdigest()[:16]


def choose_directory(candidates: list[Path]) -> Path | None:
    """Return the first of ``candidates`` that can be written; None, with a warning, if none can.

    One that is new is filled from the first that exists: numba uses only directories that it can
    write to, but a copied cache is valid (observed with numba 0.68). So what an image was built
    with serves a container whose file system is read-only.
    """
    filled = [candidate for candidate in candidates if candidate.is_dir()]
    for candidate in candidates:
        if _can_write(candidate):
            if candidate not in filled and len(filled) > 0:
                shutil.copytree(filled[0], candidate, dirs_exist_ok=True)
            return candidate
    warnings.warn(
        f"compiled kernels are not kept: cannot write to {', '.join(map(str, candidates))}; "
        "set NUMBA_CACHE_DIR to a writable directory",
        RuntimeWarning,
        stacklevel=2,
    )
    return None


def _compile(fn: Callable[P, R], *, ordered: bool, brief: bool) -> Callable[P, R]:
    directory = _cache_directory(Path(inspect.getfile(fn)))
    decorate = numba.njit(
        cache=directory is not None,
        nogil=not brief,
        fastmath=False if ordered else set(FAST_SUMS),
        error_model="numpy",
    )
    numba_settings = vars(config)
    of_others = numba_settings["CACHE_DIR"]
    if directory is not None:
        numba_settings["CACHE_DIR"] = str(directory)  # numba looks here while it decorates
    try:
        return cast("Callable[P, R]", decorate(fn))
    finally:
        numba_settings["CACHE_DIR"] = of_others


def _with_imports(path: Path) -> set[Path]:
    found: set[Path] = set()
    waiting = [path]
    while waiting:
        source = waiting.pop()
        if source not in found:
            found.add(source)
            waiting.extend(_imported_kernels(source))
    return found


def _imported_kernels(source: Path) -> list[Path]:
    tree = ast.parse(source.read_bytes())
    modules = [node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    names = [name.removeprefix(f"{_PACKAGE}.") for name in modules if name is not None]
    paths = [source.parent / f"{name}.py" for name in names]
    return [path for path in paths if path.is_file()]


@cache
def _cache_directory(source: Path) -> Path | None:
    """Choose where the kernels of ``source`` are kept; None where nothing is writable."""
    name = f"lance-kernels-{source_fingerprint(source)}"
    return choose_directory([root / name for root in _cache_roots()])


def _cache_roots() -> list[Path]:
    given = os.environ.get("NUMBA_CACHE_DIR", "")
    user = os.environ.get("XDG_CACHE_HOME", "")
    roots = [
        _FOLDER / "__pycache__",
        Path(user) if user != "" else Path("~/.cache").expanduser(),
    ]  # no shared temporary folder: whoever can write there could plant code
    return [Path(given), *roots] if given != "" else roots


def _can_write(directory: Path) -> bool:
    try:
        directory.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=directory).close()
    except OSError:
        return False
    return True
