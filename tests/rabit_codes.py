"""RaBitQ by the definitions of the vector index page, section 4.4, in plain numpy and float64."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

PLACES = [0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15]


def packed_by_definition(codes: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Pack sign codes of shape ``(n, num_bytes)`` as files hold them."""
    num_rows, num_bytes = codes.shape
    whole = num_rows // 32 * 32
    out = []
    for first in range(0, whole, 32):
        for b in range(num_bytes):
            near, far = codes[first : first + 16, b], codes[first + 16 : first + 32, b]
            out += [(near[p] & 15) | ((far[p] & 15) << 4) for p in PLACES]
            out += [(near[p] >> 4) | ((far[p] >> 4) << 4) for p in PLACES]
    return np.array([*out, *codes[whole:].T.ravel()], np.uint8)


def extra_bytes(values: NDArray[np.uint8], num_bits: int) -> NDArray[np.uint8]:
    """Pack the extra codes of one row, shape ``(d,)``, by blocks of 64 dimensions."""
    padded = np.zeros(-(-len(values) // 64) * 64, np.uint8)
    padded[: len(values)] = values
    return np.concatenate([_extra_block(v, num_bits) for v in padded.reshape(-1, 64)])


def _extra_block(v: Any, num_bits: int) -> Any:
    if num_bits == 1:
        return np.packbits(v, bitorder="little")
    if num_bits == 2:
        return v[:16] | v[16:32] << 2 | v[32:48] << 4 | v[48:] << 6
    if num_bits == 4:
        quarters = v.reshape(4, 2, 8)
        return (quarters[:, 0] | quarters[:, 1] << 4).ravel()
    if num_bits == 6:
        last = np.concatenate([(v[48:] >> 2 * k) & 3 for k in range(3)])
        return v[:48] | last << 6
    if num_bits == 8:
        return v
    low_bits = num_bits - 1
    low = v & ((1 << low_bits) - 1)
    if num_bits == 5:
        main = np.concatenate([low[:16] | low[16:32] << 4, low[32:48] | low[48:] << 4])
    else:
        main = _extra_block(low, low_bits)
    plane = sum(
        int(v[16 * k + b] >> low_bits) << (8 * (b % 8) + 2 * k + b // 8)
        for k in range(4)
        for b in range(16)
    )
    return np.concatenate([main, np.frombuffer(plane.to_bytes(8, "little"), np.uint8)])


@dataclass(frozen=True, eq=False)
class CodedPartition:
    """Rows of one partition as a file holds them, not packed.

    ``signs`` and ``extra`` have shape ``(n, d)``, all else ``(n,)``.
    """

    signs: NDArray[np.uint8]
    add: NDArray[np.float32]
    scale: NDArray[np.float32]
    errors: NDArray[np.float32]
    extra: NDArray[np.uint8]
    add_extra: NDArray[np.float32]
    scale_extra: NDArray[np.float32]

    def estimates(
        self, rotated: NDArray[np.float64], added: float, ratio: float = 1, origin: float = 0
    ) -> NDArray[np.float64]:
        """Return the distances that the signs tell."""
        known = ratio * (self.add.astype(np.float64) - origin) + added
        products = self.signs @ rotated - rotated.sum() / 2
        result: NDArray[np.float64] = products * self.scale + known
        return result

    def distances(
        self,
        rotated: NDArray[np.float64],
        added: float,
        num_bits: int,
        ratio: float = 1,
        origin: float = 0,
    ) -> NDArray[np.float64]:
        """Return the distances that ``num_bits`` extra bits tell too."""
        known = ratio * (self.add_extra.astype(np.float64) - origin) + added
        unit = 1 << num_bits
        products = unit * (self.signs @ rotated) + self.extra @ rotated
        result: NDArray[np.float64] = (products - (unit - 0.5) * rotated.sum()) * self.scale_extra
        return result + known


def random_partition(
    generator: np.random.Generator, num_rows: int, dimension: int, num_bits: int
) -> CodedPartition:
    """Draw codes and factors of the usual sizes."""

    def floats() -> NDArray[np.float32]:
        return generator.random(num_rows, np.float32)

    return CodedPartition(
        generator.integers(0, 2, (num_rows, dimension)).astype(np.uint8),
        floats() * 10,
        -floats(),
        floats(),
        generator.integers(0, 1 << num_bits, (num_rows, dimension)).astype(np.uint8),
        floats() * 10,
        -floats() / np.float32(1 << num_bits),
    )
