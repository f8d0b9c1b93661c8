"""The commands on indices, as a user types them."""

from __future__ import annotations

import re
import shlex

import lance
import numpy as np
import orjson
import pyarrow as pa
import pytest
from typer.testing import CliRunner

from lance_core import open_dataset, write_dataset
from service.cli.main import app

pytestmark = pytest.mark.interop

RUNNER = CliRunner(env={"COLUMNS": "200"})
DIMENSION = 16


def run(*arguments, status=0):
    done = RUNNER.invoke(app, [str(argument) for argument in arguments])
    assert done.exit_code == status, done.output
    return re.sub(r"\s+", " ", done.output)


def run_json(*arguments):
    return orjson.loads(RUNNER.invoke(app, [*map(str, arguments), "--json"]).stdout)


def rows(start, count):
    vectors = np.random.default_rng(start).standard_normal((count, DIMENSION)).astype(np.float32)
    return pa.table(
        {
            "id": pa.array(range(start, start + count), pa.int64()),
            "text": [f"row number {i}" for i in range(start, start + count)],
            "tags": [[f"t{i % 3}"] for i in range(count)],
            "v": pa.FixedSizeListArray.from_arrays(vectors.ravel(), DIMENSION),
        }
    )


@pytest.fixture
def dataset(tmp_path):
    uri = tmp_path / "t.lance"
    write_dataset(uri, rows(0, 600), max_rows_per_file=200)
    return uri


def statistics(uri, name):
    return lance.dataset(str(uri)).stats.index_stats(name)


@pytest.mark.parametrize(
    ("options", "theirs"),
    [
        ("--type ivf_pq --partitions 2 --sub-vectors 4 --bits 8 --max-iters 5", "IVF_PQ"),
        ("--type IVF_FLAT --metric cosine --sample-rate 20", "IVF_FLAT"),
        ("--type ivf_sq --partition-rows 300 --memory 96M", "IVF_SQ"),
        ("--type ivf_rq --bits 3 --rotation matrix", "IVF_RQ"),
        ("--type ivf_hnsw_sq --m 8 --ef-construction 30 --max-level 3", "IVF_HNSW_SQ"),
    ],
)
def test_create_builds_an_index_of_vectors_that_pylance_searches(dataset, options, theirs):
    told = run("index", "create", dataset, "v", *options.split())
    assert f"version 2: index v_idx ({theirs}" in told
    assert "600 rows" in told
    assert statistics(dataset, "v_idx")["index_type"] == theirs
    query = {"column": "v", "q": rows(0, 1)["v"][0].values.to_numpy(), "k": 1, "nprobes": 10}
    assert lance.dataset(str(dataset)).to_table(nearest=query)["id"].to_pylist() == [0]


@pytest.mark.parametrize(
    ("column", "options", "figure"),
    [
        ("id", "--type btree --zone-rows 50", ("num_pages", 12)),
        ("id", "--type zonemap --zone-rows 50", ("rows_per_zone", 50)),
        ("id", "--type bloomfilter --zone-rows 50 --probability 0.01", ("probability", 0.01)),
        ("id", "--type bitmap", ("num_bitmaps", 600)),
        ("text", "--type ngram", ("num_ngrams", None)),
        ("tags", "--type label_list", (None, None)),
    ],
)
def test_create_builds_an_index_of_values_with_its_parameters(dataset, column, options, figure):
    run("index", "create", dataset, column, *options.split(), "--name", "mine")
    found = statistics(dataset, "mine")
    assert (found["num_indexed_rows"], found["num_unindexed_rows"]) == (600, 0)
    name, value = figure
    assert value is None or found["segments"][0][name] == value


@pytest.mark.parametrize(
    ("column", "options", "words", "found"),
    [
        ("text", "--type fts --positions", '"number 7"', [7]),
        ("text", "--type inverted --keep-stop-words --no-stem --block-size 256", "57", [57]),
        ("text", "--type fts --tokenizer whitespace --max-word-bytes 4 --no-stem", "number", []),
        ("text", "--type fts --tokenizer ngram --min-ngram 6 --max-ngram 6", "er 312", [312]),
        ("text", "--type fts --no-stem --stop-word number --stop-word row", "number", []),
        ("text", "--type fts --tokenizer raw --keep-case --format-version 3", "row number 9", [9]),
        ("text", "--type fts --tokenizer code --split-identifiers --operators", "77", [77]),
    ],
)
def test_create_builds_an_index_of_words_that_pylance_searches(
    dataset, column, options, words, found
):
    assert "index text_idx (INVERTED) of 600 rows" in run(
        "index", "create", dataset, column, *options.split()
    )
    theirs = lance.dataset(str(dataset)).to_table(columns=["id"], full_text_query=words)
    assert theirs["id"].to_pylist() == found


