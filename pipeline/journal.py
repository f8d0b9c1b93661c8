"""What is kept of a job outside the dataset, so that it can be resumed: plan, results, commit.

::

    <state-uri>/<job id>/
      plan.json               kind, parameters, version read, items; written once
      out/<item>-<uuid>.json  result of one attempt, written by the worker
      hb/<item>.json          how far a long item is
      commit.json             the version committed
      lease-<n>.json          who drives the job (see `lease`)
      round-<n>/              plan and results after the n-th conflict
      ...                     whatever the kind of job keeps by `put`

Objects are small, and none is ever changed in a way that a reader could see half of.
"""

from __future__ import annotations

import base64
import json
import re
import time
import uuid
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import TYPE_CHECKING

from lance_core.errors import (
    CorruptFileError,
    InvalidRequestError,
    ObjectExistsError,
    ObjectNotFoundError,
)
from lance_core.io.deleting import delete_all
from lance_core.io.store import KeepsFolders
from lance_core.io.waiting import for_each
from lance_core.table.dataset_stores import (
    open_file_beside,
    open_folder_beside,
    uri_of_files,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from lance_core.io.store import ObjectMeta, ObjectStore

    Options = Mapping[str, str] | None

_PLAN, _COMMIT, _OUT, _BEATS = "plan.json", "commit.json", "out", "hb"
_ROUND = re.compile(r"round-(\d+)")
_JOB_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}")
_MAX_BYTES = 1 << 30
_DIGITS = 8


def default_state_uri(uri: str) -> str:
    """Return where the state of jobs on a dataset is kept: beside it, never inside.

    Examples
    --------
    >>> default_state_uri("s3://bucket/a.lance/")
    's3://bucket/.a.lance.pipeline'

    Raises
    ------
    InvalidRequestError
        It is no folder with a name of its own, but the root of everything or the folder at hand.
    """
    parent, slash, name = uri_of_files(uri).rpartition("/")
    if name in ("", ".", "..", "file:"):
        raise InvalidRequestError(f"{uri!r} names no folder of a dataset; write out its name")
    return f"{parent}{slash}.{name}.pipeline"


def new_job_id(kind: str) -> str:
    """Return a job id that no other job has."""
    return f"{kind}-{time.strftime('%Y%m%dT%H%M%S', time.gmtime())}-{uuid.uuid4().hex[:12]}"


@dataclass(frozen=True, slots=True)
class JournalPlan:
    """What a job set out to do.

    Parameters
    ----------
    kind
        Of the job.
    params
        What was asked for, as JSON.
    read_version
        The version that the items were planned for; 0 where there was no dataset.
    items
        Work, in the order in which results are used.
    is_resumed
        Whether it was stored by an earlier run.
    """

    kind: str
    params: Mapping[str, object]
    read_version: int
    items: tuple[bytes, ...]
    is_resumed: bool = False


@dataclass(frozen=True, slots=True)
class OpenJob:
    """A job that has begun and is not known to be committed.

    Versions from ``read_version`` on, and the files that results name, have to stay for it.
    """

    job_id: str
    kind: str
    read_version: int
    journal: Journal


