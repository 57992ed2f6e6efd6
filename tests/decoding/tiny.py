"""A tiny random Llama and a tokenizer of small words, for tests that need a whole decoder in milliseconds."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np

from selfrag_jax import reflection
from selfrag_jax.decoding.model import Model
from selfrag_jax.decoding.retriever import Passage
from selfrag_jax.models import llama
from selfrag_jax.models.llama_config import LlamaConfig
from selfrag_jax.reflection import TOKENS, ReflectionIds

WORDS = 40  # ids 0 … 39: w0 … w39
EOS = WORDS
FIRST_REFLECTION = WORDS + 1
VOCABULARY = FIRST_REFLECTION + len(TOKENS)
ROWS = 64  # table rows; those beyond the vocabulary are masked padding


class TinyTokenizer:
    """Words `w0` … `w39`, the end of sequence, and the sixteen tokens; any other word is hashed to one of these."""

    eos_id = EOS
    vocab_size = VOCABULARY
    reflection = ReflectionIds.from_lookup(lambda token: FIRST_REFLECTION + TOKENS.index(token))

    def encode(self, text: str, *, first: bool = False) -> list[int]:
        known = lambda word: word[:1] == "w" and word[1:].isdigit() and int(word[1:]) < WORDS  # noqa: E731
        return [int(word[1:]) if known(word) else sum(word.encode()) % WORDS for word in text.split()]

    def encode_prompt(self, instruction: str, input: str = "") -> list[int]:
        return self.encode(reflection.prompt(instruction, input), first=True)

    def encode_passage(self, title: str, text: str, max_tokens: int | None = None) -> list[int]:
        ids = self.encode(reflection.passage(title, text))[: None if max_tokens is None else max_tokens - 2]
        return [self.reflection.paragraph, *ids, self.reflection.paragraph_end]

    def decode(self, ids, *, skip_special: bool = True) -> str:
        strings = [f"w{i}" if i < WORDS else ("</s>" if i == EOS else TOKENS[i - FIRST_REFLECTION]) for i in ids]
        return " ".join(s for s in strings if not skip_special or s[0] == "w")


@dataclasses.dataclass(frozen=True)
class ListRetriever:
    """The same passages for every query."""

    passages: list[Passage]

    def retrieve(self, queries: list[str], k: int) -> list[list[Passage]]:
        return [self.passages[:k] for _ in queries]


@functools.cache
def tiny(seed: int = 0, *, tied: bool = False, window: int = 0, max_positions: int = 512) -> Model:
    """A random model with grouped queries, whose answers are lively: some end, some go on, all groups come up."""
    config = LlamaConfig(
        vocab_size=VOCABULARY, hidden_size=32, intermediate_size=48, num_layers=2, num_heads=4, num_kv_heads=2,
        head_dim=8, max_positions=max_positions, tie_embeddings=tied, sliding_window=window, initializer_range=0.3,
    )  # fmt: skip
    params = llama.init(config, jax.random.key(seed), ROWS)
    return Model(params, config, TinyTokenizer(), jnp.dtype(jnp.float32))


def louder(model: Model, factors: dict[int, float]) -> Model:
    """The model with some rows of its output table scaled, so that these tokens come up more often."""
    scale = np.ones((model.params["head"].shape[0], 1), np.float32)
    for token, factor in factors.items():
        scale[token] = factor
    return dataclasses.replace(model, params=model.params | {"head": model.params["head"] * scale})


def some_passages(count: int, seed: int = 0) -> list[Passage]:
    """Passages of different lengths."""
    rng = np.random.default_rng(seed)
    words = lambda n: " ".join(f"w{i}" for i in rng.integers(0, WORDS, n))  # noqa: E731
    return [Passage(f"p{i}", words(2), words(int(rng.integers(3, 25)))) for i in range(count)]
