from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np
import pytest

from benchmarks.report import Row
from benchmarks.summary import compare, interleave, recall, summarise
from benchmarks.synthetic import draw, exact_neighbours, make_mixture
from benchmarks.synthetic_texts import Vocabulary
from benchmarks.workers import Block

if TYPE_CHECKING:
    from collections.abc import Callable


def block(*latencies_ms: float, cpu_ms: float = 1.0) -> Block:
    latencies = np.array(latencies_ms)
    return Block(latencies, cpu_ms, float(latencies.sum()))


def test_the_same_seed_draws_the_same_vectors() -> None:
    first, second = (
        draw(make_mixture(8, 5, np.random.default_rng(1)), 20, np.random.default_rng(2))
        for _ in range(2)
    )
    np.testing.assert_array_equal(first, second)
    assert first.dtype == np.float32
    assert first.shape == (20, 8)


def test_variance_concentrates_in_few_directions() -> None:
    rows = draw(make_mixture(32, 50, np.random.default_rng(3)), 2_000, np.random.default_rng(4))
    variances = np.linalg.eigvalsh(np.cov(rows.T))[::-1]
    assert variances[:8].sum() > 0.7 * variances.sum()


def test_exact_neighbours_are_those_of_brute_force() -> None:
    generator = np.random.default_rng(5)
    vectors = generator.standard_normal((300, 6)).astype(np.float32)
    queries = generator.standard_normal((7, 6)).astype(np.float32)
    distances = ((queries[:, np.newaxis].astype(float) - vectors) ** 2).sum(axis=2)
    expected = np.argsort(distances, axis=1)[:, :4]
    np.testing.assert_array_equal(exact_neighbours(vectors, queries, 4), expected)


def test_words_of_texts_are_the_rarer_the_higher_their_number() -> None:
    vocabulary = Vocabulary.of(5_000)
    assert len(set(vocabulary.words)) == 5_000
    drawn = vocabulary.draw(np.full(2_000, 30), np.random.default_rng(6))
    counts = drawn.document_counts()
    texts = [set(text.split()) for text in drawn.to_arrow().to_pylist()]
    first, tenth = (sum(vocabulary.words[number] in text for text in texts) for number in (0, 9))
    assert (counts[0], counts[9]) == (first, tenth)
    assert counts[0] > 2 * counts[9] > 8 * counts[99] > 0


def test_neighbours_stand_beside_each_other_in_a_text() -> None:
    drawn = Vocabulary.of(5_000).draw(np.array([2, 3, 2]), np.random.default_rng(7))
    texts = drawn.to_arrow().to_pylist()
    for pair in drawn.neighbours(50, np.random.default_rng(8)).tolist():
        together = " ".join(drawn.vocabulary.words[number] for number in pair)
        assert any(together in text for text in texts)


def test_blocks_of_the_two_sides_alternate() -> None:
    order: list[str] = []

    def side(name: str) -> Callable[[int], Block]:
        def measure(part: int) -> Block:
            order.append(f"{name}{part}")
            return block(1.0)

        return measure

    interleave(side("a"), side("b"), [1, 2])
    assert order == ["a1", "b1", "a2", "b2"]


def test_cpu_time_is_divided_by_all_queries_of_all_blocks() -> None:
    assert summarise([block(1, 2, cpu_ms=4), block(3, 4, cpu_ms=8)]).cpu_ms == pytest.approx(3)


def test_a_ratio_is_the_median_over_blocks_so_one_disturbed_block_does_not_count() -> None:
    ours = [block(1, 1), block(1, 1), block(90, 90)]
    peer = [block(2, 2), block(2, 2), block(2, 2)]
    assert compare(ours, peer).p50 == pytest.approx(0.5)
    assert compare(ours, peer).throughput == pytest.approx(2.0)


def test_recall_counts_exact_neighbours_that_were_found_in_any_order() -> None:
    assert recall(np.array([[2, 1], [9, -1]]), np.array([[1, 2], [8, 9]])) == pytest.approx(0.75)


@pytest.mark.parametrize(
    ("ratio", "bar", "direction", "passes"),
    [
        (0.3, 0.3, "at most", True),
        (0.31, 0.3, "at most", False),
        (4.0, 4.0, "at least", True),
        (3.9, 4.0, "at least", False),
        (3.9, None, "at most", None),
    ],
)
def test_a_bar_is_met_on_its_own_side(
    ratio: float, bar: float | None, direction: Literal["at most", "at least"], passes: bool | None
) -> None:
    assert Row("case", "p50", 1, 1, ratio, bar, direction).passes is passes