@dataclass(frozen=True, slots=True)
class Journal:
    """The folder of one job; a value that workers get.

    Parameters
    ----------
    state_uri
        Folder of all jobs.
    job_id
        Letters, digits, ``.``, ``_`` and ``-``.
    storage_options
        Of the store, as pairs.
    round_number
        How often the work was planned anew after conflicts.

    Raises
    ------
    InvalidRequestError
        The job id has other characters.
    """

    state_uri: str
    job_id: str
    storage_options: tuple[tuple[str, str], ...] = ()
    round_number: int = 0

    def __post_init__(self) -> None:
        if _JOB_ID.fullmatch(self.job_id) is None:
            raise InvalidRequestError(
                f"job id {self.job_id!r}: use letters, digits, '.', '_' and '-', 200 at most"
            )

    @classmethod
    def of(cls, state_uri: str, job_id: str, storage_options: Options = None) -> Journal:
        """Return the journal of a job; nothing is read."""
        return cls(state_uri, job_id, _pairs(storage_options))

    def begin(
        self,
        kind: str,
        params: Mapping[str, object],
        read_version: int,
        items: Sequence[bytes],
    ) -> JournalPlan:
        """Store a plan, or return the one that is stored.

        Raises
        ------
        InvalidRequestError
            The one that is stored is of another kind or has other parameters.
        """
        plan = JournalPlan(kind, params, read_version, tuple(items))
        try:
            self._store.put_if_absent(self._path(_PLAN), _plan_bytes(plan))
        except ObjectExistsError:
            found = self.plan()
            if found is None:
                raise
            check_same(found, kind, params, self.job_id)
            return found
        return plan

    def has_begun(self) -> bool:
        """Tell whether a plan is stored, without reading it."""
        return _PLAN in self.names()

    def plan(self) -> JournalPlan | None:
        """Return the plan that is stored, None if the job never began."""
        data = self.get(_PLAN)
        return None if data is None else _parse_plan(data, self._path(_PLAN))

    def record(self, item: int, result: bytes) -> None:
        """Keep the result of an attempt; a worker does so before it returns the result."""
        name = f"{_OUT}/{item:0{_DIGITS}d}-{uuid.uuid4().hex}.json"
        text = {"item": item, "result": base64.b64encode(result).decode()}
        self.put(name, json.dumps(text).encode())

    def recorded(self) -> dict[int, bytes]:
        """Return results by item: of several, the one whose name comes first."""
        first: dict[int, ObjectMeta] = {}
        for meta in self._store.list_tree(self._path(_OUT)):
            number = _item_of(meta)
            if number is not None:
                first.setdefault(number, meta)
        results = for_each(self._store, self._result, list(first.values()))
        return dict(zip(first, results, strict=True))

    def done_items(self) -> set[int]:
        """Return the items that have a result; the results are not read."""
        numbers = map(_item_of, self._store.list_tree(self._path(_OUT)))
        return {number for number in numbers if number is not None}

    def all_records(self) -> list[bytes]:
        """Return the results of all attempts: whatever files they name may be there."""
        metas = list(self._store.list_tree(self._path(_OUT)))
        named = [each for each in metas if _item_of(each) is not None]
        return for_each(self._store, self._result, named)

    def beat(self, item: int, num_rows: int) -> None:
        """Say how many rows of an item are done; a worker does so now and then."""
        self.put(f"{_BEATS}/{item:0{_DIGITS}d}.json", json.dumps({"rows": num_rows}).encode())

    def beats(self) -> dict[int, int]:
        """Return how many rows of items are done, of those that ever said so."""
        metas = list(self._store.list_tree(self._path(_BEATS)))
        found = for_each(self._store, self._beat, metas)
        return {item: rows for item, rows in found if rows is not None}

    def mark_committed(self, version: int) -> None:
        """Say that the job is done, and by which version."""
        self._whole.put(_COMMIT, json.dumps({"version": version}).encode())

    def committed(self) -> int | None:
        """Return the version that was committed, None if none is known to be."""
        data = self._whole.get(_COMMIT)
        if data is None:
            return None
        return _whole_number(_parsed(data, _COMMIT).get("version"), _COMMIT)

    def put(self, name: str, data: bytes) -> None:
        """Keep an object of the job, replacing one of the name."""
        self._store.put(self._path(name), data)

    def put_if_absent(self, name: str, data: bytes) -> None:
        """Keep an object of the job, or raise ``ObjectExistsError``."""
        self._store.put_if_absent(self._path(name), data)

    def discard(self, folder: str) -> None:
        """Remove the objects of a folder of the job, which nobody is going to read any more."""
        delete_all(self._store, [each.path for each in self._store.list_tree(self._path(folder))])

    def discard_object(self, name: str) -> None:
        """Remove an object of the job, and folders that become empty, also that of all jobs."""
        self._store.delete(self._path(name))
        if isinstance(self._store, KeepsFolders):
            self._store.remove_folder(self._path("").strip("/"))
            parent, name = open_file_beside(self.state_uri.rstrip("/"))
            if isinstance(parent, KeepsFolders):
                parent.remove_folder(name)

    def get(self, name: str) -> bytes | None:
        """Return an object of the job, None if there is none of the name."""
        try:
            meta = self._store.head(self._path(name))
            if meta.size > _MAX_BYTES:
                raise CorruptFileError(meta.path, f"has {meta.size} bytes, over {_MAX_BYTES}")
            return bytes(self._store.get_range(meta.path, 0, meta.size))
        except ObjectNotFoundError:
            return None

    def remove(self) -> None:
        """Delete all objects of the journal; the plan first: without one it is no job."""
        root = self._path("").strip("/")
        paths = [meta.path for meta in self._store.list_tree(root)]
        self._store.delete(f"{root}/{_PLAN}")
        delete_all(self._store, paths)
        if isinstance(self._store, KeepsFolders):
            folders = {path.rpartition("/")[0] for path in paths} | {root}
            for folder in sorted(folders, key=len, reverse=True):
                self._store.remove_folder(folder)

    def names(self) -> list[str]:
        """Return the names of the objects of the job, those in folders left out."""
        _, objects = self._store.list_folder(self._path("").strip("/"))
        return [each.path.rpartition("/")[2] for each in objects]

    def round(self, number: int) -> Journal:
        """Return the part of the journal for the work after the ``number``-th conflict."""
        return Journal(self.state_uri, self.job_id, self.storage_options, number)

    def last_round(self) -> Journal:
        """Return the part of the journal that was begun last."""
        folders, _ = self._store.list_folder(self.job_id)
        numbers = [int(found[1]) for name in folders if (found := _ROUND.fullmatch(name))]
        return self.round(max(numbers, default=0))

    def rounds(self) -> list[Journal]:
        """Return all parts of the journal, from the first plan to the last."""
        return [self.round(number) for number in range(self.last_round().round_number + 1)]

    @property
    def _store(self) -> ObjectStore:
        return _opened(self.state_uri, self.storage_options)

    @property
    def _whole(self) -> Journal:
        return self.round(0)

    def _path(self, name: str) -> str:
        part = "" if self.round_number == 0 else f"round-{self.round_number}/"
        return f"{self.job_id}/{part}{name}"

    def _result(self, meta: ObjectMeta) -> bytes:
        data = self._store.get_range(meta.path, 0, meta.size)
        return _decoded(_parsed(data, meta.path).get("result"), meta.path)

    def _beat(self, meta: ObjectMeta) -> tuple[int, int | None]:
        item = int(meta.path.rpartition("/")[2].removesuffix(".json"))
        try:
            rows = _parsed(self._store.get_range(meta.path, 0, meta.size), meta.path).get("rows")
        except CorruptFileError:
            return item, None  # it was replaced while it was read
        return item, rows if isinstance(rows, int) else None


