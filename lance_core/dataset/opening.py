"""Opening datasets, and making them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_core.dataset.face import Dataset
from lance_core.dataset.places import as_uri, open_version
from lance_core.errors import DatasetNotFoundError, InvalidRequestError
from lance_core.operations.append import create_dataset
from lance_core.operations.write_fragments import FragmentOptions
from lance_core.query.session import Session

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from os import PathLike
    from typing import Literal

    from lance_core.io.scheduler import RangeScheduler
    from lance_core.operations.given_rows import RowSource


def open_dataset(
    uri: str | PathLike[str],
    version: int | str | None = None,
    *,
    branch: str | None = None,
    session: Session | None = None,
    storage_options: Mapping[str, str] | None = None,
    check_base: Callable[[str], None] | None = None,
) -> Dataset:
    """Open a dataset; reads its manifest and nothing else.

    Parameters
    ----------
    uri
        A local folder, or the URI of a place in an object store (``s3://bucket/x.lance``).
    version
        Number of the version to open, or a tag; None = the latest.
    branch
        Branch whose versions are meant; None = the main one. A tag names its branch itself.
    session
        Cache to share with other datasets; None = a new one.
    storage_options
        Configuration of the object store; None = from the environment.
    check_base
        Called with each place outside ``uri`` that holds files of the dataset, as those of shallow
        clones and branches do, before it is read; raises if it must not be. None = all may be.

    Raises
    ------
    DatasetNotFoundError, VersionNotFoundError
        There is no such dataset, version, tag or branch.
    InvalidRequestError
        The version is no number, the tag or branch no possible name, or the tag is one of
        another branch.
    UnsupportedFeatureError
        Reading the dataset needs a feature that this release lacks.
    CorruptFileError
        The manifest contradicts the format.
    """
    session = Session() if session is None else session
    root = as_uri(uri)
    scheduler = session.scheduler(root, storage_options)
    open_base = session.base_opener(storage_options, check_base)

    def open_branch(place: str) -> RangeScheduler:
        return session.scheduler(place, storage_options)  # inside the dataset: nobody is asked

    return Dataset(session, open_version(scheduler, version, branch, open_branch, open_base))


def write_dataset(
    uri: str | PathLike[str],
    data: RowSource,
    *,
    mode: Literal["create", "append", "overwrite"] = "create",
    max_rows_per_file: int = 1 << 20,
    max_bytes_per_file: int = 90 << 30,
    data_storage_version: str | None = None,
    stable_row_ids: bool = False,
    session: Session | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> Dataset:
    """Write rows to a dataset; read as a stream, in bounded memory.

    Parameters
    ----------
    uri
        A local folder, or the URI of a place in an object store.
    data
        A table, a reader of record batches, an iterable of them, or a frame of another library
        that has ``__arrow_c_stream__``.
    mode
        ``create`` makes a dataset where there is none; ``append`` adds rows and ``overwrite``
        replaces them and the schema, both making the dataset if there is none.
    max_rows_per_file
        Rows of a fragment.
    max_bytes_per_file
        Bytes of rows, before encoding, after which a fragment takes no further batch.
    data_storage_version
        Version of the data files of a dataset that is made or overwritten; None = that of the
        dataset, 2.2 for a new one.
    stable_row_ids
        For a new dataset: whether rows get ids that they keep when they are updated or compacted.
    session
        Cache to share with other datasets; None = a new one.
    storage_options
        Configuration of the object store; None = from the environment.

    Returns
    -------
    Dataset
        At the version that was committed.

    Raises
    ------
    InvalidRequestError, TypeMismatchError
        The dataset exists already and is to be created, or the rows do not fit it.
    UnsupportedFeatureError
        A column has a type that the format does not store, or the dataset has a feature that is
        not written.
    CommitConflictError
        Others changed the dataset in a way that the rows cannot be put on top of.

    Examples
    --------
    >>> import tempfile, pyarrow as pa
    >>> uri = tempfile.mkdtemp() + "/a.lance"
    >>> write_dataset(uri, pa.table({"id": [1, 2]})).version
    1
    >>> write_dataset(uri, pa.table({"id": [3]}), mode="append").count_rows()
    3
    """
    if mode not in ("create", "append", "overwrite"):
        raise InvalidRequestError(f"mode is {mode!r}; give create, append or overwrite")
    session = Session() if session is None else session
    sizes = {"max_rows_per_file": max_rows_per_file, "max_bytes_per_file": max_bytes_per_file}
    if mode != "create":
        try:
            dataset = open_dataset(uri, session=session, storage_options=storage_options)
        except DatasetNotFoundError:
            pass
        else:
            if mode == "append":
                return dataset.append(data, **sizes)
            return dataset.overwrite(data, data_storage_version=data_storage_version, **sizes)
    version = "2.2" if data_storage_version is None else data_storage_version
    snapshot = create_dataset(
        session.scheduler(as_uri(uri), storage_options),
        data,
        FragmentOptions(max_rows_per_file, max_bytes_per_file, version),
        has_stable_row_ids=stable_row_ids,
        open_base=session.base_opener(storage_options),
    )
    return Dataset(session, snapshot)
