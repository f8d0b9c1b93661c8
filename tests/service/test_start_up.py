"""What a server process does before it answers queries."""

from __future__ import annotations

import gc
import subprocess
import sys

import pytest

from service.start_up import load_kernels_for_good, share_heaps


def test_what_loading_leaves_is_out_of_the_garbage_collectors_sight() -> None:
    left: list[list[int]] = []
    try:
        load_kernels_for_good(lambda: left.append([]))
        assert gc.get_freeze_count() > 0
        tracked = {id(each) for each in gc.get_objects()}
        assert id(left[0]) not in tracked
    finally:
        gc.unfreeze()


@pytest.mark.skipif(sys.platform != "linux", reason="heaps of glibc")
def test_threads_share_two_heaps() -> None:
    script = """
import ctypes, io, threading
from service.start_up import share_heaps

assert share_heaps()
inside = threading.Barrier(7)
def take():
    block = ctypes.CDLL(None).malloc(100_000)
    inside.wait()
threads = [threading.Thread(target=take) for _ in range(6)]
for each in threads: each.start()
inside.wait()
for each in threads: each.join()
ctypes.CDLL(None).malloc_stats()
"""
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603
    assert done.stderr.count("Arena ") == 2


def test_other_c_libraries_keep_their_heaps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.libc_ver", lambda: ("", ""))
    assert not share_heaps()
