"""The published 7B recipe (arXiv 2310.11511, appendix B): Llama-2 7B on the 145,619 generator rows."""

from selfrag_jax.config import Config

ROWS = 145_619
EPOCHS = 3
BATCH = 128


def get_config() -> Config:
    """The settings of `python train.py --config=configs/selfrag_7b.py`."""
    config = Config()
    config.model.path = "models/Llama-2-7b-hf"
    config.model.weights = "bf16"
    config.model.vocab_multiple = 256  # 32,016 rows do not divide by 32 devices; 32,256 do

    config.retrieval.encoder = "models/contriever-msmarco"
    config.retrieval.normalize = False
    config.retrieval.corpus = "data/psgs_w100.tsv"
    config.retrieval.index_dir = "runs/wikipedia/index"

    config.data.rows = "data/train.jsonl"
    config.data.data_dir = "runs/selfrag_7b/rows"
    config.data.sequence_length = 2048
    config.data.batch_size = BATCH
    config.data.pack = False  # a batch is 128 rows, as published

    config.train.steps = EPOCHS * ROWS // BATCH
    config.train.learning_rate = 2e-5
    config.train.warmup_ratio = 0.03
    config.train.schedule = "linear"
    config.train.remat = True
    config.train.checkpoint_every = 500
    return config
