"""Groups, ids, prompts, and rows as text."""

import json
import re

import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest

from selfrag_jax import reflection
from selfrag_jax.errors import UserError
from selfrag_jax.reflection import Piece, Segment

PUBLISHED = {
    "[No Retrieval]": 32000,
    "[Retrieval]": 32001,
    "[Continue to Use Evidence]": 32002,
    "[Irrelevant]": 32003,
    "[Relevant]": 32004,
    "<paragraph>": 32005,
    "</paragraph>": 32006,
    "[Utility:1]": 32007,
    "[Utility:2]": 32008,
    "[Utility:3]": 32009,
    "[Utility:4]": 32010,
    "[Utility:5]": 32011,
    "[Fully supported]": 32012,
    "[Partially supported]": 32013,
    "[No support / Contradictory]": 32014,
    "<pad>": 32015,
}


def test_published_order():
    assert list(reflection.TOKENS) == list(PUBLISHED)
    assert [32000 + i for i in range(16)] == list(PUBLISHED.values())


def test_ids_follow_names_and_groups():
    ids = reflection.ReflectionIds.from_lookup(PUBLISHED.get)
    assert (ids.retrieval, ids.no_retrieval, ids.continue_) == (32001, 32000, 32002)
    assert (ids.relevant, ids.paragraph, ids.paragraph_end, ids.pad) == (32004, 32005, 32006, 32015)
    assert (ids.fully, ids.partially, ids.no_support, ids.utility_5) == (32012, 32013, 32014, 32011)
    np.testing.assert_array_equal(ids.group("issup"), [32012, 32013, 32014])
    np.testing.assert_array_equal(ids.group("isuse"), range(32007, 32012))
    assert ids.array.shape == (13,) and set(ids.array) == set(PUBLISHED.values()) - {32005, 32006, 32015}
    assert all(ids[token] == number for token, number in PUBLISHED.items())
    for name, values in reflection.GROUPS.items():
        assert reflection.REFLECTION[reflection.SLICES[name]] == values


def test_missing_ids_are_named():
    with pytest.raises(UserError, match=r"\[Relevant\], <pad>"):
        reflection.ReflectionIds.from_lookup({k: v for k, v in PUBLISHED.items() if v not in (32004, 32015)}.get)


def test_prompts():
    assert reflection.prompt("Do it.") == "### Instruction:\nDo it.\n\n### Response:\n"
    with_input = "### Instruction:\nDo it.\n\n### Input:\nthis\n\n### Response:\n"
    assert reflection.prompt("Do it.", "this") == with_input
    assert reflection.passage("T", "x") == "T\nx"


def test_parse_and_segments():
    output = (
        "[Retrieval]<paragraph>T\nx [Relevant] y</paragraph>[Relevant]A is B. [Fully supported]"
        "[Continue to Use Evidence]C[No Retrieval]D[Utility:5]"
    )
    assert reflection.parse(output)[:3] == [
        Piece("token", "[Retrieval]"),
        Piece("passage", "T\nx [Relevant] y"),
        Piece("token", "[Relevant]"),
    ]
    assert reflection.segments(output) == [
        Segment("[Retrieval]", "T\nx [Relevant] y", "[Relevant]", "A is B. ", "[Fully supported]", None),
        Segment("[Continue to Use Evidence]", None, None, "C", None, None),
        Segment("[No Retrieval]", None, None, "D", None, "[Utility:5]"),
    ]
    assert reflection.segments("Sure![No Retrieval]D")[0] == Segment(None, None, None, "Sure!", None, None)
    assert reflection.segments("") == []


@pytest.mark.parametrize(
    ("output", "message"),
    [
        ("[Retrieval]<paragraph>T\nx", "never closed"),
        ("a</paragraph>b", "closes no"),
        ("<paragraph>a<paragraph>b</paragraph>", "inside another"),
    ],
)
def test_bad_grammar(output, message):
    with pytest.raises(UserError, match=message):
        reflection.parse(output)


def test_two_of_a_group_in_one_segment():
    with pytest.raises(UserError, match="segment 1 holds two of isrel"):
        reflection.segments("[Retrieval]<paragraph>T\nx</paragraph>[Relevant][Irrelevant]a")


parts = st.lists(
    st.sampled_from([*reflection.TOKENS, "a", " ", "\n", "[", "]", "[Relevant", "<para", "é"]), max_size=12
)


@hypothesis.given(parts)
def test_render_is_the_inverse_of_parse(strings):
    output = "".join(strings)
    try:
        pieces = reflection.parse(output)
    except UserError:
        assert "paragraph>" in output
        return
    assert reflection.render(pieces) == output


@pytest.mark.parametrize("piece", [Piece("text", "a[Relevant]b"), Piece("passage", "a</paragraph>b")])
def test_what_cannot_be_written_is_refused(piece):
    with pytest.raises(UserError, match="cannot be written"):
        reflection.render([Piece("text", "x"), Piece("token", "[Relevant]"), piece])


def test_every_published_row(assets):
    for line in (assets / "rows" / "generator_rows.jsonl").read_text().splitlines():
        output = json.loads(line)["output"]
        pieces = reflection.parse(output)
        assert reflection.render(pieces) == output
        between = re.findall(r"<paragraph>(.*?)</paragraph>", output, re.S)
        assert [p.text for p in pieces if p.kind == "passage"] == between
        assert [s.passage for s in reflection.segments(output) if s.passage is not None] == between
