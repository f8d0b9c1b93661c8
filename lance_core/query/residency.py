"""The signal that a query cannot be answered at once."""

from __future__ import annotations

from lance_core.errors import LanceError


class NotResidentError(LanceError):
    """A run that may not wait came to something that has to be read, or to long work.

    Never reaches the user: whoever asks for such a run does it again where waiting is allowed.
    """
