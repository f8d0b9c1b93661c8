"""LanceDB's client makes tokens of queries by what we tell of an index."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import lance
import lancedb
import pyarrow as pa
import pytest

from tests.live_server import live_server

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.interop

INDICES: dict[str, dict[str, Any]] = {
    "usual": {},
    "ngrams": {"base_tokenizer": "ngram", "min_ngram_length": 2, "prefix_only": True},
    "code": {"base_tokenizer": "code", "split_identifiers": True, "index_operators": True},
    "german": {"language": "German", "ascii_folding": False, "max_token_length": None},
}
TEXTS = ["The quick foxes' getUserName->x", "Über die schnellen Füchse", ""]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("tokens")
    for name, parameters in INDICES.items():
        dataset = lance.write_dataset(pa.table({"t": TEXTS}), str(root / f"{name}.lance"))
        dataset.create_scalar_index("t", "INVERTED", **parameters)
    return root


@pytest.fixture(scope="module")
def remote(root: Path) -> Iterator[Any]:
    with live_server(root) as url:
        yield lancedb.connect("db://mydb", api_key="any", region="us-east-1", host_override=url)


@pytest.mark.parametrize("name", INDICES)
def test_tokens_are_those_of_the_index(root: Path, remote: Any, name: str) -> None:
    local: Any = lancedb.connect(str(root)).open_table(name)
    served = remote.open_table(name)
    for text in TEXTS:
        found = [repr(each) for each in served.tokenize(text, column="t")]
        assert found == [repr(each) for each in local.tokenize(text, column="t")]
        assert (len(found) > 0) is (text != "")
