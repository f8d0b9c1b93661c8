from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.fake_dataset import FakeDataset, FakeStore, make_table
from tests.pylance_dataset import write_dataset
from tests.service_client import Contract, load_contract, serving

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path


@pytest.fixture(scope="session")
def contract() -> Any:
    return load_contract()


@pytest.fixture
def store() -> Any:
    return FakeStore(t1=FakeDataset(make_table(), version=3))


@pytest.fixture
def dataset(store: FakeStore) -> Any:
    return store.datasets["t1.lance"][3]


@pytest.fixture
async def client(tmp_path: Path, contract: Contract, store: FakeStore) -> AsyncIterator[Any]:
    """A client of a service over one dataset in memory, ``t1`` at version 3."""
    async with serving(
        tmp_path, contract=contract, open_dataset=store, load_kernels=lambda: None
    ) as client:
        await client.wait_until_ready()
        yield client


@pytest.fixture(scope="session")
def served_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with one dataset on disk, ``t1``, written by the reference; not to be changed."""
    folder = tmp_path_factory.mktemp("served")
    write_dataset(folder / "t1.lance")
    return folder


@pytest.fixture
async def served(served_root: Path, contract: Contract) -> AsyncIterator[Any]:
    """A client of a service over ``served_root``."""
    async with serving(served_root, contract=contract) as client:
        await client.wait_until_ready()
        yield client
