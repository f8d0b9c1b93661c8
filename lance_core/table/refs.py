"""Tags and branches: names of versions, kept beside the history of the main branch."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote

from lance_core.errors import (
    BranchNotFoundError,
    CorruptFileError,
    InvalidRequestError,
    ObjectExistsError,
    ObjectNotFoundError,
    TagNotFoundError,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from lance_core.io.store import ObjectStore

MAIN_BRANCH = "main"
"""What users call the branch that has no name in files."""

TAGS_FOLDER = "_refs/tags"
BRANCHES_FOLDER = "_refs/branches"
_BRANCH_ROOTS = "tree"
_SUFFIX = ".json"
_LARGEST_FILE = 1 << 20
_LONGEST_FILE_NAME = 240
"""In bytes: usual file systems take 255, of which stores need some while they write."""


@dataclass(frozen=True, slots=True)
class Tag:
    """A name for one version, which cleanup then keeps.

    ``branch`` is None for the main one. Old writers left out the times, which are in UTC.
    """

    name: str
    version: int
    branch: str | None
    manifest_size: int
    created_at: datetime | None = None
    updated_at: datetime | None = None
    metadata: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Branch:
    """A history of its own that began with a version of another branch.

    ``parent_branch`` is None for the main one. ``lineage`` has a pair per ancestor: the version it
    was left at, and the id of the branch that began there, 32 hex digits.
    """

    name: str
    parent_branch: str | None
    parent_version: int
    lineage: tuple[tuple[int, str], ...]
    created_at: datetime
    manifest_size: int
    metadata: Mapping[str, str] = field(default_factory=dict)


def list_tags(store: ObjectStore) -> list[Tag]:
    """Return the tags of the dataset at the root of ``store``, by name; errors as `read_tag`."""
    return [read_tag(store, name) for name in _names(store, TAGS_FOLDER, _is_tag_name)]


def read_tag(store: ObjectStore, name: str) -> Tag:
    """Read one tag.

    Raises
    ------
    InvalidRequestError
        That is no name of a tag.
    TagNotFoundError
        There is no such tag; the message names those that exist.
    CorruptFileError
        The file cannot be understood.
    """
    path = _tag_path(name)
    try:
        members = _Members(path, _read(store, path))
    except ObjectNotFoundError:
        known = _names(store, TAGS_FOLDER, _is_tag_name)
        raise TagNotFoundError(_none_such("tag", name, known)) from None
    return Tag(
        name=name,
        version=members.number("version"),
        branch=members.optional("branch", str),
        manifest_size=members.number("manifestSize", 0),
        created_at=members.time("createdAt"),
        updated_at=members.time("updatedAt"),
        metadata=members.texts("metadata"),
    )


def write_tag(store: ObjectStore, tag: Tag, *, replace: bool = False) -> None:
    """Write a tag; ``replace`` moves one that exists.

    Raises
    ------
    InvalidRequestError
        That is no name of a tag, or it exists already.
    """
    members = {
        "branch": tag.branch,
        "version": tag.version,
        "createdAt": _text_of(tag.created_at),
        "updatedAt": _text_of(tag.updated_at),
        "manifestSize": tag.manifest_size,
        "metadata": dict(tag.metadata),
    }
    path = _tag_path(tag.name)
    _check_length("tag", tag.name, path)
    _write(store, path, members, f'tag "{tag.name}"', replace=replace)


def delete_tag(store: ObjectStore, name: str) -> None:
    """Remove a tag, and nothing of its version; errors as `read_tag`."""
    read_tag(store, name)
    store.delete(_tag_path(name))


def list_branches(store: ObjectStore) -> list[Branch]:
    """Return the branches of the dataset at the root of ``store`` by name; the main one is none."""
    return [read_branch(store, name) for name in _names(store, BRANCHES_FOLDER, _is_branch_name)]


def branch_names(store: ObjectStore) -> list[str]:
    """Return the names of the branches but the main one, whether or not their files are sound."""
    return _names(store, BRANCHES_FOLDER, _is_branch_name)


def read_branch(store: ObjectStore, name: str) -> Branch:
    """Read what is recorded of a branch; errors as `read_tag`, or ``BranchNotFoundError``."""
    path = _branch_path(name)
    try:
        members = _Members(path, _read(store, path))
    except ObjectNotFoundError:
        known = _names(store, BRANCHES_FOLDER, _is_branch_name)
        raise BranchNotFoundError(_none_such("branch", name, known)) from None
    return Branch(
        name=name,
        parent_branch=members.optional("parentBranch", str),
        parent_version=members.number("parentVersion"),
        lineage=members.lineage(),
        created_at=members.unix_time("createAt"),
        manifest_size=members.number("manifestSize", 0),
        metadata=members.texts("metadata"),
    )


def write_branch(store: ObjectStore, branch: Branch) -> None:
    """Record a branch, whose first manifest is there already; errors as `write_tag`."""
    members = {
        "parentBranch": branch.parent_branch,
        "identifier": {"version_mapping": [list(pair) for pair in branch.lineage]},
        "parentVersion": branch.parent_version,
        "createAt": int(branch.created_at.timestamp()),
        "manifestSize": branch.manifest_size,
        "metadata": dict(branch.metadata),
    }
    path = _branch_path(branch.name)
    _write(store, path, members, f'branch "{branch.name}"', replace=False)


def delete_branch(store: ObjectStore, name: str) -> None:
    """Forget a branch, but leave its files; errors as `read_tag`."""
    read_branch(store, name)
    store.delete(_branch_path(name))


def branch_root(name: str) -> str:
    """Return the folder of a branch, relative to the root of the main one.

    Raises ``InvalidRequestError`` for what is no name of a branch.

    Examples
    --------
    >>> branch_root("feature/x")
    'tree/feature/x'
    """
    _check_name("branch", name, _is_branch_name)
    return f"{_BRANCH_ROOTS}/{name}"


def check_new_branch(name: str) -> None:
    """Raise ``InvalidRequestError`` for what no branch can be called."""
    _check_length("branch", name, _branch_path(name))


def _tag_path(name: str) -> str:
    _check_name("tag", name, _is_tag_name)
    return f"{TAGS_FOLDER}/{name}{_SUFFIX}"


def _branch_path(name: str) -> str:
    _check_name("branch", name, _is_branch_name)
    return f"{BRANCHES_FOLDER}/{quote(name, safe='')}{_SUFFIX}"


def _is_tag_name(name: str) -> bool:
    return _is_word(name) and not name.startswith(".") and not name.endswith((".", ".lock"))


def _is_branch_name(name: str) -> bool:
    parts = name.split("/")
    is_plain = all(_is_word(part) and part != "." for part in parts)
    return is_plain and not name.endswith(".lock") and name != MAIN_BRANCH


def _is_word(part: str) -> bool:
    return part != "" and ".." not in part and all(c.isalnum() or c in "._-" for c in part)


def _check_name(kind: str, name: object, is_name: Callable[[str], bool]) -> None:
    if not isinstance(name, str):
        raise InvalidRequestError(f"the name of a {kind} must be text, not {name!r}")
    if not is_name(name):
        raise InvalidRequestError(
            f'"{name}" is no name of a {kind}: take letters, digits, ".", "-" and "_", not "." at'
            ' the ends, not ".." and not ".lock" at the end'
        )


def _check_length(kind: str, name: str, path: str) -> None:
    """Refuse names of files that file systems do not take; told before anything is written."""
    length = len(path.rpartition("/")[2].encode())
    if length > _LONGEST_FILE_NAME:
        raise InvalidRequestError(
            f'the name "{name[:20]}..." of a {kind} makes the name of a file of {length} bytes, of'
            f" which there may be {_LONGEST_FILE_NAME}; take a shorter one"
        )


def _names(store: ObjectStore, folder: str, is_name: Callable[[str], bool]) -> list[str]:
    """Return the names of a folder's files; what no writer would call one so is left out."""
    _, objects = store.list_folder(folder)
    files = [meta.path.rpartition("/")[2] for meta in objects]
    names = [unquote(file.removesuffix(_SUFFIX)) for file in files if file.endswith(_SUFFIX)]
    return sorted(name for name in names if is_name(name))


