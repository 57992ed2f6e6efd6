"""A low-rank adapter with trained token rows: making, attaching, merging, and its files.

The adapter is a plain tree, the only thing that is trained:

    {"blocks": {name: {"a": [L, I, R], "b": [L, R, O]}}, "tokens": {"embed": [n, D], "head": [n, D] if untied}}

`attach` puts it into the base tree as leaves that `linear` and `embed` know, `merge` adds it up for decoding
(w + alpha / rank · a b, Hu et al. 2021). The base is never part of it.
"""

import dataclasses
import hashlib
import json
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np

from selfrag_jax.errors import UserError
from selfrag_jax.files import write_text
from selfrag_jax.models import llama, safetensors
from selfrag_jax.models.linear import LoraWeight, TokenRows
from selfrag_jax.models.llama import Params
from selfrag_jax.models.llama_config import LlamaConfig

Adapter = dict[str, Any]
FORMAT_VERSION = 1
# Products of at most this many multiplications stay in the cache, and OpenBLAS does them without waking its threads,
# which on a busy machine spin for twenty times as long as the product takes.
_SMALL_PRODUCT = 1 << 18
TARGETS = ("q", "k", "v", "o", "gate", "up", "down")  # every matrix of a block


@dataclasses.dataclass(frozen=True)
class AdapterMeta:
    """What adapter.json holds: how the adapter was shaped, and what it belongs to."""

    rank: int
    alpha: float
    targets: tuple[str, ...]
    tokens: dict[str, int]  # the trained tokens by their text; their ids follow each other
    base_name: str  # for messages
    base_fingerprint: str  # `fingerprint` of the tree it was trained on
    base_shape: dict[str, int]
    training: dict[str, Any] = dataclasses.field(default_factory=dict)  # config, command, losses: for people

    @property
    def scale(self) -> float:
        """The factor before a b."""
        return self.alpha / self.rank

    @property
    def start(self) -> int:
        """The first trained id."""
        return min(self.tokens.values(), default=0)


def make_meta(
    params: Params,
    config: LlamaConfig,
    *,
    rank: int,
    alpha: float,
    tokens: Mapping[str, int],
    base_name: str,
    targets: Sequence[str] = TARGETS,
    training: Mapping[str, Any] | None = None,
) -> AdapterMeta:
    """The description of an adapter on this base. Raises UserError unless the token ids are consecutive."""
    ids = sorted(tokens.values())
    if ids and ids != list(range(ids[0], ids[0] + len(ids))):
        raise UserError(f"{base_name}: the ids of the trained tokens are not consecutive: {ids}")
    return AdapterMeta(
        rank=rank,
        alpha=alpha,
        targets=tuple(targets),
        tokens=dict(tokens),
        base_name=base_name,
        base_fingerprint=fingerprint(params, config),
        base_shape=_shape(config),
        training=dict(training or {}),
    )


def init_adapter(params: Params, config: LlamaConfig, meta: AdapterMeta, key: jax.Array) -> Adapter:
    """A fresh float32 adapter that changes nothing yet.

    `a` is uniform within ±1/√I, `b` zero, so that a b starts as zero. The token rows are those of `params`, which
    `weights.load` and `weights.prepare_vocabulary` set to the mean of the rows in use.
    """
    sizes, table, blocks = llama.axis_sizes(config), llama.block_table(config), {}
    for name, name_key in zip(meta.targets, jax.random.split(key, len(meta.targets)), strict=True):
        layers, inputs, outputs = (sizes[axis] for axis in table[name].axes)
        shape, bound = (layers, inputs, meta.rank), inputs**-0.5
        blocks[name] = {
            "a": jax.random.uniform(name_key, shape, jnp.float32, -bound, bound),
            "b": jnp.zeros((layers, meta.rank, outputs), jnp.float32),
        }
    rows = slice(meta.start, meta.start + len(meta.tokens))
    tokens = {name: jnp.array(params[name][rows], jnp.float32) for name in _tables(config)} if meta.tokens else {}
    return {"blocks": blocks, "tokens": tokens}


