"""How the extra codes of RaBitQ lie in a row's bytes (vector index page, section 4.4).

A row is made of blocks of 64 dimensions. With an odd number of bits a block ends with a plane of
eight bytes that holds one bit of every dimension; the bytes before hold the other bits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from lance_core.kernels.rq_pack import pack_fields

if TYPE_CHECKING:
    from numpy.typing import NDArray

BLOCK_DIMENSIONS = 64

_PLANE_BYTES = 8


@dataclass(frozen=True, slots=True, eq=False)
class _Field:
    """Bits at one place of every byte of a block, main bytes or plane.

    ``dimensions`` tells which dimension of the block a byte holds and ``units`` what the lowest of
    the bits counts; both have one entry per byte.
    """

    shift: int
    mask: int
    dimensions: NDArray[np.int64]
    units: NDArray[np.float32]


@dataclass(frozen=True, slots=True, eq=False)
class ExtraLayout:
    """Where the bits of extra codes lie, once the planes of a row follow its other bytes.

    Parameters
    ----------
    num_blocks
        Blocks of a row.
    main_bytes
        Bytes of a block before its plane.
    has_plane
        Whether it has one.
    fields, dimensions, factors
        As `lance_core.kernels.rq_extra` takes them.
    """

    num_blocks: int
    main_bytes: int
    has_plane: bool
    fields: NDArray[np.int64]
    dimensions: NDArray[np.int64]
    factors: NDArray[np.float32]

    @property
    def row_bytes(self) -> int:
        """Bytes of one row."""
        return self.num_blocks * (self.main_bytes + _PLANE_BYTES * self.has_plane)

    @property
    def nbytes(self) -> int:
        """Memory of the arrays."""
        return int(self.fields.nbytes + self.dimensions.nbytes + self.factors.nbytes)

    def regroup(self, codes: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Move the planes of every row behind its other bytes.

        Parameters
        ----------
        codes
            Shape ``(n, row_bytes)``, as stored.

        Returns
        -------
        NDArray[np.uint8]
            Of the same shape; the codes themselves where that moves nothing.
        """
        if not self.has_plane or self.main_bytes == 0:
            return codes
        block_bytes = self.row_bytes // self.num_blocks
        blocks = codes.reshape(len(codes), self.num_blocks, block_bytes)
        main, planes = blocks[:, :, : self.main_bytes], blocks[:, :, self.main_bytes :]
        behind = self.num_blocks * self.main_bytes
        regrouped = np.empty(codes.shape, np.uint8)
        regrouped[:, :behind] = main.reshape(len(codes), behind)
        regrouped[:, behind:] = planes.reshape(len(codes), self.row_bytes - behind)
        return regrouped

    def pack(self, codes: NDArray[np.uint8], packed: NDArray[np.uint8]) -> None:
        """Pack codes as files hold them.

        Parameters
        ----------
        codes
            Shape ``(n, d)``.
        packed
            Shape ``(n, row_bytes)``, zeros.
        """
        units = np.log2(self.factors).astype(np.int64)
        pack_fields(codes, self.fields, self.dimensions, units, packed)
        if self.has_plane and self.main_bytes > 0:
            behind = self.num_blocks * self.main_bytes
            parts = [packed[:, :behind], packed[:, behind:]]
            blocks = [part.reshape(len(packed), self.num_blocks, -1) for part in parts]
            packed[:] = np.concatenate(blocks, axis=2).reshape(packed.shape)


def extra_layout(num_bits: int, dimension: int) -> ExtraLayout:
    """Return the layout of codes of ``num_bits`` bits, 0 to 8, per dimension."""
    num_blocks = -(-dimension // BLOCK_DIMENSIONS) if num_bits > 0 else 0
    has_plane = num_bits % 2 == 1
    main = _main_fields(num_bits)
    main_bytes = 0 if len(main) == 0 else len(main[0].dimensions)
    plane = _plane_fields(num_bits) if has_plane else []
    places = [(0, field) for field in main] + [(num_blocks * main_bytes, field) for field in plane]
    firsts = BLOCK_DIMENSIONS * np.arange(num_blocks)[:, None]
    fields = [
        (first, num_blocks * len(field.dimensions), field.shift, field.mask)
        for first, field in places
    ]
    dimensions = [(firsts + field.dimensions).ravel() for _, field in places]
    factors = [np.tile(field.units, num_blocks) for _, field in places]
    return ExtraLayout(
        num_blocks,
        main_bytes,
        has_plane,
        np.array(fields, np.int64).reshape(-1, 4),
        np.concatenate([np.empty(0, np.int64), *dimensions]),
        np.concatenate([np.empty(0, np.float32), *factors]),
    )


def _main_fields(num_bits: int) -> list[_Field]:
    """Return the fields of the bytes before the plane, which hold an even number of bits."""
    low_bits = num_bits - num_bits % 2
    byte = np.arange(low_bits * BLOCK_DIMENSIONS // 8)
    ones = np.ones(len(byte), np.float32)
    match low_bits:
        case 2:
            return [_Field(2 * turn, 3, 16 * turn + byte, ones) for turn in range(4)]
        case 4:
            # The nibbles of a byte are that far apart, in dimensions.
            gap = 16 if num_bits > low_bits else 8
            first = 2 * gap * (byte // gap) + byte % gap
            return [_Field(0, 15, first, ones), _Field(4, 15, first + gap, ones)]
        case 6:
            # The last sixteen dimensions lie in the upper bits of the others, two bits in each.
            units = np.float32(4) ** (byte // 16).astype(np.float32)
            return [_Field(0, 63, byte, ones), _Field(6, 3, 48 + byte % 16, units)]
        case 8:
            return [_Field(0, 255, byte, ones)]
    return []


def _plane_fields(num_bits: int) -> list[_Field]:
    """Return the fields of the plane, one per bit of its bytes."""
    byte = np.arange(_PLANE_BYTES)
    units = np.full(_PLANE_BYTES, 1 << (num_bits - 1), np.float32)
    if num_bits == 1:
        return [_Field(bit, 1, 8 * byte + bit, units) for bit in range(8)]
    return [_Field(bit, 1, 16 * (bit // 2) + 8 * (bit % 2) + byte, units) for bit in range(8)]