def _read(store: ObjectStore, path: str) -> object:
    meta = store.head(path)
    if meta.size > _LARGEST_FILE:
        raise CorruptFileError(path, f"{meta.size} bytes are too many for a name of a version")
    try:
        return json.loads(bytes(store.get_range(path, 0, meta.size)))
    except (ValueError, RecursionError) as error:
        raise CorruptFileError(path, f"no JSON: {error}") from error


def _none_such(kind: str, name: str, known: list[str]) -> str:
    names = "none" if len(known) == 0 else ", ".join(known)
    return f'there is no {kind} "{name}"; there are: {names}'


def _write(
    store: ObjectStore, path: str, members: Mapping[str, object], what: str, *, replace: bool
) -> None:
    data = json.dumps(members, indent=2).encode()
    if replace:
        store.put(path, data)
        return
    try:
        store.put_if_absent(path, data)
    except ObjectExistsError:
        raise InvalidRequestError(f"there is a {what} already") from None


def _text_of(time: datetime | None) -> str | None:
    if time is None:
        return None
    return time.astimezone(UTC).isoformat().replace("+00:00", "Z")


class _Members:
    """The members of a JSON object, checked as they are taken."""

    __slots__ = ("_members", "_path")

    def __init__(self, path: str, value: object) -> None:
        self._path = path
        if not isinstance(value, dict):
            raise self._corrupt("it is no object")
        self._members: dict[str, object] = value

    def number(self, name: str, default: int | None = None) -> int:
        """Return a number of 64 bits without sign."""
        value = self._members.get(name, default)
        if not isinstance(value, int) or not 0 <= value < 2**64:
            raise self._corrupt(f"{name} is {value!r}")
        return value

    def optional(self, name: str, kind: type[str]) -> str | None:
        """Return a text, None where it is null or missing."""
        value = self._members.get(name)
        if value is not None and not isinstance(value, kind):
            raise self._corrupt(f"{name} is {value!r}")
        return value

    def texts(self, name: str) -> Mapping[str, str]:
        """Return a map of texts."""
        value = self._members.get(name)
        if value is None:
            return {}
        if not isinstance(value, dict) or not all(isinstance(each, str) for each in value.values()):
            raise self._corrupt(f"{name} is {value!r}")
        return value

    def time(self, name: str) -> datetime | None:
        """Return a time written as text; nanoseconds are cut off."""
        text = self.optional(name, str)
        if text is None:
            return None
        try:
            return datetime.fromisoformat(re.sub(r"(\.\d{6})\d+", r"\1", text)).astimezone(UTC)
        except (ValueError, OverflowError) as error:
            raise self._corrupt(f"{name} is {text!r}") from error

    def unix_time(self, name: str) -> datetime:
        """Return a time written as seconds."""
        seconds = self.number(name)
        try:
            return datetime.fromtimestamp(seconds, UTC)
        except (ValueError, OverflowError, OSError) as error:
            raise self._corrupt(f"{name} is {seconds}") from error

    def lineage(self) -> tuple[tuple[int, str], ...]:
        """Return the pairs of version and branch id; old writers left them out."""
        identifier = self._members.get("identifier")
        pairs = identifier.get("version_mapping") if isinstance(identifier, dict) else []
        if not isinstance(pairs, list):
            raise self._corrupt(f"identifier is {identifier!r}")
        return tuple(self._pair(pair) for pair in pairs)

    def _pair(self, pair: object) -> tuple[int, str]:
        match pair:
            case [int(version), str(branch_id)]:
                return version, branch_id
        raise self._corrupt(f"identifier has {pair!r}")

    def _corrupt(self, reason: str) -> CorruptFileError:
        return CorruptFileError(self._path, reason)
