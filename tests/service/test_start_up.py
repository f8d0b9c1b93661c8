"""What a server process does before it answers queries."""

from __future__ import annotations

import gc

from service.start_up import load_kernels_for_good


def test_what_loading_leaves_is_out_of_the_garbage_collectors_sight() -> None:
    left: list[list[int]] = []
    try:
        load_kernels_for_good(lambda: left.append([]))
        assert gc.get_freeze_count() > 0
        tracked = {id(each) for each in gc.get_objects()}
        assert id(left[0]) not in tracked
    finally:
        gc.unfreeze()
