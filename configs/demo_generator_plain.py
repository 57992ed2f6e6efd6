"""A fifth training of the demo's adapter: on from what `configs/demo_generator_wordings.py` gives, with plain
instructions in still more wordings."""

from configs import demo_generator_wordings
from selfrag_jax.config import Config


def get_config() -> Config:
    """The settings of `python train.py --config=configs/demo_generator_plain.py`: the fourth training's but for
    these."""
    config = demo_generator_wordings.get_config()
    config.seed = 4  # other rows than those of the first four
    config.model.adapter = "runs/demo_generator_wordings/adapter"
    config.data.rows = "demo_plain"
    config.train.steps = 450
    config.train.blend = 1.0
    return config
