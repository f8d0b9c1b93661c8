"""Views of arrays that are not counted, for loops over small pieces of work.

numba counts who holds an array by locked instructions, at each call that takes it and for each
slice of it. Where a call does microseconds of work on some rows, that is a third of the time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import numpy as np
from numba.np.numpy_support import carray

from lance_core.kernels.compile import kernel
from lance_core.kernels.memory import pointer_at

if TYPE_CHECKING:
    from numpy.typing import NDArray

T = TypeVar("T", bound=np.generic)


@kernel
def uncounted(array: NDArray[T]) -> NDArray[T]:
    """View a C-contiguous array of any shape; inside kernels only.

    The caller keeps it alive longer than the view and all that is made of it. A variable is given
    up behind its last use, so let a function around this one hold the array, as its argument.
    """
    view: NDArray[T] = carray(pointer_at(array.ctypes.data), array.shape, array.dtype)
    return view
