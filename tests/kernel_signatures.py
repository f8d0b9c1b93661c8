"""How often each kernel was compiled, to see that nothing is compiled during a query."""

from __future__ import annotations

import importlib
import pkgutil

import lance_core.kernels


def num_signatures() -> dict[str, int]:
    """Return the number of types that each kernel is compiled for, by module and name."""
    counts = {}
    for info in pkgutil.iter_modules(lance_core.kernels.__path__):
        module = importlib.import_module(f"lance_core.kernels.{info.name}")
        for name, member in vars(module).items():
            if hasattr(member, "signatures"):
                counts[f"{info.name}.{name}"] = len(member.signatures)
    return counts