@pytest.mark.parametrize(
    ("column", "kind"), [("v", "IVF_PQ"), ("id", "BTREE"), ("tags", "LABEL_LIST")]
)
def test_create_takes_the_usual_type_of_a_column_unless_it_is_told_one(dataset, column, kind):
    assert f"index {column}_idx ({kind}" in run("index", "create", dataset, column)


def test_create_tells_which_options_a_type_has_a_use_for(dataset):
    told = run("index", "create", dataset, "v", "--type", "ivf_flat", "--bits", 8, status=2)
    assert "--bits is of no use to ivf_flat, which takes --metric, --partitions" in told
    told = run("index", "create", dataset, "id", "--type", "bitmap", "--m", 8, status=2)
    assert "--m is of no use to bitmap, which takes no such option" in told


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [
        (("nope",), "columns are: id, text, tags, v"),
        (("id", "--type", "ivf_pq"), "takes columns of vectors"),
        (("id", "--type", "fts"), "takes columns of texts, of lists of texts or of JSON"),
        (("text", "--type", "fts", "--language", "Klingon"), "unsupported language 'Klingon'"),
        (("text", "--type", "fts", "--operators"), "--operators needs --tokenizer='code'"),
        (("text", "--type", "fts", "--block-size", 256, "--format-version", 2), "take 3"),
        (("v", "--metric", "hamming"), "are compared by l2, cosine or dot"),
        (("v", "--sub-vectors", 5), "take a divisor"),
        (("id", "--name", "__lance_x"), "take another one"),
    ],
)
def test_what_cannot_be_built_is_an_error_that_says_what_can(dataset, arguments, wanted):
    assert wanted in run("index", "create", dataset, *arguments, status=1)
    assert open_dataset(dataset).version == 1


def test_a_memory_that_is_none_is_refused_before_anything_is_opened(tmp_path):
    for command in (("create", tmp_path / "no", "id"), ("optimize", tmp_path / "no")):
        told = run("index", *command, "--memory", "lots", status=2)
        assert "write a number and K, M or G" in told


def test_an_index_is_replaced_unless_that_is_forbidden(dataset):
    run("index", "create", dataset, "id", "--name", "mine")
    told = run("index", "create", dataset, "id", "--name", "mine", "--no-replace", status=1)
    assert "error: there is an index 'mine' already; take another name, or --replace" in told
    run("index", "create", dataset, "id", "--name", "mine", "--type", "zonemap")
    assert statistics(dataset, "mine")["index_type"] == "ZoneMap"


def test_what_an_index_replaced_is_told(dataset):
    options = ("--type", "ivf_sq", "--metric", "cosine", "--partitions", 1)
    told = run("index", "create", dataset, "v", *options)
    assert told.startswith("version 2: index v_idx (IVF_SQ, cosine) of 600 rows in 1 partition, ")
    assert "replaced" not in told
    told = run("index", "create", dataset, "v", "--type", "ivf_flat")
    assert "(IVF_FLAT, l2)" in told
    assert told.rstrip().endswith("; replaced IVF_SQ (cosine)")
    report = run_json("index", "create", dataset, "v", "--type", "ivf_flat", "--metric", "dot")
    assert (report["metric"], report["replaced"]["metric"]) == ("dot", "l2")
    run("index", "create", dataset, "id")
    told = run("index", "create", dataset, "id", "--type", "bitmap")
    assert told.rstrip().endswith("; replaced BTREE")


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [
        (("create", "id", "--zone-rows", 0), "--zone-rows is 0; it may be 1 to"),
        (("create", "id", "--type", "zonemap", "--zone-rows", 0), "--zone-rows is 0;"),
        (("create", "id", "--memory", 0), "--memory is 0;"),
        (("create", "v", "--partitions", 0), "--partitions is 0;"),
        (("create", "v", "--type", "ivf_hnsw_sq", "--m", 2), "--m is 2;"),
        (("create", "v", "--max-iters", 0), "--max-iters is 0;"),
        (("optimize", "--memory", 0), "--memory is 0;"),
    ],
)
def test_errors_name_the_options_that_were_typed(dataset, arguments, wanted):
    command, *others = arguments
    assert f"error: {wanted}" in run("index", command, dataset, *others, status=1)


