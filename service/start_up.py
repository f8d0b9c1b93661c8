"""What a server process does once, before it answers queries."""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING

from lance_core.kernels.warm import warm_kernels

if TYPE_CHECKING:
    from collections.abc import Callable


def load_kernels_for_good(load_kernels: Callable[[], None] = warm_kernels) -> None:
    """Load the kernels, then take all there is out of the garbage collector's sight.

    The compiler leaves more than 100,000 objects that live as long as the process. A full
    collection looks at each of them and stops all threads for some 60 ms, in the middle of whatever
    query happens to set it off; afterwards it looks only at what came later. For a process that
    does nothing but serve: cyclic garbage that others keep until now would never be freed.
    """
    load_kernels()
    gc.collect()
    gc.freeze()
