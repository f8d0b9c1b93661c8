"""Making the data source known to a session."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def register(spark: SparkSession) -> None:
    """Let a session read and write datasets by ``format("lance_py")`` and ``USING lance_py``.

    The option ``pushFilters`` has an effect only where ``spark.sql.python.filterPushdown.enabled``
    is true, as in sessions of `pipeline.session.make_session`.
    """
    from pipeline.datasource import LanceDataSource  # noqa: PLC0415 - others load no Spark

    spark.dataSource.register(LanceDataSource)
