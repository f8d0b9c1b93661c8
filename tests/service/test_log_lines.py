import io
import logging
import os
import sys
import threading

import orjson

from service.telemetry.json_logging import JsonFormatter, LineWriter


def record_of(message):
    return logging.LogRecord("name", logging.INFO, "", 0, message, None, None)


def writer_to(stream):
    writer = LineWriter(stream)
    writer.setFormatter(JsonFormatter())
    return writer


def test_closing_writes_every_line_in_order():
    stream = io.StringIO()
    writer = writer_to(stream)
    for number in range(100):
        writer.handle(record_of(f"line {number}"))
    writer.close()
    messages = [orjson.loads(line)["message"] for line in stream.getvalue().splitlines()]
    assert messages == [f"line {number}" for number in range(100)]


def test_lines_are_written_soon_without_closing():
    written = threading.Event()

    class Stream(io.StringIO):
        def flush(self):
            written.set()

    stream = Stream()
    writer = writer_to(stream)
    writer.handle(record_of("one"))
    assert written.wait(10)
    assert orjson.loads(stream.getvalue())["message"] == "one"
    writer.close()


def test_whoever_logs_does_not_wait_for_a_reader_that_has_stopped():
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb") as reader, os.fdopen(writing, "w") as stream:
        writer = writer_to(stream)
        for _ in range(2_000):
            writer.handle(record_of("x" * 100))  # together more than a pipe holds
        received = bytearray()
        while received.count(b"\n") < 2_000:
            received += os.read(reader.fileno(), 1 << 16)
        writer.close()


def test_a_closed_stream_harms_nobody():
    stream = io.StringIO()
    writer = writer_to(stream)
    stream.close()
    writer.handle(record_of("lost"))
    writer.close()


def test_a_record_that_cannot_be_formatted_is_reported_and_the_next_is_written(monkeypatch):
    stream, complaints = io.StringIO(), io.StringIO()
    monkeypatch.setattr(sys, "stderr", complaints)
    writer = writer_to(stream)
    faulty = logging.LogRecord("name", logging.INFO, "", 0, "%d", ("text",), None)
    writer.handle(faulty)
    writer.handle(record_of("fine"))
    writer.close()
    assert orjson.loads(stream.getvalue())["message"] == "fine"
    assert "text" in complaints.getvalue()


def test_lines_are_written_at_once_from_when_the_server_ends():
    stream = io.StringIO()
    writer = writer_to(stream)
    writer.handle(record_of("before"))
    writer.stop_waiting()
    writer.handle(record_of("after"))
    messages = [orjson.loads(line)["message"] for line in stream.getvalue().splitlines()]
    writer.close()
    assert messages == ["before", "after"]


def test_a_reader_that_has_stopped_holds_up_no_end(monkeypatch):
    monkeypatch.setattr("service.telemetry.json_logging._PATIENCE_S", 0.05)
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb") as reader, os.fdopen(writing, "w") as stream:
        writer = writer_to(stream)
        for _ in range(2_000):
            writer.handle(record_of("x" * 100))  # together more than a pipe holds
        writer.stop_waiting()
        writer.handle(record_of("last"))
        writer.close()
        received = bytearray()
        while b"last" not in received:
            received += os.read(reader.fileno(), 1 << 16)
