"""From files to a vocabulary: a Hugging Face directory, a SentencePiece model, or the header of a GGUF file.

Whatever the file, the result is a `Vocabulary` whose encoder knows no special token at all, so that no text can
yield one: special strings are looked up by `selfrag_jax.tokenizer` only, where the program itself means them.
"""

import dataclasses
import json
import pathlib
import re
from typing import Any, Protocol

from selfrag_jax import reflection
from selfrag_jax.errors import UserError
from selfrag_jax.gguf import read_metadata


class TextEncoder(Protocol):
    """Text to ids, nothing added and no special token recognised."""

    def __call__(self, text: str) -> list[int]: ...


@dataclasses.dataclass
class Vocabulary:
    """What a tokenizer file says, in one form."""

    encode: TextEncoder = dataclasses.field(repr=False)
    token_bytes: list[bytes] = dataclasses.field(repr=False)  # by id: what the token adds to the text
    special: dict[str, int] = dataclasses.field(repr=False)  # strings whose ids stand for themselves, never in text
    bos_id: int | None
    eos_id: int | None
    add_bos: bool
    space_first: str  # always | missing (only where the text has none) | never: a space before text at the very start


@dataclasses.dataclass(frozen=True)
class SentencePieceEncoder:
    """Text to ids through sentencepiece."""

    processor: Any

    def __call__(self, text: str) -> list[int]:
        return self.processor.encode(text)


@dataclasses.dataclass(frozen=True)
class BytePairEncoder:
    """Text to ids through the `tokenizers` library."""

    tokenizer: Any

    def __call__(self, text: str) -> list[int]:
        return self.tokenizer.encode(text, add_special_tokens=False).ids


def read_vocabulary(path: pathlib.Path) -> Vocabulary:
    """The vocabulary of a .gguf file, or of a directory with tokenizer.model (or one *.model) or tokenizer.json.

    Raises UserError when there is none, it is damaged, or it is of a kind that would be encoded wrongly.
    """
    if path.suffix == ".gguf":
        return _from_gguf(path)
    if not path.exists():
        raise UserError(f"{path}: no such file or directory; give a Hugging Face directory or a .gguf file")
    if not path.is_dir():
        raise UserError(f"{path}: neither a directory nor a .gguf file; give one of these")
    models = [path / "tokenizer.model"] if (path / "tokenizer.model").exists() else sorted(path.glob("*.model"))
    # A SentencePiece model comes before tokenizer.json: the latter is a conversion of it, and not always exact.
    if len(models) == 1:
        return _from_sentencepiece(path, models[0])
    if (path / "tokenizer.json").exists():
        return _from_tokenizer_json(path)
    raise UserError(f"{path}: holds neither tokenizer.model nor tokenizer.json; copy the tokenizer's files there")


def _read_json(path: pathlib.Path) -> dict[str, Any]:
    """A JSON object, {} where there is no such file."""
    try:
        return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    except ValueError:
        raise UserError(f"{path}: not valid JSON; download the file again") from None


def _is_special(text: str, flagged: bool) -> bool:
    """Whether an added token may only be written as an id: flagged so, one of ours, or `<like this>`."""
    return flagged or text in reflection.TOKENS or bool(re.fullmatch(r"<[^<>\s]+>", text))


# --- SentencePiece, from its own file or from the lists in a GGUF file

_NORMAL, _UNKNOWN, _CONTROL, _USER_DEFINED, _BYTE = 1, 2, 3, 4, 6  # the same numbers in both formats


def _empty_model() -> Any:
    """A SentencePiece ModelProto, whose class is made at import: type checkers cannot see it."""
    from sentencepiece import sentencepiece_model_pb2

    return vars(sentencepiece_model_pb2)["ModelProto"]()


