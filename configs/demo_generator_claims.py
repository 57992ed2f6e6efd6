"""A ninth training of the demo's adapter: on from what `configs/demo_generator_facts.py` gives, with closed and long
questions in more wordings."""

from configs import demo_generator_facts
from selfrag_jax.config import Config


def get_config() -> Config:
    """The settings of `python train.py --config=configs/demo_generator_claims.py`: the eighth's but for these."""
    config = demo_generator_facts.get_config()
    config.seed = 8  # other rows than those of the first eight
    config.model.adapter = "runs/demo_generator_facts/adapter"
    config.data.rows = "demo_claims"
    config.train.blend = 0.5
    return config
