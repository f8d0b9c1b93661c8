"""The application on a real socket, in a thread of the test process."""

from __future__ import annotations

import socket
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import httpx
import uvicorn

from service.app import create_app
from service.cli.bounded_heads import BoundedHeads
from service.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@contextmanager
def live_server(root: Path | None, **options: Any) -> Iterator[Any]:
    """Serve and yield the base URL; ``options`` are settings, and arguments of ``create_app``.

    Those that begin with ``ssl_`` are the server's; ``verify`` is what a client trusts then.
    """
    verify = options.pop("verify", True)
    tls = {name: options.pop(name) for name in list(options) if name.startswith("ssl_")}
    arguments = {
        name: options.pop(name) for name in ("open_dataset", "load_kernels") if name in options
    }
    app = create_app(Settings(root=None if root is None else str(root), **options), **arguments)
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        config = uvicorn.Config(
            app,
            loop="uvloop",
            http=BoundedHeads,
            log_config=None,
            access_log=False,
            ws="none",
            **tls,
        )
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        scheme = "http" if tls == {} else "https"
        url = f"{scheme}://127.0.0.1:{listener.getsockname()[1]}"
        try:
            wait_until_ready(url, verify=verify)
            yield url
        finally:
            server.should_exit = True
            thread.join()


def wait_until_ready(url: str, seconds: Any = 180.0, verify: Any = True) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            if httpx.get(f"{url}/ready", verify=verify).status_code == 200:
                return
        except httpx.TransportError:
            pass
        time.sleep(0.05)
    raise TimeoutError(url)