def _sentencepiece(proto: Any, source: pathlib.Path) -> tuple[SentencePieceEncoder, list[bytes], dict[str, int]]:
    """Encoder, bytes by id and special tokens of a model, whose whitespace handling is switched off.

    The leading space ("dummy prefix") belongs to the start of a sequence alone and is put there by the caller.
    """
    import sentencepiece

    proto.normalizer_spec.add_dummy_prefix = False
    proto.normalizer_spec.remove_extra_whitespaces = False
    token_bytes, special = [], {}
    for number, piece in enumerate(proto.pieces):
        # Converters file added tokens as they please: normal, user-defined, control.
        if piece.piece in reflection.TOKENS or (piece.type == _USER_DEFINED and _is_special(piece.piece, False)):
            piece.type = _CONTROL
        if piece.type in (_UNKNOWN, _CONTROL):
            special[piece.piece] = number
        if piece.type == _BYTE:
            token_bytes.append(bytes([int(piece.piece[3:5], 16)]))  # <0x0A>
        else:
            token_bytes.append(piece.piece.replace("▁", " ").encode())
    try:
        processor = sentencepiece.SentencePieceProcessor(model_proto=proto.SerializeToString())
    except RuntimeError as error:
        raise UserError(f"{source}: not a usable SentencePiece model: {str(error).splitlines()[0]}") from None
    return SentencePieceEncoder(processor), token_bytes, special


def _from_sentencepiece(path: pathlib.Path, model: pathlib.Path) -> Vocabulary:
    from google.protobuf.message import DecodeError

    proto = _empty_model()
    try:
        proto.ParseFromString(model.read_bytes())
    except DecodeError:
        raise UserError(f"{model}: not a SentencePiece model; download the file again") from None
    space = "always" if proto.normalizer_spec.add_dummy_prefix else "never"
    encode, token_bytes, special = _sentencepiece(proto, model)
    config = _read_json(path / "tokenizer_config.json")
    _add_tokens(_added_tokens(path, config), token_bytes, special, path)
    bos, eos = _named_ids(path, config, special, proto.trainer_spec.bos_piece, proto.trainer_spec.eos_piece)
    add_bos = config.get("add_bos_token", True) and bos is not None
    return Vocabulary(encode, token_bytes, special, bos, eos, add_bos, space)


def _added_tokens(path: pathlib.Path, config: dict[str, Any]) -> dict[str, int]:
    """The tokens that a directory adds to its model."""
    decoder = {entry["content"]: int(number) for number, entry in config.get("added_tokens_decoder", {}).items()}
    fast = {entry["content"]: entry["id"] for entry in _read_json(path / "tokenizer.json").get("added_tokens", [])}
    return {**_read_json(path / "added_tokens.json"), **fast, **decoder}


def _add_tokens(added: dict[str, int], token_bytes: list[bytes], special: dict[str, int], source: pathlib.Path) -> None:
    """Appends the tokens beyond the model's own. All of them become special: the model's encoder knows none."""
    for text, number in sorted(added.items(), key=lambda item: item[1]):
        if number > len(token_bytes):
            raise UserError(f"{source}: token {text!r} has id {number}, but the ids below it end at {len(token_bytes)}")
        if number == len(token_bytes):
            token_bytes.append(text.encode())
            special[text] = number


def _named_ids(
    path: pathlib.Path, config: dict[str, Any], special: dict[str, int], bos: str = "", eos: str = ""
) -> tuple[int | None, int | None]:
    """The ids of the beginning and the end, by what the directory calls them."""
    names = {"bos_token": bos, "eos_token": eos, **_read_json(path / "special_tokens_map.json"), **config}
    ids = []
    for key in ("bos_token", "eos_token"):
        name = names.get(key)
        ids.append(special.get(name["content"] if isinstance(name, dict) else name or ""))
    return ids[0], ids[1]


# --- tokenizer.json


def _byte_alphabet() -> dict[str, int]:
    """GPT-2's printable stand-in for each byte, back to the byte: visible Latin-1 as itself, the rest from U+0100."""
    visible = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    hidden = [byte for byte in range(256) if byte not in visible]
    return {chr(byte): byte for byte in visible} | {chr(256 + place): byte for place, byte in enumerate(hidden)}


_BYTE_OF = _byte_alphabet()


def _bytes_of(token: str, byte_level: bool) -> bytes:
    """What a vocabulary entry adds to the text."""
    if byte_level:
        return bytes(_BYTE_OF[c] for c in token) if all(c in _BYTE_OF for c in token) else token.encode()
    if re.fullmatch(r"<0x[0-9A-F]{2}>", token):
        return bytes([int(token[3:5], 16)])
    return token.replace("▁", " ").encode()


