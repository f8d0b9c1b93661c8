"""Which version of a table a request is about: members of its body, or query parameters."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_core.errors import InvalidRequestError
from lance_core.table.refs import MAIN_BRANCH
from service.api.bodies import check, given_or
from service.api.models.requests import PinParameters, VersionedBody
from service.catalog.pins import LATEST, Pin

if TYPE_CHECKING:
    from collections.abc import Mapping

_MAIN = ("", MAIN_BRANCH)
_NO_PARAMETERS = PinParameters.model_validate({})


def pin_of(body: VersionedBody, parameters: Mapping[str, str]) -> Pin:
    """Return the version that a request names; what its body says wins.

    Calls without a body, or with one of Arrow data, name the branch in the query.

    Raises
    ------
    InvalidRequestError
        A tag stands beside a version or a branch.
    """
    beside = check(PinParameters, parameters) if parameters else _NO_PARAMETERS
    version, branch = given_or(body.version, beside.version), given_or(body.branch, beside.branch)
    tag = given_or(body.tag, beside.tag)
    if tag is not None:
        if version is not None or branch is not None:
            raise InvalidRequestError("tag: names version and branch; leave those out, or the tag")
        return Pin(tag)
    if branch in _MAIN:
        branch = None
    return LATEST if version is None and branch is None else Pin(version, branch)
