"""A fourth training of the demo's adapter: on from what `configs/demo_generator_fields.py` gives, with questions and
instructions in many more wordings."""

from configs import demo_generator_fields
from selfrag_jax.config import Config


def get_config() -> Config:
    """The settings of `python train.py --config=configs/demo_generator_wordings.py`: the third training's but for
    these."""
    config = demo_generator_fields.get_config()
    config.seed = 3  # other rows than those of the first three
    config.model.adapter = "runs/demo_generator_fields/adapter"
    config.data.rows = "demo_wordings"
    config.train.steps = 800
    config.train.blend = 0.7  # all of it forgets some of what PopQA's factbook passages need
    return config