def _steps(step: dict[str, Any] | None, key: str) -> list[dict[str, Any]]:
    """The members of a Sequence, or the single step, or nothing."""
    if step is None:
        return []
    return step[key] if step["type"] == "Sequence" else [step]


def _take_prefix(spec: dict[str, Any]) -> str:
    """Switches off what puts a space before every text, and says when the start of a sequence has one."""
    space = "never"
    normalizers = _steps(spec.get("normalizer"), "normalizers")
    if any(step["type"] == "Prepend" for step in normalizers):
        space = "always"
        kept = [step for step in normalizers if step["type"] != "Prepend"]
        spec["normalizer"] = {"type": "Sequence", "normalizers": kept}
    for step in _steps(spec.get("pre_tokenizer"), "pretokenizers"):
        if step["type"] == "Metaspace" and step.get("prepend_scheme", "always") != "never":
            space, step["prepend_scheme"] = "missing", "never"
        if step["type"] == "ByteLevel" and step.get("add_prefix_space"):
            space, step["add_prefix_space"] = "missing", False
    return space


def _first_special(processor: dict[str, Any] | None) -> str | None:
    """The token that a post-processor puts before every sequence, if it does."""
    for step in _steps(processor, "processors"):
        if step["type"] == "TemplateProcessing" and "SpecialToken" in step["single"][0]:
            return step["single"][0]["SpecialToken"]["id"]
    return None


def _from_tokenizer_json(path: pathlib.Path) -> Vocabulary:
    import tokenizers

    file = path / "tokenizer.json"
    spec = _read_json(file)
    model = spec.get("model", {})
    if model.get("type", "BPE") != "BPE" or not isinstance(model.get("vocab"), dict):
        raise UserError(f"{file}: a {model.get('type')} tokenizer; only BPE tokenizers are supported")
    kinds = {step["type"] for step in _steps(spec.get("pre_tokenizer"), "pretokenizers")}
    byte_level = "ByteLevel" in kinds
    special = {
        entry["content"]: entry["id"]
        for entry in spec.get("added_tokens", [])
        if _is_special(entry["content"], entry["special"])
    }
    special |= {token: model["vocab"][token] for token in reflection.TOKENS if token in model["vocab"]}
    ids = {**model["vocab"], **{entry["content"]: entry["id"] for entry in spec.get("added_tokens", [])}}
    _forget_special(spec, special)
    space = _take_prefix(spec)
    first = _first_special(spec.get("post_processor"))
    spec.update(post_processor=None, truncation=None, padding=None)
    try:
        encode = BytePairEncoder(tokenizers.Tokenizer.from_str(json.dumps(spec)))
    except Exception as error:  # the library raises nothing more exact
        raise UserError(f"{file}: cannot be used: {error}".replace("\n", " ")) from None
    token_bytes = [b""] * (max(ids.values()) + 1)
    for token, number in ids.items():
        token_bytes[number] = token.encode() if token in special else _bytes_of(token, byte_level)
    config = _read_json(path / "tokenizer_config.json")
    bos, eos = _named_ids(path, config, special, bos=first or "")
    add_bos = bool(config.get("add_bos_token", first is not None)) and bos is not None
    return Vocabulary(encode, token_bytes, special, bos, eos, add_bos, space)


def _forget_special(spec: dict[str, Any], special: dict[str, int]) -> None:
    """Takes the special tokens out of everything by which text could become one."""
    model = spec["model"]
    unknown = model.get("unk_token")
    spec["added_tokens"] = [entry for entry in spec.get("added_tokens", []) if entry["content"] not in special]
    model["vocab"] = {t: number for t, number in model["vocab"].items() if t not in special or t == unknown}

    def makes_special(merge: str | list[str]) -> bool:
        return (merge.replace(" ", "", 1) if isinstance(merge, str) else "".join(merge)) in special

    model["merges"] = [merge for merge in model["merges"] if not makes_special(merge)]


# --- GGUF

