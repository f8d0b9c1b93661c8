"""Reading as steps: a decoder asks for byte ranges and is resumed with their bytes.

Decoders do no I/O. They are generators that yield the ranges they need next, receive one buffer
per range, and return the result; whoever drives many of them reads all their ranges at once.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import TypeVar

T = TypeVar("T")

ByteRanges = list[tuple[int, int]]
ReadSteps = Generator[ByteRanges, Sequence[memoryview], T]
"""Yields ``(start, end)`` file ranges, is sent their bytes in order, returns ``T``."""


def together(reads: Sequence[ReadSteps[T]]) -> ReadSteps[list[T]]:
    """Run several reads in lockstep, so that each step is one list of ranges for all of them.

    Returns
    -------
    list[T]
        The results, in the order of ``reads``.
    """
    if len(reads) == 1:
        return [(yield from reads[0])]
    results: dict[int, T] = {}
    waiting: dict[int, ByteRanges] = {}
    for index, read in enumerate(reads):
        _advance(index, read, None, results, waiting)
    while len(waiting) > 0:
        asked = list(waiting.items())
        buffers = yield [span for _, ranges in asked for span in ranges]
        position = 0
        for index, ranges in asked:
            answer = buffers[position : position + len(ranges)]
            position += len(ranges)
            _advance(index, reads[index], answer, results, waiting)
    return [results[index] for index in range(len(reads))]


def _advance(
    index: int,
    read: ReadSteps[T],
    answer: Sequence[memoryview] | None,
    results: dict[int, T],
    waiting: dict[int, ByteRanges],
) -> None:
    try:
        waiting[index] = next(read) if answer is None else read.send(answer)
    except StopIteration as stop:
        waiting.pop(index, None)
        results[index] = stop.value


def drive(read: ReadSteps[T], fetch: Callable[[ByteRanges], Sequence[memoryview]]) -> T:
    """Run a read to its end; ``fetch`` returns one buffer per range."""
    try:
        ranges = next(read)
        while True:
            ranges = read.send(fetch(ranges) if len(ranges) > 0 else ())
    except StopIteration as stop:
        result: T = stop.value
        return result
