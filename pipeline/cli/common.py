"""What all commands share: options, how a job is run, and what its end tells the shell.

Exit codes: 0 done; 1 the store, a file or Spark failed; 2 the command was given something wrong;
3 other writers, or another driver of the job, stood in the way: try again later; 4 tasks failed.
"""

from __future__ import annotations

import functools
import inspect
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Concatenate, ParamSpec

import typer
from rich.console import Console

from lance_core.errors import CommitConflictError, InvalidRequestError, LanceError, NotFoundError
from pipeline.errors import JobRunningError, StageFailedError
from pipeline.job import JobContext
from pipeline.journal import Journal, default_state_uri, new_job_id
from pipeline.progress import Progress, make_progress
from pipeline.session import make_session, stop_session
from pipeline.spark_stages import SparkStages

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from pyspark.sql import SparkSession

    from pipeline.stages import Worker

P = ParamSpec("P")

FAILED, USAGE, CONFLICT, TASKS = 1, 2, 3, 4


class ProgressMode(StrEnum):
    """How progress is shown."""

    AUTO = "auto"
    PLAIN = "plain"
    JSON = "json"
    NONE = "none"


UriOption = Annotated[
    str,
    typer.Option(
        "--uri",
        help="Folder or URI of the dataset: `a.lance`, `s3://bucket/a.lance`.",
        show_default=False,
    ),
]
StorageOptions = Annotated[
    list[str] | None,
    typer.Option(
        "--storage-option",
        metavar="KEY=VALUE",
        help="Configuration of the object store, such as `aws_region=eu-west-1`; may be repeated.",
    ),
]
MasterOption = Annotated[
    str | None,
    typer.Option(
        "--master",
        help="Spark master, such as `spark://host:7077`; left out, that of spark-submit or, without"
        " it, `local[*]`: this machine.",
        show_default=False,
    ),
]
ConfOption = Annotated[
    list[str] | None,
    typer.Option(
        "--conf",
        metavar="KEY=VALUE",
        help="Spark setting, such as `spark.executor.memory=2g`; may be repeated.",
    ),
]
JobIdOption = Annotated[
    str | None,
    typer.Option(
        "--job-id",
        help="Names the job: run again under the same name it goes on where it ended, and is done"
        " once. Random if left out.",
    ),
]
StateUriOption = Annotated[
    str | None,
    typer.Option(
        "--state-uri", help="Folder of what is kept of jobs; `.NAME.pipeline` beside the dataset."
    ),
]
ProgressOption = Annotated[
    ProgressMode, typer.Option("--progress", help="How progress is shown, on standard error.")
]
DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Print the plan and do nothing.")]


@dataclass(frozen=True, slots=True)
class Shared:
    """Options that every command has."""

    uri: str
    storage_options: dict[str, str] | None
    master: str | None
    conf: dict[str, str]
    job_id: str | None
    state_uri: str
    progress_mode: ProgressMode
    dry_run: bool

    @contextmanager
    def context(self, kind: str) -> Iterator[JobContext]:
        """Give what `run_job` needs; Spark starts at the first stage and is stopped at the end.

        Parameters
        ----------
        kind
            Of the job, for its id if none is given.
        """
        progress = make_progress(self.progress_mode.value)
        job_id = new_job_id(kind) if self.job_id is None else self.job_id
        stages = _LateStages(self, progress)
        context = JobContext(
            uri=self.uri,
            storage_options=self.storage_options,
            job_id=job_id,
            state_uri=self.state_uri,
            stages=stages,
            progress=progress,
            dry_run=self.dry_run,
        )
        try:
            yield context
        except (Exception, KeyboardInterrupt):
            if Journal.of(self.state_uri, job_id, self.storage_options).plan() is not None:
                progress.event("unfinished", resume=f"the same command with --job-id {job_id}")
            raise
        finally:
            stages.stop()


