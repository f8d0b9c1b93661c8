"""Product-quantised vectors: a code of 8 or 4 bits per sub-vector."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from google.protobuf.message import DecodeError

from lance_core.errors import CorruptFileError
from lance_core.index.registry import UnusableSegmentError
from lance_core.index.vector.header import global_buffer, positive_number, tensor_values
from lance_core.index.vector.metric import Metric
from lance_core.index.vector.quantizer import PayloadColumn
from lance_core.kernels.ivf_pq import search_pq
from lance_core.proto import index_pb2

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from lance_core.index.vector.held_partitions import HeldPartitions
    from lance_core.index.vector.quantizer import SearchOptions, StorageSource
    from lance_core.kernels.topk import TopRows

_COLUMN = "__pq_code"
_BITS = (8, 4)
_BYTE_BITS = 8


@dataclass(frozen=True, slots=True)
class PqParameters:
    """How vectors were quantised.

    ``codebook_buffer`` numbers the global buffer of the codebook tensor; where it is None the
    tensor stood in the metadata itself, as ``inline_codebook``. With ``is_transposed`` the codes of
    a partition lie column after column, else row after row.
    """

    num_bits: int
    num_sub_vectors: int
    dimension: int
    is_transposed: bool
    codebook_buffer: int | None
    inline_codebook: bytes

    @property
    def num_codes(self) -> int:
        """Centroids per sub-vector."""
        return 1 << self.num_bits

    @property
    def code_bytes(self) -> int:
        """Bytes of one row's code."""
        return self.num_sub_vectors * self.num_bits // _BYTE_BITS


@dataclass(frozen=True, slots=True, eq=False)
class ProductQuantizer:
    """Codes of the residuals to the partition's centroid; for dot, of the vectors.

    Parameters
    ----------
    codebook
        Shape ``(m, d / m, 256)``, of 4-bit codes ``(m, d / m, 16)``; float32.
    centroids
        Shape ``(P, d)``, float32.
    metric
        Metric of the segment.
    is_transposed
        Whether the stored codes of a partition lie column after column.

    Notes
    -----
    Vector index page, section 4.2.
    """

    codebook: NDArray[np.float32]
    centroids: NDArray[np.float32]
    metric: Metric
    is_transposed: bool

    @property
    def num_sub_vectors(self) -> int:
        """Sub-vectors, ``m``."""
        return len(self.codebook)

    @property
    def has_packed_codes(self) -> bool:
        """Whether a byte holds two codes, of sub-vector ``2 b`` in its low half."""
        return bool(self.codebook.shape[2] < 1 << _BYTE_BITS)

    @property
    def code_bytes(self) -> int:
        """Bytes of one row's code."""
        return self.num_sub_vectors // 2 if self.has_packed_codes else self.num_sub_vectors

    @property
    def columns(self) -> tuple[PayloadColumn, ...]:
        """The codes."""
        return (PayloadColumn(_COLUMN, (pa.uint8(),), self.code_bytes),)

    @property
    def num_arrays(self) -> int:
        """The codes."""
        return 1

    @property
    def raw_row_bytes(self) -> int | None:
        """Codes are decoded."""
        return None

    @property
    def drops_rows(self) -> bool:
        """Dead rows are masked."""
        return False

    @property
    def nbytes(self) -> int:
        """Memory of the codebook."""
        return int(self.codebook.nbytes)

    def lay_out(
        self, columns: Sequence[NDArray[np.generic]], is_kept: NDArray[np.bool_] | None
    ) -> tuple[NDArray[np.generic], ...]:
        """Return the codes column after column, shape ``(B, n)``, uint8.

        Stored so, they run over the partition's rows as one flat array.
        """
        del is_kept
        rows = columns[0]
        if self.is_transposed:
            return (np.array(rows, np.uint8, order="C").reshape(rows.shape[1], rows.shape[0]),)
        return (np.array(rows.T, np.uint8, order="C"),)

    def search(
        self,
        held: HeldPartitions,
        query: NDArray[np.float32],
        words: NDArray[np.uint64],
        top: TopRows,
        options: SearchOptions,
    ) -> None:
        """Offer every row, and give those kept exact distances where these are asked for."""
        search_pq(
            held.rows,
            held.partitions,
            query,
            self.centroids,
            self.codebook,
            words,
            top,
            is_dot=self.metric is Metric.DOT,
            exact=options.exact if top.k == options.k else None,  # else there are too few rows
        )


