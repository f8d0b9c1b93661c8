"""Errors of the HTTP edge, beside those of the library and the catalog.

::

    LanceError
      InvalidRequestError
        LimitExceededError
          BodyTooLargeError
      UnauthenticatedError
        UnknownSigningKeyError       a newer key set may have it
      BusyError                      the queue is full, or the memory
      NotReadyError                  kernels are being loaded
"""

from __future__ import annotations

from lance_core.errors import LanceError, LimitExceededError


class BodyTooLargeError(LimitExceededError):
    """The request body is larger than the service accepts."""


class UnauthenticatedError(LanceError):
    """No key was sent, or none that is accepted."""


class UnknownSigningKeyError(UnauthenticatedError):
    """A bearer token is signed with a key that is not in the key set at hand."""


class BusyError(LanceError):
    """There is more to do than the service has threads or memory for."""


class NotReadyError(LanceError):
    """The service has started and cannot answer yet."""