_LLAMA3_SPLIT = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
    r"|\s+(?!\S)|\s+"
)


def _from_gguf(path: pathlib.Path) -> Vocabulary:
    data = read_metadata(path)
    kind = data.get("tokenizer.ggml.model")
    readers = {"llama": _gguf_sentencepiece, "gpt2": _gguf_byte_level}
    if kind not in readers:
        raise UserError(f"{path}: tokenizer.ggml.model is {kind!r}; supported are {', '.join(readers)}")
    try:
        encode, token_bytes, special = readers[kind](data, path)
    except KeyError as error:
        raise UserError(f"{path}: the header has no {error.args[0]}; convert the model again") from None
    except ValueError:
        raise UserError(f"{path}: the header holds lists of different lengths; convert the model again") from None
    bos, eos = (data.get(f"tokenizer.ggml.{name}_token_id") for name in ("bos", "eos"))
    llama = kind == "llama"
    add_bos = data.get("tokenizer.ggml.add_bos_token", llama or data.get("tokenizer.ggml.pre") == "llama-bpe")
    space = "always" if data.get("tokenizer.ggml.add_space_prefix", llama) else "never"
    return Vocabulary(encode, token_bytes, special, bos, eos, bool(add_bos) and bos is not None, space)


def _gguf_sentencepiece(data: dict[str, Any], path: pathlib.Path) -> tuple[TextEncoder, list[bytes], dict[str, int]]:
    """The SentencePiece model whose pieces, scores and types the file lists."""
    proto = _empty_model()
    proto.trainer_spec.model_type = 2  # BPE
    proto.trainer_spec.byte_fallback = True
    proto.normalizer_spec.name = "identity"
    tokens = data["tokenizer.ggml.tokens"]
    scores, types = data["tokenizer.ggml.scores"], data["tokenizer.ggml.token_type"]
    for token, score, kind in zip(tokens, scores.tolist(), types.tolist(), strict=True):
        proto.pieces.add(piece=token, score=score, type=kind)
    return _sentencepiece(proto, path)


def _gguf_byte_level(data: dict[str, Any], path: pathlib.Path) -> tuple[TextEncoder, list[bytes], dict[str, int]]:
    """The byte-level BPE of the file's merges, with the pre-tokenizer that it names."""
    import tokenizers
    from tokenizers import models, pre_tokenizers

    gpt2 = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    bytes_only = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    digits = pre_tokenizers.Digits(individual_digits=True)
    llama3 = pre_tokenizers.Split(tokenizers.Regex(_LLAMA3_SPLIT), "isolated")
    splits = {
        "smollm": pre_tokenizers.Sequence([digits, gpt2]),
        "llama-bpe": pre_tokenizers.Sequence([llama3, bytes_only]),
        "gpt-2": gpt2,
        "default": gpt2,
    }
    name = data.get("tokenizer.ggml.pre", "default")
    if name not in splits:
        raise UserError(f"{path}: tokenizer.ggml.pre is {name!r}; supported are {', '.join(splits)}")
    tokens, types = data["tokenizer.ggml.tokens"], data["tokenizer.ggml.token_type"].tolist()
    special: dict[str, int] = {}
    vocab: dict[str, int] = {}
    token_bytes: list[bytes] = []
    for number, (token, kind) in enumerate(zip(tokens, types, strict=True)):
        is_special = kind == _CONTROL or (kind != _NORMAL and _is_special(token, False))
        (special if is_special or token in reflection.TOKENS else vocab)[token] = number
        token_bytes.append(token.encode() if token in special else _bytes_of(token, byte_level=True))
    merges = [tuple(merge.split(" ", 1)) for merge in data["tokenizer.ggml.merges"]]
    merges = [merge for merge in merges if "".join(merge) not in special]
    try:
        model = models.BPE(vocab, merges, ignore_merges=name == "llama-bpe")
    except Exception as error:  # the library raises nothing more exact
        raise UserError(f"{path}: the vocabulary and its merges do not fit: {error}") from None
    tokenizer = tokenizers.Tokenizer(model)
    tokenizer.pre_tokenizer = splits[name]
    return BytePairEncoder(tokenizer), token_bytes, special