def open_pq(source: StorageSource) -> ProductQuantizer:
    """Read the codebook.

    Raises
    ------
    UnusableSegmentError
        Codes have other than 8 or 4 bits.
    CorruptFileError
        The metadata or the codebook contradict the format.
    """
    parameters = read_pq_parameters(source.parameters, source.path)
    if parameters.dimension != source.dimension:
        raise CorruptFileError(
            source.path,
            f"codes of {parameters.dimension} dimensions, centroids of {source.dimension}",
        )
    buffer = (
        parameters.inline_codebook
        if parameters.codebook_buffer is None
        else global_buffer(source.reader, parameters.codebook_buffer)
    )
    codebook = read_codebook(buffer, parameters, source.path)
    return ProductQuantizer(codebook, source.centroids, source.metric, parameters.is_transposed)


def read_pq_parameters(stored: Mapping[str, object], path: str) -> PqParameters:
    """Read the object of a product quantiser.

    Raises
    ------
    UnusableSegmentError
        Codes have other than 8 or 4 bits, or their width is not given under the name ``nbits``: so
        did 0.20, and pylance 14.0.2 does not use such a segment either.
    CorruptFileError
        The object contradicts the format.

    Notes
    -----
    Vector index page, sections 2.4 and 2.5.
    """
    bits = stored.get("nbits")
    if not isinstance(bits, int) or bits not in _BITS:
        raise UnusableSegmentError(f"product quantiser of {bits} bits")
    position = stored.get("codebook_position")
    inline = stored.get("codebook_tensor")
    # Global buffer 0 is the file's own schema, so 0 says that the codebook is elsewhere.
    is_inline = position is None or position == 0
    parameters = PqParameters(
        num_bits=bits,
        num_sub_vectors=positive_number(stored, "num_sub_vectors", path),
        dimension=positive_number(stored, "dimension", path),
        is_transposed=stored.get("transposed") is True,
        codebook_buffer=None if is_inline else positive_number(stored, "codebook_position", path),
        inline_codebook=_byte_values(inline, path) if is_inline else b"",
    )
    if parameters.dimension % parameters.num_sub_vectors != 0:
        raise CorruptFileError(
            path,
            f"{parameters.num_sub_vectors} sub-vectors do not divide {parameters.dimension}"
            " dimensions",
        )
    if parameters.num_sub_vectors * bits % _BYTE_BITS != 0:
        raise CorruptFileError(
            path, f"{parameters.num_sub_vectors} codes of {bits} bits do not fill whole bytes"
        )
    return parameters


def read_codebook(buffer: bytes, parameters: PqParameters, path: str) -> NDArray[np.float32]:
    """Decode a codebook into shape ``(m, d / m, codes)``, C-contiguous, writable.

    The stored values run over sub-vectors, codes and sub-dimensions; the shape beside them is only
    a container (vector index page, section 4.2).
    """
    try:
        tensor = index_pb2.Tensor.FromString(buffer)
    except DecodeError as error:
        raise CorruptFileError(path, f"the codebook is no tensor: {error}") from error
    values = tensor_values(tensor, path)
    needed = parameters.num_codes * parameters.dimension
    if values.size != needed:
        raise CorruptFileError(
            path,
            f"the codebook has {values.size} values, {parameters.dimension} dimensions need"
            f" {needed}",
        )
    by_code = values.reshape(parameters.num_sub_vectors, parameters.num_codes, -1)
    return np.ascontiguousarray(by_code.transpose(0, 2, 1))


def _byte_values(values: object, path: str) -> bytes:
    """Return the bytes that a JSON array lists one by one."""
    if not isinstance(values, list):
        raise CorruptFileError(path, '"codebook_tensor" is no array')
    try:
        return bytes(values)
    except (ValueError, TypeError) as error:
        raise CorruptFileError(path, f'"codebook_tensor" lists no bytes: {error}') from error
