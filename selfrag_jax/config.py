"""Every setting of an experiment, typed and documented; `configs/*.py` fill it in.

A config file defines `get_config() -> Config`. Any field can be set from the command line by its dotted path
(`--config.decode.threshold=0.5`). Paths may begin with `package:NAME/…`: a file inside an installed package, found
without importing it (`selfrag_jax.paths.resolve`). "§" refers to the paper's sections unless said otherwise.
"""

import dataclasses
from typing import Any


@dataclasses.dataclass
class ModelConfig:
    """Which language model, and in what precision it runs."""

    path: str = ""  # a Hugging Face directory or a .gguf file
    adapter: str = ""  # a directory with adapter.safetensors and adapter.json (training goes on from it); "" for none
    weights: str = "f32"  # f32 | bf16 | int8 (per channel) | int8_dynamic (activations too, per token); decoding only
    vocab_multiple: int = 128  # vocabulary rows are padded to a multiple of this, and the padding is masked


@dataclasses.dataclass
class RetrievalConfig:
    """The passage encoder, the corpus and the index over it."""

    encoder: str = ""  # a Hugging Face directory holding a BERT model
    normalize: bool = True  # unit-length embeddings (MiniLM); Contriever has none
    max_length: int = 256  # encoder tokens per text
    corpus: str = ""  # passages as JSONL {id,title,text} or DPR TSV; "demo" for the demo's generated facts
    index_dir: str = ""  # where the index and its manifest are kept
    searcher: str = "auto"  # auto | scann | exact
    top_k: int = 5  # K, passages per retrieval (A.3: 5; 10 for PopQA)
    batch_tokens: int = 1024  # encoder tokens per batch, padding included; few fit a CPU's caches, a GPU wants 16384


@dataclasses.dataclass
class DecodeConfig:
    """Segment-level inference (§3.3, algorithm 1, A.3)."""

    retrieve: str = "threshold"  # threshold | token | always | never
    threshold: float = 0.2  # δ of A.3
    threshold_over: str = "two"  # two: p(R)/(p(R)+p(NR)) (A.3) | three: over the whole group (§3.3)
    min_group_mass: float = 0.05  # below this share of probability the Retrieve group is not on offer: text comes first
    beam: int = 2  # B
    max_depth: int = 6  # T, segments per answer
    max_retrievals: int = 0  # per answer; after so many the evidence in force is continued; 0: no limit
    max_new_tokens: int = 100  # per answer, over all its segments
    max_segment_tokens: int = 0  # per segment; 0: only the answer's budget counts
    w_isrel: float = 1.0
    w_issup: float = 1.0
    w_isuse: float = 0.5
    critique: str = "graded"  # graded (A.3) | ideal (Eq. 4)
    first_term: str = "mean_prob"  # mean_prob | prob | log_prob | none
    count_reflection_tokens: bool = True  # whether they count in the first term
    combine: str = "mean"  # mean | sum | product of a path's segment scores
    filter_isrel: bool = False  # drop candidates whose greedy IsRel is Irrelevant
    filter_issup: bool = False  # drop candidates whose greedy IsSup is No support (§3.3, hard constraint)
    force_critique: bool = False  # read IsSup and IsUse where their tokens should stand, if they were not written
    history: str = "segments"  # segments (the passage in force stays) | passages (all stay inline) | text (none stays)
    # What the authors' code does otherwise than the paper, beside `combine`, `history` and `w_isuse`.
    stop_at: str = "retrieve"  # retrieve: a segment ends there | eos: it runs on, and is cut at [Retrieval] afterwards
    absent: str = "renormalise"  # a group that a path lacks: weights renormalised | zero: 0, each segment by itself
    requery: bool = True  # whether every retrieval asks anew; else the first one's passages serve the whole answer
    probe_tokens: int = 0  # retrieve only if [Retrieval] is among so many tokens written without a passage; 0: no probe
    batch_size: int = 8  # questions of a file that are answered together

    @classmethod
    def short_form(cls) -> "DecodeConfig":
        """PopQA, TriviaQA (§4.1, A.3): one segment of up to 100 tokens; `retrieval.top_k` is 10 for PopQA's files."""
        return cls(max_depth=1, max_new_tokens=100, min_group_mass=0.0)

    @classmethod
    def closed(cls) -> "DecodeConfig":
        """PubHealth, ARC-Challenge: one segment of up to 50 tokens; the rows' `options` make candidates vote."""
        return cls(max_depth=1, max_new_tokens=50, min_group_mass=0.0)

    @classmethod
    def long_form(cls) -> "DecodeConfig":
        """ASQA: up to 300 tokens in up to 6 segments, and δ = 0, so that retrieval is hardly ever declined.

        Biographies: `max_segment_tokens` 200.
        """
        return cls(threshold=0.0, max_depth=6, max_new_tokens=300)

    @classmethod
    def reference_short_form(cls) -> "DecodeConfig":
        """`short_form` as the authors' code has it, its command line's w_IsUse of 1.0 included."""
        return cls(max_depth=1, max_new_tokens=100, w_isuse=1.0, **_REFERENCE)

    @classmethod
    def reference_long_form(cls) -> "DecodeConfig":
        """`long_form` as the authors' code has it: 300 tokens a segment, scores multiplied."""
        return cls(
            threshold=0.0, combine="product", probe_tokens=25, max_depth=6, max_segment_tokens=300,
            max_new_tokens=6 * 300, **_REFERENCE,
        )  # fmt: skip


