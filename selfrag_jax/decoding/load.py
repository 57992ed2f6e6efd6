"""What a config names: the model (weights, tokenizer, adapter, precision, fitted to each other) and the retriever."""

from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp

from selfrag_jax import paths
from selfrag_jax.config import ModelConfig, RetrievalConfig
from selfrag_jax.decoding.retriever import Passage
from selfrag_jax.errors import UserError
from selfrag_jax.models import lora, weights
from selfrag_jax.models.llama import Params
from selfrag_jax.models.llama_config import LlamaConfig
from selfrag_jax.tokenizer import Tokenizer

if TYPE_CHECKING:
    from selfrag_jax.retrieval.retriever import Retriever


def load_model(config: ModelConfig) -> tuple[Params, LlamaConfig, Tokenizer]:
    """Weights ready for decoding, their configuration, and the tokenizer with the reflection tokens.

    Raises UserError for files that are missing, damaged, or do not belong together.
    """
    if not config.path:
        raise UserError("model.path is not set; give a Hugging Face directory or a .gguf file")
    path = paths.resolve(config.path)
    tokenizer = Tokenizer.load(path)
    model_config, params = weights.load_with(path, tokenizer, vocab_multiple=config.vocab_multiple)
    if config.adapter:
        directory = paths.resolve(config.adapter)
        adapter, meta = lora.load_adapter(directory)
        lora.check_fits(meta, params, model_config, str(path), tokenizer.vocabulary.special)
        params = lora.merge(params, adapter, meta, in_place=True)
    if config.weights in ("int8", "int8_dynamic"):
        params = weights.quantize(params, model_config, "int8", dynamic=config.weights == "int8_dynamic")
    elif config.weights == "bf16":
        params = jax.tree.map(lambda leaf: jnp.asarray(leaf).astype(jnp.bfloat16), params)
    elif config.weights != "f32":
        raise UserError(f"model.weights={config.weights!r} is not known; expected f32, bf16, int8 or int8_dynamic")
    return params, model_config, tokenizer


class IndexRetriever:
    """The config's index, opened when it is first needed: questions that bring their passages never need it."""

    def __init__(self, config: RetrievalConfig):
        self._config = config
        self._opened: Retriever | None = None

    def open(self) -> "Retriever":
        """Open index and encoder now. Raises UserError when either is missing or they do not fit together."""
        if self._opened is None:
            # Here and not above: decoding knows only the protocol, and opening costs what some runs never need.
            from selfrag_jax.retrieval import retriever

            self._opened = retriever.Retriever.load(self._config)
        return self._opened

    @property
    def method(self) -> str:
        """How the index is searched, such as "scann hashing"."""
        return self.open().index.method

    def retrieve(self, queries: list[str], k: int) -> list[list[Passage]]:
        """As `Retriever.retrieve`."""
        return self.open().retrieve(queries, k)
