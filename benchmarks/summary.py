"""From timed blocks of two sides to figures: percentiles, CPU per query, ratios per block."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from numpy.typing import NDArray

    from benchmarks.workers import Block


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Summary:
    """One side of one case, in milliseconds; CPU is user and system time per query."""

    p10_ms: float
    p50_ms: float
    p95_ms: float
    cpu_ms: float
    queries_per_s: float


@dataclass(frozen=True, slots=True)
class Ratios:
    """Ours divided by the peer's: medians over the blocks, CPU over all blocks together."""

    p50: float
    cpu: float
    throughput: float


def interleave(
    ours: Callable[[T], Block], peer: Callable[[T], Block], parts: Iterable[T]
) -> tuple[list[Block], list[Block]]:
    """Run every part on both sides in turn, so that a busy machine slows both."""
    blocks: tuple[list[Block], list[Block]] = ([], [])
    for part in parts:
        for measure, side in zip((ours, peer), blocks, strict=True):
            side.append(measure(part))
    return blocks


def summarise(blocks: Sequence[Block]) -> Summary:
    """Return the figures of one side over all its blocks."""
    latencies = np.concatenate([block.latencies_ms for block in blocks])
    p10, p50, p95 = np.percentile(latencies, [10, 50, 95])
    return Summary(
        p10_ms=float(p10),
        p50_ms=float(p50),
        p95_ms=float(p95),
        cpu_ms=sum(block.cpu_ms for block in blocks) / len(latencies),
        queries_per_s=len(latencies) * 1e3 / sum(block.wall_ms for block in blocks),
    )


def compare(ours: Sequence[Block], peer: Sequence[Block]) -> Ratios:
    """Return the ratios of interleaved blocks, taken in the order in which they ran."""
    pairs = list(zip(ours, peer, strict=True))
    p50s = [np.median(a.latencies_ms) / np.median(b.latencies_ms) for a, b in pairs]
    rates = [
        (len(a.latencies_ms) / a.wall_ms) / (len(b.latencies_ms) / b.wall_ms) for a, b in pairs
    ]
    return Ratios(
        p50=float(np.median(p50s)),
        cpu=summarise(ours).cpu_ms / summarise(peer).cpu_ms,
        throughput=float(np.median(rates)),
    )


def recall(found: NDArray[np.int64], exact: NDArray[np.int64]) -> float:
    """Return the share of the exact neighbours that were found; both ``(m, k)``."""
    hits = sum(len(np.intersect1d(row, truth)) for row, truth in zip(found, exact, strict=True))
    return hits / exact.size
