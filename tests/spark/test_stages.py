"""Stages on Spark: order, retries, items that fail for good, processes that die."""

from __future__ import annotations

import gc
import io
import json
import signal
import threading

import pytest

from pipeline.errors import StageFailedError
from pipeline.progress import make_progress
from pipeline.spark_stages import SparkStages, spare_collections
from tests.pipeline_workers import deadly, echo, faulty, poisoned, slow

ITEMS = [f"item {number}".encode() for number in range(8)]
REVERSED = [item[::-1] for item in ITEMS]


def test_results_come_in_the_order_of_the_items(spark_stages):
    assert spark_stages.run("echo", ITEMS, echo, weights=range(8)) == REVERSED
    assert spark_stages.run("echo", [], echo) == []


@pytest.mark.parametrize("fault", ["raise", "exit"])
def test_an_item_that_fails_once_is_tried_again(spark_stages, tmp_path, fault):
    worker = faulty(echo, str(tmp_path), fault, ITEMS[3])
    assert spark_stages.run("echo", ITEMS, worker) == REVERSED


def test_items_that_fail_for_good_are_named_and_told_as_events(spark):
    stream = io.StringIO()
    stages = SparkStages(spark, make_progress("json", stream))
    with pytest.raises(StageFailedError) as caught:
        stages.run("echo", [b"good", b"bad", b"odd", b"fine"], poisoned)
    assert caught.value.failures == {
        1: "bad is bad",
        2: "RuntimeError: odd is odd",
    }
    events = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert events[0]["event"] == "phase_start"
    assert [event["item"] for event in events if event["event"] == "task_failed"] == [1, 2]
    assert events[-1]["event"] == "phase_end"


@pytest.mark.parametrize("is_slow", [False, True])
def test_what_takes_long_to_look_through_is_not_looked_through_again(monkeypatch, is_slow):
    monkeypatch.setattr("pipeline.spark_stages._SLOW_COLLECTION_S", 0 if is_slow else 3600)
    gc.unfreeze()
    spare_collections()
    assert (gc.get_freeze_count() > 0) == is_slow
    gc.unfreeze()


def test_a_session_for_jobs_has_one_compiler_and_tells_what_it_was_given(spark):
    conf = spark.sparkContext.getConf()
    for role in ("driver", "executor"):
        assert "-XX:TieredStopAtLevel=1" in conf.get(f"spark.{role}.extraJavaOptions").split()
    assert "-Dlog4j2.configurationFile=" in conf.get("spark.driver.extraJavaOptions")


def test_an_item_that_kills_its_process_each_time_is_named(spark_stages):
    with pytest.raises(StageFailedError) as caught:
        spark_stages.run("echo", [b"fine", b"deadly"], deadly)
    assert list(caught.value.failures) == [1]


def test_the_users_interrupt_ends_the_stage(spark, spark_stages):
    timer = threading.Timer(1.0, signal.raise_signal, [signal.SIGINT])
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        spark_stages.run("slow", [b"x"] * 40, slow)
    assert spark_stages.run("echo", ITEMS, echo) == REVERSED
