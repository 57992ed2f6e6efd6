"""The language model as decoding sees it: weights, shape and tokenizer."""

import dataclasses
from collections.abc import Iterable
from typing import Protocol

import jax.numpy as jnp

from selfrag_jax.decoding import generate
from selfrag_jax.models.llama import Params
from selfrag_jax.models.llama_config import LlamaConfig
from selfrag_jax.reflection import ReflectionIds


class TokenizerLike(Protocol):
    """What decoding asks of `selfrag_jax.tokenizer.Tokenizer`."""

    @property
    def reflection(self) -> ReflectionIds: ...

    @property
    def eos_id(self) -> int: ...

    def encode_prompt(self, instruction: str, input: str = "") -> list[int]: ...

    def encode_passage(self, title: str, text: str, max_tokens: int | None = None) -> list[int]: ...

    def decode(self, ids: Iterable[int], *, skip_special: bool = True) -> str: ...


@dataclasses.dataclass(frozen=True)
class Model:
    """What the search needs to know of the model and the tokenizer."""

    params: Params
    config: LlamaConfig
    tokenizer: TokenizerLike
    dtype: jnp.dtype

    @property
    def ids(self) -> ReflectionIds:
        return self.tokenizer.reflection

    def control(self, stop_at: str = "retrieve") -> generate.Control:
        return generate.control(self.ids, self.tokenizer.eos_id, stop_at)
