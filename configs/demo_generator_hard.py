"""A second training of the demo's adapter: on from what `configs/demo_generator.py` gives, on rows of what it left
weak."""

from configs import demo_generator
from selfrag_jax.config import Config


def get_config() -> Config:
    """The settings of `python train.py --config=configs/demo_generator_hard.py`: the first training's but for these."""
    config = demo_generator.get_config()
    config.seed = 1  # other rows than the first training's
    config.model.adapter = "runs/demo_generator/adapter"
    config.data.rows = "demo_hard"
    config.train.steps = 500
    config.train.learning_rate = 1e-3
    return config
