"""Reads damaged files one after the other, within bounds of time and memory; see `mutation_runs`.

Run as a process of its own, so that whoever started it survives a crash of a kernel.
"""

from __future__ import annotations

import faulthandler
import resource
import sys
import time
from contextlib import suppress
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from lance_core.errors import LanceError
from lance_core.file.reader import LanceFileReader
from lance_core.io.mapped_store import MappedStore
from lance_core.io.memory_store import MemoryStore
from lance_core.io.scheduler import RangeScheduler
from lance_core.kernels.warm import warm_kernels
from tests.damage import damaged

if TYPE_CHECKING:
    from collections.abc import Callable

    from lance_core.file.reader import ColumnTarget
    from lance_core.io.store import ObjectStore

MAX_SECONDS = 2.0
MAX_BYTES = 512 << 20
_HANG_SECONDS = 30  # on a busy machine; the time of the processor is what is bounded
_MAX_ROWS = 5_000
_BATCH_ROWS = 150
_MAX_BATCHES = 20
_NAME = "file.lance"
_MEANINGLESS = ("acceptable range", "whole number of days", "does not fit in precision")
"""What Arrow says of numbers that are no time, date or decimal; bytes of a file may be such."""


def damaged_file(files: list[Path], seed: int) -> tuple[bytes, str]:
    """Return the damaged file of a seed, and what it was made of."""
    rng = np.random.default_rng(seed)
    path = files[int(rng.integers(len(files)))]
    data, kind = damaged(path.read_bytes(), rng)
    return data, f"{path.name}, {kind}"


def read_everywhere(data: bytes, seed: int) -> None:
    """Read a file in every way; an error of the library is an answer, data must be valid."""
    with TemporaryDirectory() as folder:
        store: ObjectStore = MemoryStore()
        if seed % 2 == 0:
            (Path(folder) / _NAME).write_bytes(data)
            store = MappedStore(Path(folder))
        else:
            store.put(_NAME, data)
        try:
            reader = LanceFileReader.open(RangeScheduler(store), _NAME, len(data))
            names = reader.schema.names
        except LanceError:
            return
        for name in names:
            for ask in (_read, _take, _scan):
                with suppress(LanceError):
                    ask(reader, name)
        for index in range(1, 4):
            with suppress(LanceError):
                reader.global_buffer(index)


def _targets(reader: LanceFileReader, name: str) -> list[ColumnTarget]:
    field = reader.schema.field(name)
    if field.is_blob:
        return [reader.target(name), reader.target(name, blob_handling="all_binary")]
    return [reader.target(name)]


def _read(reader: LanceFileReader, name: str) -> None:
    num_rows = reader.num_rows
    few = min(num_rows, _MAX_ROWS)
    for target in _targets(reader, name):
        _check(reader.read([target], [(0, few)]), few)
        if few > 60:
            ranges = [(3, 20), (1, 2), (30, 55), (num_rows - 40, num_rows)]
            _check(reader.read([target], ranges), 83)


def _take(reader: LanceFileReader, name: str) -> None:
    num_rows = reader.num_rows
    if num_rows > 0:
        rows = np.array([num_rows - 1, 0, num_rows // 2, num_rows // 3, num_rows // 3])
        for target in _targets(reader, name):
            _check(reader.take([target], rows), len(rows))


def _scan(reader: LanceFileReader, name: str) -> None:
    num_rows = num_batches = 0
    with reader.scan(_targets(reader, name)[:1], batch_rows=_BATCH_ROWS) as batches:
        # a damaged count of rows is legal as long as the pages agree, only long
        for batch in islice(batches, _MAX_BATCHES):
            batch.validate()
            num_rows += batch.num_rows
            num_batches += 1
    if num_batches < _MAX_BATCHES and num_rows != reader.num_rows:
        raise AssertionError(f"{num_rows} of {reader.num_rows} rows were scanned")


def _check(arrays: list[pa.Array], num_rows: int) -> None:
    (array,) = arrays
    if len(array) != num_rows:
        raise AssertionError(f"{len(array)} rows instead of {num_rows}")
    try:
        array.validate(full=True)
    except pa.ArrowInvalid as error:
        if not any(text in str(error) for text in _MEANINGLESS):
            raise


def limit_memory() -> None:
    """Let this process have as much more memory as a read may take; refused memory is an error."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    data_kib = next(line.split()[1] for line in status.splitlines() if line.startswith("VmData"))
    limit = int(data_kib) * 1024 + MAX_BYTES
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))


def check_seed(read: Callable[[bytes, int], None], data: bytes, seed: int) -> str | None:
    """Read a damaged file; return what is wrong about how that went, or None."""
    faulthandler.dump_traceback_later(_HANG_SECONDS, exit=True)
    start = time.process_time()
    try:
        read(data, seed)
    except Exception as error:
        place = error.__traceback__
        while place is not None and place.tb_next is not None:
            place = place.tb_next
        where = "" if place is None else f"{place.tb_frame.f_code.co_filename}:{place.tb_lineno}"
        return f"{type(error).__name__}: {error} at {where}"
    finally:
        faulthandler.cancel_dump_traceback_later()
    seconds = time.process_time() - start
    return f"took {seconds:.1f} s" if seconds > MAX_SECONDS else None


def main() -> None:
    """Read the damaged files of some seeds: ``mutation_worker FOLDER START STOP``."""
    folder, start, stop = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    files = sorted(path for path in folder.iterdir() if path.is_file())
    faulthandler.enable()
    warm_kernels()
    for path in files[:: max(1, len(files) // 20)]:  # whatever is loaded once is loaded now
        read_everywhere(path.read_bytes(), 0)
    limit_memory()
    for seed in range(start, stop):
        print(f"begin {seed}", flush=True)  # noqa: T201 - the last line names a crash
        data, kind = damaged_file(files, seed)
        wrong = check_seed(read_everywhere, data, seed)
        if wrong is not None:
            print(f"wrong {seed} ({kind}): {wrong}".replace("\n", " "), flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
