"""pylance's own REST server, the reference of the Lance Namespace protocol, over a folder.

``python -m benchmarks.adapter_app ROOT PORT``
"""

from __future__ import annotations

import signal
import sys

import lance.namespace


def main() -> None:
    """Serve until SIGTERM."""
    root, port = sys.argv[1:]
    adapter = lance.namespace.RestAdapter("dir", {"root": root}, port=int(port))
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    with adapter:
        signal.pause()


if __name__ == "__main__":
    main()
