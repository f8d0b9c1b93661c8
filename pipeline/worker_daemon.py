"""Where Python workers of Spark come from: a process that has loaded our libraries and forks.

Spark's own has loaded none, so every worker, also the one after each failed attempt, would load
them for seconds, and have memory of its own for them. Named by ``spark.python.daemon.module``.
"""

from __future__ import annotations

import gc

from pyspark.daemon import manager

import lance_core  # noqa: F401 - loaded once, for all workers
import pipeline.ingest_items  # noqa: F401 - so are the readers of files

if __name__ == "__main__":
    gc.collect()
    gc.freeze()  # Spark collects after each task: that took 0.1 s, all for what is never garbage
    manager()
