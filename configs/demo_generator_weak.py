"""A sixth training of the demo's adapter: on from what `configs/demo_generator_plain.py` gives, with more practice of
the plain instructions that it left weak, in more wordings of these."""

from configs import demo_generator_plain
from selfrag_jax.config import Config


def get_config() -> Config:
    """The settings of `python train.py --config=configs/demo_generator_weak.py`: the fifth training's but for these."""
    config = demo_generator_plain.get_config()
    config.seed = 5  # other rows than those of the first five
    config.model.adapter = "runs/demo_generator_plain/adapter"
    config.data.rows = "demo_weak"
    config.train.steps = 350
    config.train.blend = 0.5  # all of it loses elsewhere what it gains on its own kinds
    return config
