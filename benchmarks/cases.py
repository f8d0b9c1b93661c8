"""What is asked, identically of both sides: same files, same nprobes, refine and k."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from benchmarks.datasets import Size

K = 10


@dataclass(frozen=True, slots=True)
class Case:
    """One kind of query against one dataset of a set.

    ``warm_up_queries`` run first, unmeasured, to fill caches and find recall; each block then
    times ``block_queries``. ``num_probes`` None is an exact scan.
    """

    name: str
    dataset: str
    num_probes: int | None
    refine_factor: int | None = None
    warm_up_queries: int = 1_000
    block_queries: int = 200

    @property
    def label(self) -> str:
        """Return the case with its parameters, as tables show it."""
        if self.num_probes is None:
            return "exact scan"
        refine = "no refine" if self.refine_factor is None else f"refine {self.refine_factor}"
        return f"{self.dataset.upper()} nprobes {self.num_probes} {refine}"


def headline_case(size: Size) -> Case:
    """Return the case of bars 1, 3 and 8."""
    return Case("pq_refine", "ivf_pq", size.num_probes, refine_factor=10)


def flat_case(size: Size) -> Case:
    """Return the case of bar 4 that has a bar of its own."""
    return Case("flat", "ivf_flat", size.num_probes)


def rabit_case(size: Size) -> Case:
    """Return the case of bar 2."""
    return Case("rq", "ivf_rq", size.num_probes)


def in_process_cases(size: Size) -> list[Case]:
    """Return the cases that are measured without HTTP."""
    return [
        headline_case(size),
        Case("pq", "ivf_pq", size.num_probes),
        flat_case(size),
        rabit_case(size),
        Case("rq_refine", "ivf_rq", size.num_probes, refine_factor=4),
        Case("sq", "ivf_sq", size.num_probes),
        Case("sq_refine", "ivf_sq", size.num_probes, refine_factor=4),
        Case("hnsw", "ivf_hnsw_sq", size.graph_probes, refine_factor=4),
        Case("appended", "ivf_pq_appended", size.num_probes, refine_factor=10),
        Case("exact", "ivf_pq", None, warm_up_queries=10, block_queries=10),
    ]
