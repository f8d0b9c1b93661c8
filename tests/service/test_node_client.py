"""Every read of Node's client, unmodified; see ``tests/node/reads.js``."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.client_dataset import ANIMALS, BRANCH, BRANCH_ROWS, INDICES, write_client_dataset
from tests.live_server import live_server
from tests.node_packages import node_modules
from tests.pylance_dataset import LIVE, NUM_INDEXED, VECTORS, nearest

pytestmark = pytest.mark.interop

PROGRAM = Path(__file__).parents[1] / "node" / "reads.js"
QUERY = VECTORS[123] + 0.01
NEWTS = {row for row in LIVE.tolist() if ANIMALS[row % 5] == "newt"}


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """What the program found."""
    packages = node_modules()
    root = tmp_path_factory.mktemp("node")
    write_client_dataset(root / "t1.lance")
    with live_server(root) as url:
        done = subprocess.run(  # noqa: S603 - our own program
            ["node", str(PROGRAM), url, json.dumps(QUERY.tolist())],  # noqa: S607 - from the path
            env={**os.environ, "NODE_PATH": str(packages)},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_tables_and_schemas(found: Any) -> None:
    assert found["tables"] == ["t1"]
    assert found["columns"] == ["id", "kind", "price", "vec", "text"]
    assert (found["version"], found["rows"], found["filtered"]) == (6, len(LIVE), 10)


def test_searches_by_vector(found: Any) -> None:
    five = nearest(QUERY, 5)[0]
    assert found["exact"] == five
    assert found["page"] == five[3:]
    assert found["selected"] == ["price", "id", "_distance"]
    assert found["computed"] == [2 * five[0]]
    assert len(set(found["indexed"]) & set(five)) >= 4
    assert found["prefiltered"] == nearest(QUERY, 5, LIVE[LIVE >= 500])[0]
    assert found["postfiltered"] == [row for row in five if row >= 500]
    cosine = (VECTORS[LIVE] @ QUERY) / np.linalg.norm(VECTORS[LIVE], axis=1)
    assert found["cosine"] == LIVE[np.argsort(-cosine)[:3]].tolist()
    assert found["ranged"] == sum(nearest(QUERY, None)[1] < 0.5)
    assert found["batch"] == [[query, row] for query in (0, 1) for row in five[:2]]


def test_plain_queries(found: Any) -> None:
    assert found["rowIds"] == ["7", "8"]
    assert found["byRowId"] == [7, 8]
    assert found["byOffset"] == [2, 61]
    assert found["plain"] == [3, 50]
    assert found["everything"] == len(LIVE)


def test_searches_by_text(found: Any) -> None:
    for name in ("words", "anyColumn", "multiMatch"):
        assert found[name] == len(NEWTS), name
    assert found["phrase"] == sum(row % 2 for row in LIVE.tolist())
    assert found["boolean"] == sum(row % 2 == 0 for row in NEWTS)
    assert found["hybrid"] == 5


def test_plans_indices_and_figures(found: Any) -> None:
    assert "IndexSearch" in found["explained"]
    assert "elapsed_ms" in found["analyzed"]
    assert found["indices"] == INDICES
    assert found["indexStats"] == {
        "numIndexedRows": 588,
        "numUnindexedRows": 20,
        "indexType": "IVF_PQ",
        "distanceType": "l2",
        "numIndices": 1,
    }
    assert found["noIndex"] is None
    assert (found["stats"]["numRows"], found["stats"]["numIndices"]) == (len(LIVE), 3)


def test_versions_tags_and_branches(found: Any) -> None:
    assert found["versions"] == [1, 2, 3, 4, 5, 6]
    assert (found["tags"], found["tag"]) == ({"first": 1, "other": 2}, 1)
    assert (found["oldRows"], found["newRows"]) == (NUM_INDEXED, len(LIVE))
    assert (found["branches"], found["branchRows"]) == ([BRANCH], NUM_INDEXED + BRANCH_ROWS)


def test_refusals(found: Any) -> None:
    assert "'nope' was not found" in found["noTable"]
    for name in ("badFilter", "badColumn"):
        assert "400" in found[name]
        assert "nope" in found[name]
    assert "99" in found["noVersion"]
