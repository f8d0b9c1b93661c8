"""Errors of the HTTP edge, beside those of the library and the catalog.

::

    LanceError
      InvalidRequestError
        LimitExceededError
          BodyTooLargeError
      UnauthenticatedError
      BusyError                      the queue is full
      NotReadyError                  kernels are being loaded
"""

from __future__ import annotations

from lance_core.errors import LanceError, LimitExceededError


class BodyTooLargeError(LimitExceededError):
    """The request body is larger than the service accepts."""


class UnauthenticatedError(LanceError):
    """No key was sent, or none that is accepted."""


class BusyError(LanceError):
    """More requests wait than the service queues."""


class NotReadyError(LanceError):
    """The service has started and cannot answer yet."""
