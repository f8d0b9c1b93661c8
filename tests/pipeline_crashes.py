"""Drivers of jobs that die at a moment told."""

from __future__ import annotations

from contextlib import contextmanager

import pytest

from lance_core.errors import StoreUnavailableError
from lance_core.io.mapped_store import MappedStore

MOMENTS = ("before the manifest", "after the manifest", "the answer is lost")


class DriverDiedError(BaseException):
    """Nothing of the driver catches it, as nothing does when the process is killed."""


@contextmanager
def dying(moment):
    """Let the process die, or the store fail, when the next manifest is put."""
    put = MappedStore.put_if_absent

    def fails(self, path, data):
        if not path.startswith("_versions/"):
            put(self, path, data)
            return
        if moment == "before the manifest":
            raise DriverDiedError
        put(self, path, data)
        if moment == "after the manifest":
            raise DriverDiedError
        raise StoreUnavailableError("the answer is lost")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(MappedStore, "put_if_absent", fails)
        yield
