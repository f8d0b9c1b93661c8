"""Filters over datasets of older Lance releases give the recorded answers, by index or scan."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import lance
import pytest

import lance_core

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.interop

RELEASES = ["0.20.0", "1.0.4", "10.0.0"]
DATASETS = [(release, name) for release in RELEASES for name in ("plain", "evolve", "scalar")]
DATASETS += [("1.0.4", "stable"), ("10.0.0", "stable"), ("10.0.0", "deferred")]
MORE = [  # on columns that some of the datasets have indices on
    "id BETWEEN 17 AND 60 OR id > 500",
    "NOT (id < 300)",
    "cat = 'cat-2'",
    "cat <> 'cat-2'",
    "cat IS NULL OR cat IN ('cat-0', 'cat-4')",
    "qty >= 30 AND NOT cat = 'cat-1'",
    "qty IS NULL",
    "qty IS NOT NULL AND price < 50",
    "price > 90 OR price IS NULL",
    "NOT (price <= 90)",
    "ts > timestamp '2024-01-03 02:00:00'",
    "array_has(tags, 'amber')",
    "NOT array_has_any(tags, ['amber'])",
    "array_has_all(tags, ['amber', 'blue'])",
]
KINDS = {
    "0.20.0": {"BITMAP", "LABEL_LIST"},  # its BTREEs are legacy files
    "1.0.4": {"BTREE", "BITMAP", "LABEL_LIST", "ZONEMAP"},
    "10.0.0": {"BTREE", "BITMAP", "LABEL_LIST", "ZONEMAP"},
}


def ids(dataset: lance_core.Dataset, text: str, **options: Any) -> list[int]:
    found = dataset.scan(["id"], filter=text, **options).read_all()["id"]
    return sorted(found.to_pylist())


@pytest.mark.parametrize(("release", "name"), DATASETS)
def test_recorded_filters_find_the_recorded_rows(
    old_dataset: Callable[[str, str], Path], release: str, name: str
) -> None:
    root = old_dataset(release, name)
    dataset = lance_core.open_dataset(str(root))
    recorded = json.loads(root.with_suffix(".expect.json").read_text())["filter"]
    assert len(recorded) > 0
    for each in recorded:
        assert ids(dataset, each["filter"]) == each["ids"], each["filter"]
        assert ids(dataset, each["filter"], use_index=False) == each["ids"], each["filter"]
        assert dataset.count_rows(each["filter"]) == len(each["ids"])


@pytest.mark.parametrize(("release", "name"), [each for each in DATASETS if each[1] != "evolve"])
def test_filters_find_what_pylance_finds_by_scanning(
    old_dataset: Callable[[str, str], Path], release: str, name: str
) -> None:
    root = str(old_dataset(release, name))
    dataset, theirs = lance_core.open_dataset(root), lance.dataset(root)
    kinds = set()
    for text in MORE:
        scanner = theirs.scanner(columns=["id"], filter=text, use_scalar_index=False)
        assert ids(dataset, text) == sorted(scanner.to_table()["id"].to_pylist()), text
        plan = dataset.explain(lance_core.ScanQuery(filter=text))
        kinds |= {kind for kind in KINDS[release] if f"type=[{kind}]" in plan}
    assert kinds == (KINDS[release] if name == "scalar" else kinds)
