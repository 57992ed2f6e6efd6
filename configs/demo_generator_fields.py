"""A third training of the demo's adapter: on from what `configs/demo_generator_hard.py` gives, on fact sheets with
fields that nothing asks for, and on more plain instructions."""

from configs import demo_generator_hard
from selfrag_jax.config import Config


def get_config() -> Config:
    """The settings of `python train.py --config=configs/demo_generator_fields.py`: the second training's but for
    these."""
    config = demo_generator_hard.get_config()
    config.seed = 2  # other rows than those of the first two
    config.model.adapter = "runs/demo_generator_hard/adapter"
    config.data.rows = "demo_fields"
    config.train.steps = 500
    config.train.blend = 0.6  # all of it forgets some of what the second training taught
    return config
