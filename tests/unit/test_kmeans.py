"""Training of centroids, and finding the nearest of them."""

import numpy as np
import pytest

from lance_core.errors import InvalidRequestError
from lance_core.index.vector.build.assign import assign, assign_bytes
from lance_core.index.vector.build.codebook import train_codebook
from lance_core.index.vector.build.kmeans import train_byte_centroids, train_centroids
from lance_core.index.vector.metric import Metric

FLOAT_METRICS = [Metric.L2, Metric.COSINE, Metric.DOT]


def draw(num_rows, dimension, seed=1):
    return np.random.default_rng(seed).standard_normal((num_rows, dimension)).astype(np.float32)


def blobs(num_rows, num_centres, dimension, seed=2):
    """Return rows close to far centres, all centres alike, and the centre of each."""
    generator = np.random.default_rng(seed)
    centres = generator.standard_normal((num_centres, dimension)) * 100
    labels = np.arange(num_rows) % num_centres
    noise = generator.standard_normal((num_rows, dimension))
    return (centres[labels] + noise).astype(np.float32), labels


def all_distances(vectors, centroids, metric):
    x, c = vectors.astype(np.float64)[:, np.newaxis], centroids.astype(np.float64)
    return 1 - (x * c).sum(axis=2) if metric == Metric.DOT else ((x - c) ** 2).sum(axis=2)


def differing(vectors, centroids):
    gaps = vectors[:, np.newaxis] ^ centroids[np.newaxis]
    return np.bitwise_count(gaps).sum(axis=2)