@pytest.mark.parametrize("command", ["optimize", "remap", "drop"])
def test_names_that_no_index_has_are_told_those_that_there_are(dataset, command):
    told = run("index", command, dataset, "nope", status=1)
    assert 'version 1 has no index "nope"; it has none at all' in told
    run("index", "create", dataset, "id")
    run("index", "create", dataset, "text", "--type", "bitmap")
    told = run("index", command, dataset, "nope", status=1)
    assert 'has no index "nope"; there are: id_idx, text_idx' in told


def test_no_empty_line_is_printed_where_there_is_no_terminal_for_a_bar(dataset):
    for command in (("create", dataset, "id"), ("optimize", dataset)):
        done = RUNNER.invoke(app, ["index", *map(str, command)])
        assert done.output.count("\n") == 1
        assert done.output.strip() != ""


def test_a_list_in_a_pipe_has_a_line_per_index_that_is_never_cut(dataset):
    name = "an_index_of_a_rather_long_name_that_is_never_cut"
    run("index", "create", dataset, "v", "--type", "ivf_hnsw_sq", "--name", name)
    done = CliRunner(env={"COLUMNS": "20"}).invoke(app, ["index", "list", str(dataset)])
    header, line = done.output.splitlines()
    assert header.split()[:4] == ["index", "column", "kind", "metric"]
    assert line.split()[:4] == [name, "v", "IVF_HNSW_SQ", "l2"]


def test_too_few_vectors_for_codes_are_told(tmp_path):
    write_dataset(tmp_path / "t.lance", rows(0, 20))
    assert "too few vectors to train it" in run("index", "create", tmp_path / "t.lance", "v")
    (listed,) = run_json("index", "list", tmp_path / "t.lance")
    assert [each["finding"] for each in listed["advice"]] == ["not_built"]


def test_list_shows_what_indices_are_and_what_they_cover(dataset):
    assert "no indices" in run("index", "list", dataset)
    options = ("--type", "ivf_sq", "--metric", "dot", "--partitions", 3)
    run("index", "create", dataset, "v", *options)
    run("index", "create", dataset, "id")
    open_dataset(dataset).append(rows(600, 150))
    told = run("index", "list", dataset)
    assert re.search(r" v_idx v IVF_SQ dot 1 3 600 150 [\d.]+ KiB ", told)
    assert re.search(r" id_idx id BTREE - 1 - 600 150 [\d.]+ K?i?B ", told)
    assert "Advice v_idx: 150 rows (20 %) are in no segment" in told
    indices = run_json("index", "list", dataset)
    assert [each["num_unindexed_rows"] for each in indices] == [150, 150]
    assert [each["covered"] for each in indices] == [[0, 1, 2]] * 2


def test_optimize_covers_new_rows_by_a_delta_or_by_merging(dataset):
    run("index", "create", dataset, "v", "--type", "ivf_flat", "--partitions", 2)
    assert "nothing to do" in run("index", "optimize", dataset)
    open_dataset(dataset).append(rows(600, 100))
    assert "optimized v_idx" in run("index", "optimize", dataset, "--delta")
    assert statistics(dataset, "v_idx")["num_segments"] == 2
    open_dataset(dataset).append(rows(700, 100))
    run("index", "optimize", dataset, "v_idx", "--merge", 2)
    found = statistics(dataset, "v_idx")
    assert (found["num_segments"], found["num_indexed_rows"]) == (1, 800)
    assert "optimized v_idx" in run("index", "optimize", dataset, "--retrain")
    assert "error" in run("index", "optimize", dataset, "no_such", status=1)
    told = run("index", "optimize", dataset, "--delta", "--retrain", status=2)
    assert "give one of" in told


def test_optimizing_tells_how_far_it_is_on_the_way(dataset):
    run("index", "create", dataset, "v", "--type", "ivf_flat", "--partitions", 2)
    run("index", "create", dataset, "id")
    told = []
    opened = open_dataset(dataset).append(rows(600, 9000))
    opened.optimize_indices(progress=lambda *numbers: told.append(numbers))
    assert {total for _, total in told} == {1000}
    done = [each for each, _ in told]
    assert done == sorted(done)
    assert {0, 500, 1000} < set(done)


