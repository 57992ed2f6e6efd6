"""A seventh training of the demo's adapter: on from what `configs/demo_generator_weak.py` gives, with yet more practice
of plain instructions."""

from configs import demo_generator_weak
from selfrag_jax.config import Config


def get_config() -> Config:
    """The settings of `python train.py --config=configs/demo_generator_last.py`: the sixth training's but for these."""
    config = demo_generator_weak.get_config()
    config.seed = 6  # other rows than those of the first six
    config.model.adapter = "runs/demo_generator_weak/adapter"
    config.data.rows = "demo_last"
    config.train.learning_rate = 7e-4
    config.train.steps = 160
    return config
