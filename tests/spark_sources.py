"""The data source, with faults that a test asks for by the option ``fault``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pyspark import TaskContext

from pipeline.datasource import LanceDataSource, LanceWriter

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa
    from pyspark.sql.datasource import WriterCommitMessage
    from pyspark.sql.types import StructType

    from pipeline.datasource import WrittenPart


class FailingWriter(LanceWriter):
    """Fails after the rows of a task are written, or after a commit took its effect."""

    def __init__(self, options: dict[str, str], schema: StructType, *, replaces_all: bool) -> None:
        super().__init__(options, schema, replaces_all=replaces_all)
        self._fault = options["fault"]
        self._mark = Path(options["marks"]) / "failed"

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WrittenPart:
        part = super().write(iterator)
        context = TaskContext.get()
        if context is not None and context.partitionId() == 1:
            is_first = not self._mark.exists()
            self._mark.touch()
            if self._fault == "task always" or (self._fault == "task once" and is_first):
                raise RuntimeError("it burnt down")
        return part

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        super().commit(messages)
        if self._fault == "commit after its effect":
            raise RuntimeError("it burnt down")


class FailingSource(LanceDataSource):
    """The data source ``failing_lance_py``."""

    @classmethod
    def name(cls) -> str:
        return "failing_lance_py"

    def writer(self, schema: StructType, overwrite: bool) -> FailingWriter:
        return FailingWriter(self._plain_options, schema, replaces_all=overwrite)
