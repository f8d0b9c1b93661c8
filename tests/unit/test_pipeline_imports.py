from __future__ import annotations

import subprocess
import sys


def test_the_pipeline_is_imported_without_loading_spark():
    code = "import sys, pipeline; pipeline.register; print('pyspark' in sys.modules)"
    found = subprocess.run(  # noqa: S603 - our own interpreter
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert found.stdout.strip() == "False"
