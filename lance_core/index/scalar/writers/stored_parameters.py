"""With which parameters a segment was built, as its files tell."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_core.index.registry import IndexKind

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_PARAMETERS: Mapping[IndexKind, tuple[str, Mapping[str, tuple[str, Callable[[str], object]]]]] = {
    IndexKind.BTREE: ("page_lookup.lance", {"zone_size": ("batch_size", int)}),
    IndexKind.ZONEMAP: ("zonemap.lance", {"rows_per_zone": ("rows_per_zone", int)}),
    IndexKind.BLOOMFILTER: (
        "bloomfilter.lance",
        {
            "number_of_items": ("bloomfilter_item", int),
            "probability": ("bloomfilter_probability", float),
        },
    ),
}


def file_of_parameters(kind: IndexKind) -> str | None:
    """Return the file whose schema has the parameters of a segment; None = there are none."""
    known = _PARAMETERS.get(kind)
    return None if known is None else known[0]


def parameters_in(kind: IndexKind, metadata: Mapping[str, str]) -> dict[str, object]:
    """Return parameters that a schema tells; of those that it does not tell none.

    Parameters
    ----------
    kind
        One that has a `file_of_parameters`.
    metadata
        Of that file's schema.

    Examples
    --------
    >>> parameters_in(IndexKind.BTREE, {"batch_size": "4096", "range_partitioned": "false"})
    {'zone_size': 4096}
    """
    _, keys = _PARAMETERS[kind]
    found: dict[str, object] = {}
    for name, (key, parse) in keys.items():
        try:
            found[name] = parse(metadata[key])
        except (KeyError, ValueError):
            continue  # an old writer, or none that we know: the usual value serves
    return found


def parameters_metadata(kind: IndexKind, parameters: Mapping[str, object]) -> dict[str, str]:
    """Return what a schema says of parameters, as `parameters_in` finds them there.

    Examples
    --------
    >>> parameters_metadata(IndexKind.ZONEMAP, {"rows_per_zone": 8192})
    {'rows_per_zone': '8192'}
    """
    _, keys = _PARAMETERS[kind]
    return {key: str(parameters[name]) for name, (key, _) in keys.items() if name in parameters}
