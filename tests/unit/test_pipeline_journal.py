"""The journal of a job: what is stored once, what may be stored twice, and who may write."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from lance_core.errors import CorruptFileError, InvalidRequestError, ObjectExistsError
from pipeline.errors import JobRunningError
from pipeline.journal import Journal, default_state_uri, new_job_id, open_jobs
from pipeline.lease import STALE_S, Lease, lease_of

ITEMS = [b"one", b"\x00\xff", b""]
PARAMS = {"mode": "append", "sizes": [1, 2]}


@pytest.fixture
def journal(tmp_path):
    return Journal.of(str(tmp_path / "state"), "job-1")


def dead_pid() -> int:
    command = [sys.executable, "-c", "import os; print(os.getpid())"]
    return int(subprocess.run(command, capture_output=True, check=True).stdout)  # noqa: S603


def test_a_plan_is_stored_once_and_returned_to_those_who_ask_for_the_same(journal):
    first = journal.begin("ingest", PARAMS, 3, ITEMS)
    second = journal.begin("ingest", {"sizes": (1, 2), "mode": "append"}, 4, [b"other"])
    assert (second.items, second.read_version, second.is_resumed) == (tuple(ITEMS), 3, True)
    assert (first.items, first.is_resumed) == (tuple(ITEMS), False)


@pytest.mark.parametrize(
    ("kind", "params", "told"),
    [("train", PARAMS, "of kind ingest"), ("ingest", {"mode": "create"}, "mode, sizes")],
)
def test_a_plan_of_something_else_is_refused(journal, kind, params, told):
    journal.begin("ingest", PARAMS, 3, ITEMS)
    with pytest.raises(InvalidRequestError, match=told):
        journal.begin(kind, params, 3, ITEMS)


def test_of_several_results_of_an_item_the_first_by_name_counts(journal):
    journal.begin("ingest", PARAMS, 3, ITEMS)
    for number in range(5):
        journal.record(1, f"attempt {number}".encode())
    journal.record(0, b"")
    names = sorted((Path(journal.state_uri) / "job-1" / "out").glob("00000001-*"))
    first = json.loads(names[0].read_text())
    again = Journal.of(journal.state_uri, "job-1").recorded()
    assert list(again) == [0, 1]
    assert again[0] == b""
    assert len(journal.all_records()) == 6
    journal.record(1, b"later")
    assert first["item"] == 1


def test_rounds_have_plans_and_results_of_their_own_and_one_commit(journal):
    journal.begin("compact", PARAMS, 3, ITEMS)
    journal.record(0, b"old")
    second = journal.round(1)
    second.begin("compact", PARAMS, 5, ITEMS[:1])
    second.record(0, b"new")
    assert journal.last_round() == second
    assert (journal.recorded(), second.recorded()) == ({0: b"old"}, {0: b"new"})
    assert journal.rounds() == [journal, second]
    second.mark_committed(7)
    assert (journal.committed(), second.committed()) == (7, 7)


def test_objects_and_beats_are_kept_by_name(journal):
    assert journal.get("model.arrow") is None
    journal.put("model.arrow", b"m1")
    journal.put("model.arrow", b"m22")
    with pytest.raises(ObjectExistsError):
        journal.put_if_absent("model.arrow", b"m3")
    assert journal.get("model.arrow") == b"m22"
    journal.beat(3, 100)
    journal.beat(3, 2000)
    journal.beat(0, 1)
    assert journal.beats() == {0: 1, 3: 2000}
    assert journal.names() == ["model.arrow"]


def test_jobs_are_open_from_their_plan_to_their_commit(tmp_path):
    state = str(tmp_path / "state")
    assert open_jobs(state) == []
    for name in ("b", "a", "never-planned"):
        Journal.of(state, name).put("lease-1.json", b"{}")
    for name in ("b", "a"):
        Journal.of(state, name).begin("ingest", PARAMS, 2, ITEMS)
    assert [(job.job_id, job.kind, job.read_version) for job in open_jobs(state)] == [
        ("a", "ingest", 2),
        ("b", "ingest", 2),
    ]
    Journal.of(state, "a").mark_committed(3)
    assert [job.job_id for job in open_jobs(state)] == ["b"]


@pytest.mark.parametrize("job_id", ["", ".", "../x", "a/b", "-a", "a" * 201, "ü"])
def test_job_ids_that_are_no_names_of_folders_are_refused(tmp_path, job_id):
    with pytest.raises(InvalidRequestError, match="job id"):
        Journal.of(str(tmp_path), job_id)


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{}", '{"kind": "a", "params": {}, "items": ["!"], "read_version": 1}',
     '{"kind": "a", "params": {}, "items": [], "read_version": -1}'],
)  # fmt: skip
def test_a_damaged_plan_is_told(journal, text):
    journal.put("plan.json", text.encode())
    with pytest.raises(CorruptFileError, match=r"job-1/plan\.json"):
        journal.plan()


def test_state_lies_beside_the_dataset_whatever_its_place():
    assert default_state_uri("/data/a.lance") == "/data/.a.lance.pipeline"
    assert default_state_uri("a.lance") == ".a.lance.pipeline"
    of_table = default_state_uri("s3+ddb://bucket/x/a.lance?ddbTableName=t")
    assert of_table == "s3://bucket/x/.a.lance.pipeline"
    assert new_job_id("ingest") != new_job_id("ingest")


@pytest.mark.parametrize("uri", ["/", ".", "..", "./", "a/..", "file:///"])
def test_places_without_a_name_are_refused(uri):
    with pytest.raises(InvalidRequestError, match="names no folder of a dataset"):
        default_state_uri(uri)


def test_a_second_driver_is_refused_while_the_first_is_there(journal):
    journal.begin("a", {}, 0, [])
    with Lease(journal) as first:
        with pytest.raises(JobRunningError, match="another driver"), Lease(journal):
            pass
        first.check()
    with Lease(journal) as second:
        second.check()
    last = lease_of(journal)
    assert last is not None
    assert (last.number, last.is_released) == (2, True)


def test_a_job_that_never_began_leaves_nothing_behind(tmp_path):
    state = tmp_path / "state"
    journal = Journal.of(str(state), "one")
    with pytest.raises(JobRunningError), Lease(journal), Lease(journal):
        pass
    assert not state.exists()
    Journal.of(str(state), "two").begin("a", {}, 0, [])
    now = [1000.0]
    with Lease(journal, clock=lambda: now[0]):
        now[0] += STALE_S + 1
        with Lease(journal, clock=lambda: now[0]):
            pass
    assert [each.name for each in state.iterdir()] == ["two"]


def test_a_lease_that_is_not_renewed_is_taken_over_and_its_driver_finds_out(journal):
    now = [1000.0]
    with Lease(journal, clock=lambda: now[0]) as first:
        now[0] += STALE_S + 1
        with Lease(journal, clock=lambda: now[0]) as second:
            second.check()
            with pytest.raises(JobRunningError):
                first.check()


def test_the_lease_of_a_dead_process_of_this_machine_is_stale_at_once(journal):
    journal.begin("a", {}, 0, [])
    with Lease(journal):
        state = json.loads(journal.get("lease-1.json"))
    state |= {"pid": dead_pid(), "is_released": False}
    journal.put("lease-1.json", json.dumps(state).encode())
    with Lease(journal) as lease:
        lease.check()


def test_the_lease_of_a_process_elsewhere_is_fresh_though_its_number_is_free_here(journal):
    journal.begin("a", {}, 0, [])
    with Lease(journal):
        state = json.loads(journal.get("lease-1.json"))
    state |= {"pid": dead_pid(), "is_released": False, "machine": "another"}
    journal.put("lease-1.json", json.dumps(state).encode())
    with pytest.raises(JobRunningError), Lease(journal):
        pass


def test_of_two_that_take_over_at_once_one_gets_it(journal, monkeypatch):
    journal.begin("a", {}, 0, [])
    put = Journal.put_if_absent

    def late(self, name, data):
        monkeypatch.setattr(Journal, "put_if_absent", put)
        with Lease(self):
            put(self, name, data)

    monkeypatch.setattr(Journal, "put_if_absent", late)
    with pytest.raises(JobRunningError), Lease(journal):
        pass
    last = lease_of(journal)
    assert last is not None
    assert last.number == 1
