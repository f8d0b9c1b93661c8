"""The signal that a query needs something which is not in memory."""

from __future__ import annotations

from lance_core.errors import LanceError


class NotResidentError(LanceError):
    """A run that may not read came to something that has to be read.

    Never reaches the user: whoever asks for such a run does it again where waiting is allowed.
    """
