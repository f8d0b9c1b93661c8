"""Write the message classes of ``lance_core/proto`` from the ``.proto`` files beside this script.

Run by ``make proto``; a test runs it into a temporary directory and compares.
"""

from __future__ import annotations

import argparse
import sys
from importlib.resources import files
from pathlib import Path

from grpc_tools import protoc

SOURCES = Path(__file__).parent
ROOT = SOURCES.parent


def generate(target: Path) -> None:
    """Write ``lance_core/proto/*_pb2.py`` and their ``.pyi`` stubs below ``target``."""
    protos = sorted(str(path) for path in SOURCES.glob("lance_core/proto/*.proto"))
    well_known = files("grpc_tools") / "_proto"
    status = protoc.main(
        [
            "protoc",
            f"--proto_path={SOURCES}",
            f"--proto_path={well_known}",
            f"--plugin=protoc-gen-mypy={Path(sys.executable).with_name('protoc-gen-mypy')}",
            f"--python_out={target}",
            f"--mypy_out={target}",
            *protos,
        ]
    )
    if status != 0:
        raise SystemExit(status)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--target", type=Path, default=ROOT, help="root to write below")
    generate(parser.parse_args().target)
