"""How the vectors of a partition are coded, and how their codes lie in files."""

from __future__ import annotations

from dataclasses import dataclass
from mmap import MAP_ANONYMOUS, MAP_PRIVATE, mmap
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from lance_core.index.vector.build.assign import share_rows
from lance_core.kernels.memory import address_of
from lance_core.kernels.sq_encode import encode_scalars

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from lance_core.index.vector.build.model import SqCoding
    from lance_core.index.vector.build.usable import UsableVectors

FLAT_COLUMN = "flat"
SQ_COLUMN = "__sq_code"

_MAPPED_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class CodedColumn:
    """A column of ``auxiliary.idx`` beside the row ids.

    Parameters
    ----------
    name
        Its name.
    dtype
        Of its numbers.
    width
        Numbers of a row, in a fixed-size list; None = one, not in a list.
    is_nullable
        Whether pylance declares it so; no value is null.
    """

    name: str
    dtype: np.dtype[Any]
    width: int | None
    is_nullable: bool = True

    @property
    def row_bytes(self) -> int:
        """Bytes of a row."""
        return self.dtype.itemsize * (1 if self.width is None else self.width)

    def empty(self, num_rows: int) -> NDArray[Any]:
        """Return memory for some rows, which goes back to the system when it is no longer used.

        Heaps keep holes between the arrays of various sizes that files are made of: a build took
        twice the memory that it had in use.
        """
        shape = (num_rows,) if self.width is None else (num_rows, self.width)
        if num_rows * self.row_bytes < _MAPPED_BYTES:
            return np.empty(shape, self.dtype)
        return np.ndarray(
            shape,
            self.dtype,
            mmap(-1, num_rows * self.row_bytes, flags=MAP_PRIVATE | MAP_ANONYMOUS),
        )


class Encoder(Protocol):
    """Codes vectors by a model."""

    @property
    def columns(self) -> tuple[CodedColumn, ...]:
        """What is stored of a row beside its id."""

    def encode(
        self, vectors: UsableVectors, partitions: NDArray[np.uint32]
    ) -> Mapping[str, NDArray[Any]]:
        """Code vectors.

        Parameters
        ----------
        vectors
            ``n`` vectors.
        partitions
            Shape ``(n,)``: where they belong.

        Returns
        -------
        Mapping
            By the name of the column, shape ``(n, width)`` or ``(n,)``; row after row.
        """

    def lay_out(
        self, columns: Mapping[str, NDArray[Any]], lengths: Sequence[int]
    ) -> Mapping[str, NDArray[Any]]:
        """Arrange the coded rows of partitions as files hold them, in arrays of the same shapes.

        Parameters
        ----------
        columns
            As `encode` returns them, partition after partition.
        lengths
            Rows of each.
        """


@dataclass(frozen=True, slots=True)
class FlatEncoder:
    """Keeps vectors as they are, of the column's own type."""

    dimension: int
    dtype: np.dtype[Any]

    @property
    def columns(self) -> tuple[CodedColumn, ...]:
        """The vectors."""
        is_nullable = self.dtype == np.uint8
        return (CodedColumn(FLAT_COLUMN, self.dtype, self.dimension, is_nullable),)

    def encode(
        self, vectors: UsableVectors, partitions: NDArray[np.uint32]
    ) -> Mapping[str, NDArray[Any]]:
        """Return the vectors."""
        del partitions
        return {FLAT_COLUMN: vectors.values}

    def lay_out(
        self, columns: Mapping[str, NDArray[Any]], lengths: Sequence[int]
    ) -> Mapping[str, NDArray[Any]]:
        """Return what is given."""
        del lengths
        return columns


@dataclass(frozen=True, slots=True)
class ScalarEncoder:
    """Codes each coordinate by one byte."""

    dimension: int
    coding: SqCoding

    @property
    def columns(self) -> tuple[CodedColumn, ...]:
        """The codes."""
        return (CodedColumn(SQ_COLUMN, np.dtype(np.uint8), self.dimension),)

    def encode(
        self, vectors: UsableVectors, partitions: NDArray[np.uint32]
    ) -> Mapping[str, NDArray[Any]]:
        """Return codes between the bounds of the model."""
        del partitions
        numbers = vectors.numbers
        codes = np.empty(numbers.shape, np.uint8)

        def encode(start: int, end: int) -> None:
            own, bounds = numbers[start:end], (self.coding.start, self.coding.end)
            encode_scalars(address_of(own), *bounds, codes[start:end].reshape(-1))

        share_rows(len(numbers), encode)
        return {SQ_COLUMN: codes}

    def lay_out(
        self, columns: Mapping[str, NDArray[Any]], lengths: Sequence[int]
    ) -> Mapping[str, NDArray[Any]]:
        """Return what is given."""
        del lengths
        return columns


def parts_of(lengths: Sequence[int]) -> Iterator[slice]:
    """Yield where each of some runs of these lengths lies, one after the other."""
    start = 0
    for length in lengths:
        yield slice(start, start + length)
        start += length
