"""Several server processes on one port, and the process above them."""

from __future__ import annotations

import os
import signal

from uvicorn.supervisors import Multiprocess


class Workers(Multiprocess):
    """uvicorn's supervisor, but for what becomes of two signals.

    SIGHUP is passed on, so that workers read their files anew; uvicorn would replace them, and all
    that they hold in memory. At SIGTERM the port is closed before workers finish what they have: a
    connection that nobody is going to accept would wait, and then be reset.
    """

    def handle_hup(self) -> None:
        """Let each worker read its files anew; one that is starting reads them anyway."""
        for process in self.processes:
            ready = process.wait_until_ready(
                self.config.timeout_worker_healthcheck, self.should_exit
            )
            if ready and process.pid is not None:
                os.kill(process.pid, signal.SIGHUP)

    def terminate_all(self) -> None:
        """Stop listening here, and let workers finish."""
        for each in self.sockets:
            each.close()
        super().terminate_all()