@pytest.mark.parametrize("metric", FLOAT_METRICS)
@pytest.mark.parametrize("dimension", [1, 3, 64, 130, 300])
@pytest.mark.parametrize("num_centroids", [1, 2, 33, 100])
def test_every_row_is_assigned_to_its_nearest_centroid(metric, dimension, num_centroids):
    vectors, centroids = draw(517, dimension), draw(num_centroids, dimension, seed=3)
    partition, distance = assign(vectors, centroids, metric)
    expected = all_distances(vectors, centroids, metric)
    found = np.take_along_axis(expected, partition[:, np.newaxis].astype(np.int64), axis=1)[:, 0]
    np.testing.assert_allclose(distance, found, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(found, expected.min(axis=1), rtol=1e-5, atol=1e-5)
    assert partition.dtype == np.uint32
    assert distance.dtype == np.float32


@pytest.mark.parametrize(("offset", "factor"), [(1e4, 1), (0, 1e18), (0, 1e-18)])
def test_far_and_long_and_short_vectors_are_assigned_to_their_nearest_centroid(offset, factor):
    vectors, labels = blobs(1000, 40, 8)
    centres = np.stack([vectors[labels == label].mean(axis=0) for label in range(40)])
    moved = ((vectors + offset) * np.float32(factor)).astype(np.float32)
    partition, _ = assign(moved, (centres + offset) * np.float32(factor), Metric.L2)
    np.testing.assert_array_equal(partition, labels)


def test_threads_find_what_one_finds():
    vectors, centroids = draw(20_000, 16), draw(70, 16, seed=3)
    alone = assign(vectors, centroids, Metric.L2, num_threads=1)
    for ours, expected in zip(assign(vectors, centroids, Metric.L2), alone, strict=True):
        np.testing.assert_array_equal(ours, expected)


@pytest.mark.parametrize("width", [1, 7, 8, 19])
def test_every_row_of_bytes_is_assigned_to_its_nearest_centroid(width):
    generator = np.random.default_rng(4)
    vectors = generator.integers(0, 256, (300, width), np.uint8)
    centroids = generator.integers(0, 256, (21, width), np.uint8)
    partition, distance = assign_bytes(vectors, centroids)
    expected = differing(vectors, centroids)
    np.testing.assert_array_equal(partition, expected.argmin(axis=1))
    np.testing.assert_array_equal(distance, expected.min(axis=1))


def test_read_only_and_strided_vectors_are_assigned_alike():
    vectors, centroids = draw(100, 8), draw(5, 8, seed=3)
    expected, _ = assign(vectors, centroids, Metric.L2)
    wide = np.repeat(vectors, 2, axis=1)
    wide.flags.writeable = False
    centroids.flags.writeable = False
    np.testing.assert_array_equal(assign(wide[:, ::2], centroids, Metric.L2)[0], expected)


@pytest.mark.parametrize("num_clusters", [1, 7, 16, 60, 300])
def test_clear_clusters_are_found(num_clusters):
    vectors, labels = blobs(num_clusters * 20, num_clusters, 32)
    centroids = train_centroids(vectors, num_clusters, Metric.L2).centroids
    _, distance = assign(vectors, centroids, Metric.L2)
    means = np.stack([vectors[labels == label].mean(axis=0) for label in range(num_clusters)])
    _, best = assign(vectors, means, Metric.L2)
    # One cluster missed adds about 100 ** 2 * 64 for each of its rows.
    assert np.mean(distance < 1000) >= 0.9
    assert np.median(distance) <= np.median(best) * 1.05


@pytest.mark.parametrize("metric", FLOAT_METRICS)
def test_loss_is_the_sum_of_the_distances_before_the_last_move(metric):
    vectors = draw(2000, 6)
    trained = train_centroids(vectors, 20, metric)
    if metric == Metric.DOT:
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    _, distance = assign(vectors, trained.centroids, metric)
    assert distance.sum() < trained.loss < distance.sum() + 0.02 * abs(distance.sum())


def test_centroids_are_means_of_their_rows():
    vectors, _ = blobs(400, 4, 5)
    centroids = train_centroids(vectors, 4, Metric.L2).centroids
    partition, _ = assign(vectors, centroids, Metric.L2)
    for number, centroid in enumerate(centroids):
        np.testing.assert_allclose(centroid, vectors[partition == number].mean(axis=0), rtol=1e-5)


def test_dot_gives_directions():
    centroids = train_centroids(draw(3000, 12) * 5, 40, Metric.DOT).centroids
    np.testing.assert_allclose(np.linalg.norm(centroids, axis=1), 1, rtol=1e-6)


def test_vectors_count_alike_for_dot_whatever_their_length():
    vectors = draw(3000, 12)
    longer = vectors * np.ldexp(1, np.arange(len(vectors)) % 5).astype(np.float32)[:, np.newaxis]
    of_longer, of_all = (
        train_centroids(some, 40, Metric.DOT).centroids for some in (longer, vectors)
    )
    np.testing.assert_allclose(of_longer, of_all, atol=1e-6)


def test_the_same_seed_gives_the_same_centroids_and_another_one_others():
    vectors = draw(9000, 8)
    first, again, other = (
        train_centroids(vectors, 50, Metric.L2, seed=seed).centroids for seed in (5, 5, 6)
    )
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


def test_partitions_are_of_like_size():
    vectors = draw(20_000, 16)
    centroids = train_centroids(vectors, 100, Metric.L2).centroids
    counts = np.bincount(assign(vectors, centroids, Metric.L2)[0], minlength=100)
    assert counts.min() > 0
    assert counts.max() < 5 * counts.mean()


def test_progress_only_grows_and_reaches_no_more_than_the_iterations():
    heard = []
    train_centroids(
        draw(500, 4),
        10,
        Metric.L2,
        max_iterations=5,
        progress=lambda done, total: heard.append((done, total)),
    )
    assert heard == sorted(heard)
    assert {total for _, total in heard} == {5}


ODD_SAMPLES = {
    "one row": np.ones((1, 4), np.float32),
    "all alike": np.full((600, 4), 2.5, np.float32),
    "all zero": np.zeros((600, 4), np.float32),
    "few distinct": np.repeat(draw(5, 4), 100, axis=0),
    "nearly all alike": np.concatenate([np.ones((900, 4), np.float32), draw(30, 4)]),
    "as many as clusters": draw(300, 4),
    "one dimension": draw(2000, 1),
    "long": draw(2000, 128) * np.float32(1e18),
    "longest": np.full((500, 3), np.finfo(np.float32).max) * np.sign(draw(500, 3)),
    "short": draw(2000, 8) * np.float32(1e-30),
    "constant columns": np.concatenate([draw(900, 2), np.full((900, 3), 7, np.float32)], axis=1),
    "doubling": np.ldexp(np.ones((200, 1), np.float32), np.arange(200)[:, np.newaxis] % 120),
}


@pytest.mark.parametrize("metric", FLOAT_METRICS)
@pytest.mark.parametrize("num_clusters", [1, 2, 300])
@pytest.mark.parametrize("name", ODD_SAMPLES)
def test_odd_samples_give_finite_centroids(name, num_clusters, metric):
    sample = ODD_SAMPLES[name]
    centroids = train_centroids(sample, num_clusters, metric).centroids
    assert centroids.shape == (num_clusters, sample.shape[1])
    assert centroids.dtype == np.float32
    assert np.isfinite(centroids).all()


def test_as_many_clusters_as_distinct_rows_leave_no_distance():
    vectors = np.repeat(draw(40, 6), 50, axis=0)
    assert train_centroids(vectors, 40, Metric.L2).loss == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize("num_clusters", [1, 12, 300])
def test_centroids_of_bytes_are_the_bits_of_most_rows(num_clusters):
    generator = np.random.default_rng(6)
    centres = generator.integers(0, 256, (num_clusters, 16), np.uint8)
    flips = np.packbits(generator.random((num_clusters * 30, 128)) < 0.05, axis=1)
    vectors = np.repeat(centres, 30, axis=0) ^ flips
    trained = train_byte_centroids(vectors, num_clusters)
    assert trained.centroids.shape == (num_clusters, 16)
    assert trained.centroids.dtype == np.uint8
    partition, distance = assign_bytes(vectors, trained.centroids)
    assert trained.loss == pytest.approx(distance.sum(), rel=1e-3)
    assert np.median(distance) <= 10
    for number in range(num_clusters):
        own = np.unpackbits(vectors[partition == number], axis=1)
        if len(own) > 0:
            majority = own.sum(axis=0) * 2 > len(own)
            np.testing.assert_array_equal(np.unpackbits(trained.centroids[number]), majority)


def test_bytes_that_are_all_alike_give_that_centroid():
    trained = train_byte_centroids(np.full((500, 3), 9, np.uint8), 20)
    assert (trained.centroids == 9).all()
    assert trained.loss == 0


@pytest.mark.parametrize(("num_sub_vectors", "num_bits"), [(1, 4), (4, 4), (2, 8), (8, 8)])
def test_codebooks_code_vectors_better_than_random_rows_do(num_sub_vectors, num_bits):
    vectors = draw(4000, 8)
    codebook = train_codebook(vectors, num_sub_vectors, num_bits)
    width = 8 // num_sub_vectors
    assert codebook.shape == (num_sub_vectors, 1 << num_bits, width)
    for number in range(num_sub_vectors):
        part = vectors[:, number * width : (number + 1) * width]
        trained, drawn = (
            assign(part, book, Metric.L2)[1].sum()
            for book in (codebook[number], part[: 1 << num_bits])
        )
        assert trained < 0.95 * drawn


def test_codebooks_of_fewer_rows_than_codes_are_finite_and_hold_the_rows():
    vectors = draw(30, 4)
    codebook = train_codebook(vectors, 2, 8)
    assert np.isfinite(codebook).all()
    for number in range(2):
        _, distance = assign(vectors[:, number * 2 : number * 2 + 2], codebook[number], Metric.L2)
        np.testing.assert_allclose(distance, 0, atol=1e-10)


def test_an_empty_sample_is_refused():
    with pytest.raises(InvalidRequestError, match="no vectors to train"):
        train_centroids(np.empty((0, 4), np.float32), 3, Metric.L2)
