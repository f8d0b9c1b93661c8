"""Credentials that stand in URIs."""

from __future__ import annotations

import re

_USER_INFO = re.compile(r"(?<!\babfs)(?<!\babfss)://[^/?#\s]*@")
"""RFC 3986, section 3.2.1; in URIs of abfs the container stands there."""
_PASSWORD = re.compile(r"://[^/?#\s]*:[^/?#\s]*@")


def without_user_info(text: str) -> str:
    """Return a text in which the user and the password of every URI are hidden.

    Examples
    --------
    >>> without_user_info("https://me:secret@host/a@b")
    'https://(hidden)@host/a@b'
    """
    return _USER_INFO.sub("://(hidden)@", text)


def require_no_password(uri: str) -> str:
    """Return the URI of a place of tables.

    Raises
    ------
    ValueError
        It holds a password. (Places of tables are told to everyone who asks for them.)
    """
    if _PASSWORD.search(uri) is not None:
        raise ValueError("the URI holds a password: give it as one of the storage_options")
    return uri