def attach(params: Params, adapter: Adapter, meta: AdapterMeta) -> Params:
    """The tree with the adapter in it as leaves; nothing is copied, and gradients reach `adapter` only if asked."""
    blocks, top = dict(params["blocks"]), dict(params)
    for name, low in adapter["blocks"].items():
        blocks[name] = LoraWeight(blocks[name], low["a"], low["b"], meta.scale)
    for name, rows in adapter["tokens"].items():
        top[name] = TokenRows(top[name], rows, meta.start)
    return {**top, "blocks": blocks}


def merge(params: Params, adapter: Adapter, meta: AdapterMeta, *, in_place: bool = False) -> Params:
    """Plain arrays with the adapter added up, for decoding.

    Args:
        in_place: write into the NumPy arrays of `params`, which costs no memory; they must not be in use elsewhere.
            Device arrays are never written to.
    """
    blocks, top = dict(params["blocks"]), dict(params)
    for name, low in adapter["blocks"].items():
        blocks[name] = _merged(blocks[name], low["a"], low["b"], meta.scale, in_place)
    for name, rows in adapter["tokens"].items():
        top[name] = _with_rows(top[name], rows, meta.start, in_place)
    return {**top, "blocks": blocks}


def _merged(w: Any, a: Any, b: Any, scale: float, in_place: bool) -> Any:
    if not isinstance(w, np.ndarray):
        return _merged_on_device(w, a, b, scale)
    out = w if in_place else w.copy()
    a, b = np.asarray(a, np.float32), np.asarray(b, np.float32) * np.float32(scale)
    rows = max(1, _SMALL_PRODUCT // b[0].size)
    for layer in range(len(out)):
        for start in range(0, len(a[layer]), rows):
            piece = slice(start, start + rows)
            out[layer, piece] += (a[layer, piece] @ b[layer]).astype(out.dtype, copy=False)
    return out


@jax.jit
def _merged_on_device(w: jax.Array, a: jax.Array, b: jax.Array, scale: float) -> jax.Array:
    update = jnp.einsum("lir,lro->lio", a.astype(jnp.float32), b.astype(jnp.float32) * scale)
    return w + update.astype(w.dtype)


def _with_rows(table: Any, rows: Any, start: int, in_place: bool) -> Any:
    if not isinstance(table, np.ndarray):
        return table.at[start : start + len(rows)].set(jnp.asarray(rows).astype(table.dtype))
    out = table if in_place else table.copy()
    out[start : start + len(rows)] = np.asarray(rows, out.dtype)
    return out


def _tables(config: LlamaConfig) -> tuple[str, ...]:
    return ("embed",) if config.tie_embeddings else ("embed", "head")


def _shape(config: LlamaConfig) -> dict[str, int]:
    names = ("hidden_size", "intermediate_size", "num_layers", "num_heads", "num_kv_heads", "head_dim")
    return {name: getattr(config, name) for name in names}


def fingerprint(params: Params, config: LlamaConfig) -> str:
    """A short name for the base weights: the same whatever they were loaded as, and with tokens added or not.

    It covers the norms, the first 32 token rows and some rows of two matrices, rounded to bfloat16. They must be
    plain arrays.
    """
    digest = hashlib.sha256(json.dumps(_shape(config), sort_keys=True).encode())
    middle, blocks = config.num_layers // 2, params["blocks"]
    parts = [params["final_norm"], blocks["attn_norm"], blocks["mlp_norm"], params["embed"][:32]]
    parts += [blocks[name][middle][:64] for name in ("q", "down")]
    for part in parts:
        digest.update(np.ascontiguousarray(np.asarray(part).astype(ml_dtypes.bfloat16)).tobytes())
    return digest.hexdigest()[:32]


def check_fits(
    meta: AdapterMeta, params: Params, config: LlamaConfig, source: str, tokens: Mapping[str, int] | None = None
) -> None:
    """Raise UserError unless the adapter was trained on these weights (and on these ids, where `tokens` says so).

    source: where the base came from, for the message.
    """
    here = _shape(config)
    for name, value in meta.base_shape.items():
        if here.get(name) != value:
            raise UserError(
                f"the adapter was trained on {meta.base_name} ({name} {value}), but {source} has {here.get(name)}:"
                " set model.path to its base model, or model.adapter to another"
            )
    found = fingerprint(params, config)
    if found != meta.base_fingerprint:
        raise UserError(
            f"the adapter was trained on {meta.base_name} (fingerprint {meta.base_fingerprint[:12]}), but {source}"
            f" holds other weights ({found[:12]}): set model.path to its base model, or model.adapter to another"
        )
    for token, number in meta.tokens.items():
        if number >= config.vocab_size or (tokens is not None and tokens.get(token) != number):
            raise UserError(
                f"the adapter has {token} at id {number}, but the tokenizer of {source} has not:"
                " use the tokenizer it was trained with"
            )


def blend(start: Adapter, trained: Adapter, share: float) -> Adapter:
    """`share` of a trained adapter and the rest of the one it started from, number by number.

    Wortsman et al. 2022 (WiSE-FT, arXiv 2109.01903) find that such a mean keeps what fine-tuning would forget. They
    average whole matrices; here the factors are, and the product is that mean less share·(1 − share)·ΔB·ΔA.
    """
    return jax.tree.map(lambda before, after: (1 - share) * before + share * after, start, trained)


def save_adapter(directory: pathlib.Path, adapter: Adapter, meta: AdapterMeta, *, dtype: Any = np.float16) -> None:
    """Write adapter.safetensors and adapter.json, each beside and then renamed; the second names the first's hash.

    dtype: half precision by default, whose 11 bits hold low-rank factors better than bfloat16's 8.
    Raises ValueError when a value does not fit the dtype.
    """
    directory.mkdir(parents=True, exist_ok=True)
    with np.errstate(over="ignore"):  # checked below
        tensors = {name: np.asarray(array).astype(dtype) for name, array in _flat(adapter).items()}
    for name, array in tensors.items():
        if not np.isfinite(array.astype(np.float32)).all():
            raise ValueError(f"the adapter's {name} holds values that are not finite in {np.dtype(dtype)}")
    path = directory / "adapter.safetensors"
    safetensors.write(path, tensors)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    card = {"format_version": FORMAT_VERSION, **dataclasses.asdict(meta), "weights_sha256": digest}
    write_text(directory / "adapter.json", json.dumps(card, indent=2, ensure_ascii=False) + "\n")


def load_adapter(directory: pathlib.Path) -> tuple[Adapter, AdapterMeta]:
    """The adapter (float32 NumPy arrays) and its description. Raises UserError for files missing, damaged or unfit."""
    path, card_path = directory / "adapter.safetensors", directory / "adapter.json"
    try:
        card = json.loads(card_path.read_text("utf-8"))
    except OSError as error:
        raise UserError(
            f"{card_path}: cannot be read ({error.strerror}); is this the directory of an adapter?"
        ) from None
    except ValueError as error:
        raise UserError(f"{card_path}: not valid JSON ({error}); fetch the adapter again") from None
    version = card.pop("format_version", None) if isinstance(card, dict) else None
    if version != FORMAT_VERSION:
        raise UserError(
            f"{card_path}: format version {version}, but this program reads {FORMAT_VERSION}; fetch the adapter again"
        )
    file = safetensors.SafetensorsFile(path)
    digest = card.pop("weights_sha256", None)
    if hashlib.sha256(path.read_bytes()).hexdigest() != digest:
        raise UserError(f"{path}: not the file that adapter.json was written with; fetch the adapter again")
    try:
        meta = AdapterMeta(**{**card, "targets": tuple(card["targets"])})
    except (TypeError, KeyError) as error:
        raise UserError(f"{card_path}: fields missing or unknown ({error}); fetch the adapter again") from None
    adapter: Adapter = {"blocks": {name: {} for name in meta.targets}, "tokens": {}}
    for name in file.header:
        group, *middle, last = name.split(".")
        holder = adapter[group][middle[0]] if middle else adapter[group]
        holder[last] = np.asarray(file.view(name), np.float32)
    return adapter, meta


def _flat(adapter: Adapter) -> dict[str, Any]:
    """Tensors by dotted name: blocks.q.a, tokens.embed."""
    flat = {f"tokens.{name}": rows for name, rows in adapter["tokens"].items()}
    for name, low in adapter["blocks"].items():
        flat |= {f"blocks.{name}.{part}": array for part, array in low.items()}
    return flat
