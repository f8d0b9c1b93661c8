"""The demo's table, as it is made where there is no Java: CI's own demo makes it on Spark."""

from __future__ import annotations

import orjson
import pytest

from examples import demo_data
from lance_core import open_dataset


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    root = tmp_path_factory.mktemp("demo") / "root"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(demo_data, "_why_not_spark", lambda: "a test")
        demo_data.make_demo_data(root)
    return open_dataset(root / "wordnet.lance")


def test_it_has_indexed_appended_and_deleted_rows(table):
    assert table.count_rows() == 20_200
    kinds = {index.name: index.index_type for index in table.list_indices()}
    assert kinds == {"vector_idx": "IVF_PQ", "text_idx": "INVERTED"}
    assert table.index_statistics("vector_idx").num_unindexed_rows == 500


def test_the_example_request_finds_its_row_in_it(table):
    body = orjson.loads(demo_data.EXAMPLES.joinpath("query.json").read_bytes())
    nearest = table.search(body["vector"], k=1, columns=["id"], refine_factor=5)
    assert nearest["id"].to_pylist() == [1_896]


def test_it_is_made_without_java_when_there_is_none(monkeypatch):
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr("pipeline.session._bundled", lambda: None)
    assert "install a JRE" in (demo_data._why_not_spark() or "")
