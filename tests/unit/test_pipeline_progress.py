"""What is shown of a job: painted, by lines, as JSON."""

from __future__ import annotations

import io
import json

import pytest

from pipeline.progress import Progress, make_progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


class Recorder:
    every_s = 1.0

    def __init__(self):
        self.events = []

    def show(self, event):
        self.events.append(event)


def run_some(progress):
    with progress.phase("build", 3, 3000) as phase:
        phase.update(1, active=2, rows=1000)
        phase.failed(2, "bad file")
        phase.update(3, retried=1, rows=3000)
    progress.event("commit", version=7)


def test_json_is_an_object_per_event_in_their_order():
    stream = io.StringIO()
    run_some(make_progress("json", stream))
    events = [json.loads(line) for line in stream.getvalue().splitlines()]
    names = [event["event"] for event in events]
    assert [*dict.fromkeys(names)] == ["phase_start", "progress", "task_failed", "phase_end", "commit"]  # fmt: skip  # noqa: E501
    assert events[0] | {"at_s": 0} == {
        "event": "phase_start", "at_s": 0, "phase": "build", "items": 3, "rows": 3000,
    }  # fmt: skip
    assert (events[-1]["version"], events[-2]["done"]) == (7, 3)


def test_a_terminal_has_one_line_that_changes_and_lines_that_stay():
    terminal = Terminal()
    run_some(make_progress("auto", terminal))
    *painted, last = terminal.getvalue().split("\n")
    assert last == ""
    assert painted[0].count("\r\x1b[2K") == 1
    assert painted[-1] == "commit  version 7"


def test_elsewhere_lines_are_written_and_nothing_moves():
    stream = io.StringIO()
    run_some(make_progress("auto", stream))
    assert "\r" not in stream.getvalue()
    assert "build  item 2 failed: bad file" in stream.getvalue().splitlines()


def test_none_writes_nothing():
    stream = io.StringIO()
    run_some(make_progress("none", stream))
    assert stream.getvalue() == ""


def test_progress_is_told_no_more_often_than_it_is_shown_and_the_end_always():
    now = [0.0]
    recorder = Recorder()
    with Progress(recorder, clock=lambda: now[0]).phase("a", 10) as phase:
        for done in [*range(11), 10]:
            now[0] += 0.25
            phase.update(done)
    told = [event["done"] for event in recorder.events if event["event"] == "progress"]
    assert told == [3, 7, 10]


def test_rates_and_times_left_count_rows_that_workers_say_are_done():
    now = [0.0]
    recorder = Recorder()
    progress = Progress(recorder, clock=lambda: now[0])
    progress.listen(lambda: {0: 200, 1: 300})
    with progress.phase("a", 2, 1000) as phase:
        now[0] = 10.0
        phase.update(0, active=2)
    (event,) = [event for event in recorder.events if event["event"] == "progress"]
    assert (event["rows"], event["rows_per_s"], event["eta_s"]) == (500, 50, pytest.approx(10.0))
