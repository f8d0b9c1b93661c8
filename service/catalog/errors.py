"""Errors of the catalog, beside those of the library.

::

    LanceError
      NotFoundError
        NamespaceNotFoundError
      PermissionDeniedError          the place is outside what this service may show
"""

from __future__ import annotations

from lance_core.errors import LanceError, NotFoundError


class NamespaceNotFoundError(NotFoundError):
    """No folder of that name lies below the root."""


class PermissionDeniedError(LanceError):
    """The caller asked for something that lies outside the served roots."""
