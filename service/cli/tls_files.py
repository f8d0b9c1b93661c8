"""Files of certificates and keys, looked at before anything listens."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from service.settings import Settings


def check_tls_files(settings: Settings) -> None:
    """Load what the settings of TLS name.

    Raises
    ------
    ValueError
        A file is not there or holds something else; says which setting names it.
    """
    for name in ("tls_certificate", "tls_key", "tls_client_ca"):
        file = getattr(settings, name)
        if file is not None and not Path(file).is_file():
            raise ValueError(f"{name}: there is no file {file}")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    certificate, key = settings.tls_certificate, settings.tls_key
    try:
        if certificate is not None:  # "" for no password: without one, OpenSSL asks the terminal
            context.load_cert_chain(certificate, key, settings.tls_key_password or "")
    except ssl.SSLError as error:
        where = certificate if key is None else f"{certificate} and {key}"
        raise ValueError(
            f"tls_certificate, tls_key: {where} hold no certificate with its key in PEM, or"
            f" tls_key_password is wrong: {error}"
        ) from error
    try:
        if settings.tls_client_ca is not None:
            context.load_verify_locations(settings.tls_client_ca)
    except ssl.SSLError as error:
        raise ValueError(
            f"tls_client_ca: {settings.tls_client_ca} holds no certificates in PEM: {error}"
        ) from error