def open_jobs(state_uri: str, storage_options: Options = None) -> list[OpenJob]:
    """Return the jobs that have begun and are not known to be committed, by job id."""
    pairs = _pairs(storage_options)
    store = _opened(state_uri, pairs)
    names = [name for name in store.list_folder("")[0] if _JOB_ID.fullmatch(name) is not None]
    found = for_each(store, partial(_open_job, state_uri, pairs), names)
    return [job for job in found if job is not None]


def check_same(plan: JournalPlan, kind: str, params: Mapping[str, object], job_id: str) -> None:
    """Refuse to go on with a job that was begun for something else."""
    asked = json.loads(json.dumps(params))
    if plan.kind == kind and plan.params == asked:
        return
    names = sorted({*plan.params, *asked})
    differ = [name for name in names if plan.params.get(name) != asked.get(name)]
    what = f"of kind {plan.kind}" if plan.kind != kind else f"with other {', '.join(differ)}"
    raise InvalidRequestError(
        f"job {job_id!r} was begun {what}; give the parameters that it was begun with, or another"
        " job id"
    )


def _open_job(
    state_uri: str, storage_options: tuple[tuple[str, str], ...], job_id: str
) -> OpenJob | None:
    journal = Journal(state_uri, job_id, storage_options)
    plan = journal.plan()
    if plan is None or journal.committed() is not None:
        return None
    return OpenJob(job_id, plan.kind, plan.read_version, journal)


@lru_cache(maxsize=8)
def _opened(state_uri: str, storage_options: tuple[tuple[str, str], ...]) -> ObjectStore:
    return open_folder_beside(state_uri, dict(storage_options))


def _pairs(storage_options: Options) -> tuple[tuple[str, str], ...]:
    return () if storage_options is None else tuple(sorted(storage_options.items()))


def _item_of(meta: ObjectMeta) -> int | None:
    number, dash, _ = meta.path.rpartition("/")[2].partition("-")
    return int(number) if dash == "-" and number.isdecimal() else None


def _plan_bytes(plan: JournalPlan) -> bytes:
    return json.dumps(
        {
            "kind": plan.kind,
            "params": plan.params,
            "read_version": plan.read_version,
            "items": [base64.b64encode(item).decode() for item in plan.items],
        }
    ).encode()


def _parse_plan(data: bytes, path: str) -> JournalPlan:
    found = _parsed(data, path)
    kind, params, items = found.get("kind"), found.get("params"), found.get("items")
    if not (isinstance(kind, str) and isinstance(params, dict) and isinstance(items, list)):
        raise CorruptFileError(path, "is no plan of a job")
    version = _whole_number(found.get("read_version"), path)
    return JournalPlan(kind, params, version, tuple(_each_decoded(items, path)), is_resumed=True)


def _each_decoded(items: Iterable[object], path: str) -> list[bytes]:
    return [_decoded(item, path) for item in items]


def _decoded(text: object, path: str) -> bytes:
    try:
        if not isinstance(text, str):
            raise TypeError(f"{text!r} is no text")  # noqa: TRY301 - one error for both
        return base64.b64decode(text, validate=True)
    except (TypeError, ValueError) as error:
        raise CorruptFileError(path, f"an item or result cannot be read: {error}") from error


def _whole_number(number: object, path: str) -> int:
    if not isinstance(number, int) or number < 0:
        raise CorruptFileError(path, f"{number!r} is no version")
    return number


def _parsed(data: bytes | memoryview, path: str) -> dict[str, object]:
    try:
        found = json.loads(bytes(data))
    except ValueError as error:
        raise CorruptFileError(path, f"is no JSON: {error}") from error
    if not isinstance(found, dict):
        raise CorruptFileError(path, "is no JSON object")
    return found