class _LateStages:
    """Stages of a session that is made when the first one is run."""

    def __init__(self, shared: Shared, progress: Progress) -> None:
        self._shared = shared
        self._progress = progress
        self._spark: SparkSession | None = None

    def run(
        self,
        name: str,
        items: Sequence[bytes],
        worker: Worker,
        *,
        weights: Sequence[int] | None = None,
    ) -> list[bytes]:
        if len(items) == 0:
            return []
        if self._spark is None:
            self._spark = make_session(self._shared.master, self._shared.conf, is_for_jobs=True)
        return SparkStages(self._spark, self._progress).run(name, items, worker, weights=weights)

    def stop(self) -> None:
        if self._spark is not None:
            stop_session(self._spark)


def with_shared_options(
    command: Callable[Concatenate[Shared, P], None],
) -> Callable[..., None]:
    """Give a command the options that all have, and let its errors end it with their exit codes.

    Parameters
    ----------
    command
        Takes `Shared` first, then what typer makes of its own parameters.
    """

    @functools.wraps(command, assigned=("__module__", "__name__", "__doc__"), updated=())
    def run(
        uri: UriOption,
        storage_option: StorageOptions = None,
        master: MasterOption = None,
        conf: ConfOption = None,
        job_id: JobIdOption = None,
        state_uri: StateUriOption = None,
        progress: ProgressOption = ProgressMode.AUTO,
        dry_run: DryRunOption = False,
        **own: object,
    ) -> None:
        with told_errors():
            shared = Shared(
                uri=uri,
                storage_options=_pairs("--storage-option", storage_option) or None,
                master=master,
                conf=_pairs("--conf", conf),
                job_id=job_id,
                state_uri=default_state_uri(uri) if state_uri is None else state_uri,
                progress_mode=progress,
                dry_run=dry_run,
            )
            command(shared, **own)  # type: ignore[call-arg, arg-type]  # typer has checked them

    _, *own = parameters_of(command)
    *shared, _ = parameters_of(run)
    declare(run, (*own, *shared))
    return run


def parameters_of(function: Callable[..., None], **types: type) -> list[inspect.Parameter]:
    """Return the parameters of a command, their types evaluated.

    Parameters
    ----------
    function
        The command.
    **types
        Types by the names that its module knows for type checkers only; `Shared` is known.
    """
    known = {**getattr(function, "__globals__", {}), "Shared": Shared, **types}
    signature = inspect.signature(function, follow_wrapped=False, eval_str=True, globals=known)
    return list(signature.parameters.values())


def declare(function: Callable[..., None], parameters: Iterable[inspect.Parameter]) -> None:
    """Let a function that takes anything have parameters, of which typer makes options."""
    named = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in parameters]
    function.__signature__ = inspect.Signature(named)  # type: ignore[attr-defined]  # typer's
    function.__annotations__ = {each.name: each.annotation for each in named}


@contextmanager
def told_errors() -> Iterator[None]:
    """Print what went wrong and end with the exit code of its kind."""
    try:
        yield
    except (LanceError, OSError) as error:
        console = Console(stderr=True, soft_wrap=True, emoji=False, markup=False)
        console.print(f"error: {error}", highlight=False)
        raise typer.Exit(_exit_code(error)) from error


def _exit_code(error: Exception) -> int:
    codes: tuple[tuple[type[Exception], int], ...] = (
        (StageFailedError, TASKS),
        (CommitConflictError, CONFLICT),
        (JobRunningError, CONFLICT),
        (InvalidRequestError, USAGE),
        (NotFoundError, USAGE),
    )
    return next((code for kind, code in codes if isinstance(error, kind)), FAILED)


def _pairs(option: str, given: Sequence[str] | None) -> dict[str, str]:
    pairs = [each.partition("=") for each in ([] if given is None else given)]
    if any(key == "" or equals == "" for key, equals, _ in pairs):
        raise InvalidRequestError(f"give {option} as KEY=VALUE")
    return {key: value for key, _, value in pairs}
