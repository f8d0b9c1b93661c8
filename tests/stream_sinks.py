"""A data source whose streaming sink fails when it is told to."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pipeline.datasource import LanceDataSource
from pipeline.stream_parts import StreamTarget
from pipeline.streaming import StreamWriter

if TYPE_CHECKING:
    from pyspark.sql.datasource import WriterCommitMessage
    from pyspark.sql.types import StructType

DIMENSION = 4


class FailingSink(LanceDataSource):
    """Fails once after the effect of a commit where a file ``failAfter`` says the epoch."""

    @classmethod
    def name(cls) -> str:
        return "failing_lance"

    def streamWriter(self, schema: StructType, overwrite: bool) -> StreamWriter:  # noqa: N802
        options = self._plain_options
        fail_after = Path(options.pop("failafter"))
        return _FailingWriter(StreamTarget.of_options(options), schema, overwrite, fail_after)


class _FailingWriter(StreamWriter):
    def __init__(
        self, target: StreamTarget, schema: StructType, overwrite: bool, fail_after: Path
    ) -> None:
        super().__init__(target, schema, replaces_all=overwrite)
        self._fail_after = fail_after

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        super().commit(messages, batchId)
        fail_if_told(self._fail_after, batchId)


def fail_if_told(told: Path, epoch: int) -> None:
    """Fail once, at the epoch that a file says."""
    if told.exists() and told.read_text() == str(epoch):
        told.unlink()
        message = "the answer was lost"
        raise RuntimeError(message)
