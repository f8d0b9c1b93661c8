"""RaBitQ codes: one sign per rotated dimension, and up to eight more bits: the form of IVF_RQ."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from lance_core.index.vector.header import global_buffer
from lance_core.index.vector.metric import Metric
from lance_core.index.vector.quantizer import PayloadColumn
from lance_core.index.vector.rabit_extra import extra_layout
from lance_core.index.vector.rabit_parameters import (
    read_rabit_parameters,
    read_rotation_matrix,
    sign_factors,
)
from lance_core.kernels.ivf_rq import EXACT, ROUNDED, ROUNDED_FINELY, RabitCodes, search_rq
from lance_core.kernels.rq_rotation import NUM_ROUNDS
from lance_core.kernels.rq_signs import pack_signs, unpack_signs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from lance_core.index.vector.held_partitions import HeldPartitions
    from lance_core.index.vector.quantizer import SearchOptions, StorageSource
    from lance_core.index.vector.rabit_extra import ExtraLayout
    from lance_core.kernels.topk import TopRows

ERROR_FACTORS = "__error_factors"
"""Column of how far estimates by the sign may be off; not read where there is nothing finer."""

_SIGNS = "_rabit_codes"
_FACTORS = ("__add_factors", "__scale_factors")
_EXTRA = "__blocked_ex_codes"
_ALL_BUT_SIGNS = (*_FACTORS, ERROR_FACTORS, _EXTRA, "__add_factors_ex", "__scale_factors_ex")

_BYTE_BITS = 8
_FLOATS = (pa.float32(),)
_BYTES = (pa.uint8(),)
_LEVELS = {"normal": ROUNDED, "fast": ROUNDED, "accurate": ROUNDED_FINELY}


@dataclass(frozen=True, slots=True, eq=False)
class RabitQuantizer:
    """Codes of the rotated residuals to the partition's centroid.

    Parameters
    ----------
    centroids
        Shape ``(P, d)``, float32.
    codes
        What the kernels need to know of them.
    layout
        Where the extra bits lie.
    is_packed
        Whether stored sign codes are packed by 32 rows, or else lie row by row.

    Notes
    -----
    Vector index page, section 4.4. Every release that wrote extra codes as they are read here wrote
    the errors of estimates by the signs too. pylance 14.0.2 scores files without them in another
    way, so they are not supported (observed with columns taken away; 2 bits are scored alike).
    """

    centroids: NDArray[np.float32]
    codes: RabitCodes
    layout: ExtraLayout
    is_packed: bool

    @property
    def sign_bytes(self) -> int:
        """Bytes of one row's sign code."""
        return int(self.centroids.shape[1]) // _BYTE_BITS

    @property
    def has_extra(self) -> bool:
        """Whether codes have more bits than the sign."""
        return self.codes.num_extra_bits > 0

    @property
    def columns(self) -> tuple[PayloadColumn, ...]:
        """Codes and factors."""
        names = _ALL_BUT_SIGNS if self.has_extra else _FACTORS
        signs = PayloadColumn(_SIGNS, _BYTES, self.sign_bytes)
        return (signs, *(self._column(name) for name in names))

    def _column(self, name: str) -> PayloadColumn:
        if name == _EXTRA:
            return PayloadColumn(name, _BYTES, self.layout.row_bytes)
        return PayloadColumn(name, _FLOATS, None)

    @property
    def num_arrays(self) -> int:
        """Sign codes and two factors; extra codes with two of their own, and errors."""
        return 7 if self.has_extra else 3

    @property
    def raw_row_bytes(self) -> int | None:
        """Codes and factors are in many columns."""
        return None

    @property
    def drops_rows(self) -> bool:
        """Rows that compaction removed are taken out, as pylance does.

        Which rows stand in the last, incomplete block, and so are scored without rounding, depends
        on how many there are.
        """
        return True

    @property
    def nbytes(self) -> int:
        """Memory of the rotation and the layout."""
        return int(self.codes.signs.nbytes + self.codes.matrix.nbytes) + self.layout.nbytes

    def lay_out(
        self, columns: Sequence[NDArray[np.generic]], is_kept: NDArray[np.bool_] | None
    ) -> tuple[NDArray[np.generic], ...]:
        """Return sign codes and the factors to add and to scale by, shape ``(n,)`` each.

        With extra codes there follow errors, shape ``(n,)``, the extra codes, shape
        ``(n, row_bytes)``, and the factors to add and to scale by that belong to them.
        """
        signs, *others = columns
        arrays: list[NDArray[Any]] = [self._packed_signs(signs, is_kept)]
        for name, values in zip(_ALL_BUT_SIGNS[: len(others)], others, strict=True):
            kept = _kept(values, is_kept)
            arrays.append(self.layout.regroup(kept) if name == _EXTRA else kept)
        return tuple(arrays)

    def _packed_signs(
        self, stored: NDArray[Any], is_kept: NDArray[np.bool_] | None
    ) -> NDArray[np.uint8]:
        """Return the sign codes packed, as they are stored unless rows are to be taken out."""
        whole = np.ascontiguousarray(stored)
        if self.is_packed and is_kept is None:
            return whole.reshape(-1).copy()
        rows = unpack_signs(whole.reshape(-1), self.sign_bytes) if self.is_packed else whole
        return pack_signs(_kept(rows, is_kept))

    def search(
        self,
        held: HeldPartitions,
        query: NDArray[np.float32],
        words: NDArray[np.uint64],
        top: TopRows,
        options: SearchOptions,
    ) -> None:
        """Offer every row that its sign code does not rule out.

        Partitions reached by late search are scored without rounding, as pylance 14.0.2 does.
        """
        search_rq(
            held.rows,
            held.partitions,
            query,
            self.centroids,
            self.codes,
            words,
            top,
            levels=EXACT if options.is_late else _LEVELS[options.approx_mode],
            use_extra=options.approx_mode != "fast",
        )


def _kept(values: NDArray[Any], is_kept: NDArray[np.bool_] | None) -> NDArray[Any]:
    """Return the kept rows, C-contiguous, in memory of their own."""
    return np.array(values, order="C") if is_kept is None else values[is_kept]


def open_rabit(source: StorageSource) -> RabitQuantizer:
    """Read the rotation and how codes are laid out.

    Raises
    ------
    UnusableSegmentError
        The form of the codes is not known.
    CorruptFileError
        The metadata or the rotation contradict the format.
    """
    dimension = source.dimension
    parameters = read_rabit_parameters(source.parameters, dimension, source.path)
    signs = np.ones((NUM_ROUNDS, dimension), np.float32)
    matrix = np.empty((0, dimension), np.float32)
    if parameters.rotation_signs is not None:
        signs = sign_factors(parameters.rotation_signs, dimension)
    if parameters.matrix_buffer is not None:
        buffer = global_buffer(source.reader, parameters.matrix_buffer)
        matrix = read_rotation_matrix(buffer, dimension, source.path)
    num_extra_bits = parameters.num_bits - 1
    layout = extra_layout(num_extra_bits, dimension)
    codes = RabitCodes(
        signs=signs,
        matrix=matrix,
        num_extra_bits=num_extra_bits,
        row_bytes=layout.row_bytes,
        fields=layout.fields,
        dimensions=layout.dimensions,
        factors=layout.factors,
        is_residual=parameters.is_residual,
        is_dot=source.metric is Metric.DOT,
    )
    return RabitQuantizer(source.centroids, codes, layout, parameters.is_packed)