def test_what_is_advised_for_a_branch_names_it(dataset):
    run("index", "create", dataset, "id")
    branch = open_dataset(dataset).create_branch("dev")
    branch.append(rows(600, 300))
    (command,) = (
        each["command"] for each in run_json("inspect", dataset, "--branch", "dev")["advice"]
    )
    assert command.endswith("--branch dev")
    follow({"stale": command})
    assert run_json("inspect", dataset, "--branch", "dev")["advice"] == []
    assert run_json("index", "list", dataset)[0]["num_indexed_rows"] == 600
    assert run_json("index", "list", dataset, "--branch", "dev")[0]["num_indexed_rows"] == 900


def test_drop_removes_an_index_and_says_what_there_is_if_there_is_no_such(dataset):
    run("index", "create", dataset, "id")
    assert "id_idx" in run("index", "drop", dataset, "other", status=1)
    assert "index id_idx is gone" in run("index", "drop", dataset, "id_idx")
    assert lance.dataset(str(dataset)).describe_indices() == []


def advice_of(dataset):
    report = run_json("inspect", dataset)
    assert report["advice"] == list(
        {orjson.dumps(each): each for each in report["advice"]}.values()
    )
    return {(each["finding"], each["index"]): each["command"] for each in report["advice"]}


def follow(advice):
    """Run what is advised, as it is written."""
    for command in dict.fromkeys(advice.values()):
        program, *words = shlex.split(command)
        assert program == "lance-serve"
        run(*words)


def test_what_inspect_advises_mends_what_it_found(dataset):
    run("index", "create", dataset, "v", "--type", "ivf_flat")
    run("index", "create", dataset, "id")
    run("index", "create", dataset, "id", "--type", "zonemap", "--name", "zones")
    for start in range(600, 1200, 100):
        open_dataset(dataset).append(rows(start, 100))
        run("index", "optimize", dataset, "v_idx", "--delta")
    found = advice_of(dataset)
    assert set(found) == {("fragmented", "v_idx"), ("stale", "id_idx"), ("stale", "zones")}
    follow(found)
    assert advice_of(dataset) == {}


def test_deferred_compactions_are_folded_in_and_forgotten_as_advised(dataset):
    run("index", "create", dataset, "id")
    run("index", "create", dataset, "id", "--type", "zonemap", "--name", "zones")
    run("compact", dataset, "--indices", "defer")
    found = advice_of(dataset)
    assert set(found) == {("left_behind", "id_idx"), ("left_behind", "zones")}
    assert "remap" in found["left_behind", "id_idx"]
    follow(found)
    follow(advice_of(dataset))
    assert advice_of(dataset) == {}
    assert "nothing to follow" in run("index", "remap", dataset)
    assert run_json("inspect", dataset)["reuse"] is None
    assert lance.dataset(str(dataset)).count_rows("id < 70") == 70


def test_segments_whose_fragments_are_gone_go_as_advised(dataset):
    run("index", "create", dataset, "v", "--type", "ivf_flat")
    open_dataset(dataset).append(rows(600, 300))
    run("index", "optimize", dataset, "--delta")
    open_dataset(dataset).delete("id < 600")
    found = advice_of(dataset)
    assert set(found) == {("dead_segments", "v_idx")}
    follow(found)
    assert advice_of(dataset) == {}
    assert statistics(dataset, "v_idx")["num_segments"] == 1


def test_small_fragments_and_deleted_rows_are_compacted_as_advised(dataset):
    for start in range(600, 1600, 100):
        open_dataset(dataset).append(rows(start, 100))
    open_dataset(dataset).delete("id % 5 = 0")
    found = advice_of(dataset)
    assert set(found) == {("small_fragments", None), ("deleted_rows", None)}
    assert "lance-serve compact" in run("inspect", dataset)
    follow(found)
    assert advice_of(dataset) == {}


def test_nothing_is_advised_on_an_old_version(dataset):
    run("index", "create", dataset, "id")
    open_dataset(dataset).append(rows(600, 300))
    assert set(advice_of(dataset)) == {("stale", "id_idx")}
    assert run_json("inspect", dataset, "--version", "2")["advice"] == []