_REFERENCE: dict[str, Any] = {
    "stop_at": "eos",
    "absent": "zero",
    "requery": False,
    "history": "text",
    "min_group_mass": 0.0,
}


@dataclasses.dataclass
class DataConfig:
    """Training rows and how they become batches."""

    rows: str = ""  # JSONL generator rows; "demo", "demo_hard", "demo_fields", … for the demo's (`datasets.DEMO`)
    data_dir: str = ""  # where the ArrayRecord copy is kept
    sequence_length: int = 256
    batch_size: int = 8  # packed sequences per optimiser step, over all devices
    mask: str = "paper"  # paper | reference (the authors' code, `data/encode.py`)
    pack: bool = True


@dataclasses.dataclass
class TrainConfig:
    """The optimiser and the run."""

    steps: int = 400
    learning_rate: float = 2e-5
    token_learning_rate: float = 0.0  # of the new token rows; 0: the same as learning_rate
    warmup_ratio: float = 0.03
    schedule: str = "linear"  # linear | cosine
    weight_decay: float = 0.0
    clip_norm: float = 1.0
    lora_rank: int = 0  # 0: every parameter is trained
    lora_alpha: float = 16.0
    blend: float = 1.0  # how much of the trained adapter is written; the rest is of model.adapter (WiSE-FT)
    microbatches: int = 1
    remat: bool = False
    log_every: int = 10
    checkpoint_every: int = 100
    keep_checkpoints: int = 2


@dataclasses.dataclass
class EvaluateConfig:
    """How much `evaluate` asks and reads."""

    seed: int = 9  # of the questions and labelled rows; the demo's recipe was found on those of seeds 0 to 2, 7 and 8
    per_kind: int = 300  # questions of each kind
    labelled: int = 600  # labelled rows for each of IsRel and IsSup
    popqa: str = ""  # a file of PopQA questions about capitals with `factbook_passage`; "" for none


@dataclasses.dataclass
class Config:
    """One experiment."""

    seed: int = 0
    model: ModelConfig = dataclasses.field(default_factory=ModelConfig)
    retrieval: RetrievalConfig = dataclasses.field(default_factory=RetrievalConfig)
    decode: DecodeConfig = dataclasses.field(default_factory=DecodeConfig)
    data: DataConfig = dataclasses.field(default_factory=DataConfig)
    train: TrainConfig = dataclasses.field(default_factory=TrainConfig)
    evaluate: EvaluateConfig = dataclasses.field(default_factory=EvaluateConfig)
