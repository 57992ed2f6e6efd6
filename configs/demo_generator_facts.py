"""An eighth training of the demo's adapter: on from what `configs/demo_generator_last.py` gives, with questions in
still more wordings."""

from configs import demo_generator_last
from selfrag_jax.config import Config


def get_config() -> Config:
    """The settings of `python train.py --config=configs/demo_generator_facts.py`: the seventh's but for these."""
    config = demo_generator_last.get_config()
    config.seed = 7  # other rows than those of the first seven
    config.model.adapter = "runs/demo_generator_last/adapter"
    config.data.rows = "demo_facts"
    config.train.steps = 200
    config.train.blend = 0.55
    return config
