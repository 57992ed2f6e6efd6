"""Rows to packed batches: nothing lost, nothing mixed, and the place in the stream is exact."""

import itertools

import numpy as np
import pytest

from selfrag_jax.config import DataConfig
from selfrag_jax.data import pipeline
from selfrag_jax.data.encode import encode_row
from selfrag_jax.data.rows import Row, read_rows
from selfrag_jax.errors import UserError
from selfrag_jax.tokenizer import Tokenizer

LENGTH = 512


@pytest.fixture(scope="module")
def tokenizer(assets):
    return Tokenizer.load(assets / "selfrag_tokenizer")


@pytest.fixture(scope="module")
def rows(assets):
    return list(read_rows(assets / "rows" / "generator_rows.jsonl"))


def make(rows, tokenizer, *, pack=True, batch_size=2, seed=3, shard=(0, 1)):
    config = DataConfig(sequence_length=LENGTH, batch_size=batch_size, pack=pack)
    return pipeline.batches(rows, tokenizer, config, seed=seed, shard=shard)


def pieces(batch):
    """The rows in a batch: (tokens, targets, mask) as bytes."""
    for b, segments in enumerate(batch["segment_ids"]):
        for number in range(1, segments.max() + 1):
            place = np.flatnonzero(segments == number)
            assert np.array_equal(place, np.arange(place[0], place[-1] + 1))
            assert np.array_equal(batch["positions"][b, place], np.arange(len(place)))
            yield tuple(batch[name][b, place].tobytes() for name in ("tokens", "targets", "loss_mask"))
        empty = segments == 0
        assert not batch["loss_mask"][b, empty].any()


def expected(rows, tokenizer):
    made = (pipeline.example(encode_row(row, tokenizer, max_length=LENGTH + 1)) for row in rows)
    kept = (m for m in made if m["loss_mask"].any())
    return {tuple(m[name].tobytes() for name in ("tokens", "targets", "loss_mask")) for m in kept}


@pytest.mark.parametrize("pack", [True, False])
def test_batches_hold_the_rows_and_nothing_else(rows, tokenizer, pack):
    wanted = expected(rows, tokenizer)
    seen = []
    for batch in itertools.islice(make(rows, tokenizer, pack=pack), 60):
        assert {name: (array.shape, array.dtype) for name, array in batch.items()} == {
            name: ((2, LENGTH), np.dtype(bool if name == "loss_mask" else np.int32))
            for name in ("tokens", "targets", "loss_mask", "segment_ids", "positions")
        }
        seen += pieces(batch)
    assert set(seen) == wanted


def test_an_epoch_is_in_another_order(rows, tokenizer):
    seen = [piece for batch in itertools.islice(make(rows, tokenizer, pack=False), 110) for piece in pieces(batch)]
    count = len(expected(rows, tokenizer))
    first, second = seen[:count], seen[count : 2 * count]
    assert len(set(first)) == count and set(first) == set(second) and first != second


def test_targets_follow_tokens_and_passages_are_not_learnt(tokenizer):
    row = Row("Q", "[Retrieval]<paragraph>T\nwords</paragraph>[Relevant]a[Fully supported][Utility:5]")
    made = pipeline.example(encode_row(row, tokenizer, max_length=LENGTH + 1))
    assert np.array_equal(made["tokens"][1:], made["targets"][:-1])
    learnt = made["targets"][made["loss_mask"]]
    ids = tokenizer.reflection
    answer = tokenizer.encode("a")
    assert learnt.tolist() == [
        ids.retrieval, ids.paragraph, ids.relevant, *answer, ids.fully, ids.utility_5, tokenizer.eos_id,
    ]  # fmt: skip


@pytest.mark.parametrize("pack", [True, False])
def test_a_restored_stream_goes_on_exactly(rows, tokenizer, pack):
    stream = make(rows, tokenizer, pack=pack)
    for _ in range(3):
        next(stream)
    state = stream.get_state()
    wanted = [next(stream) for _ in range(4)]
    other = make(rows, tokenizer, pack=pack)
    other.set_state(state)
    for batch in wanted:
        found = next(other)
        assert all(np.array_equal(found[name], batch[name]) for name in batch)


def test_hosts_read_different_rows_and_share_the_batch(rows, tokenizer):
    seen = []
    for host in range(2):
        batches = list(itertools.islice(make(rows, tokenizer, pack=False, batch_size=4, shard=(host, 2)), 25))
        assert batches[0]["tokens"].shape == (2, LENGTH)
        seen.append({piece for batch in batches for piece in pieces(batch)})
    assert not seen[0] & seen[1]
    assert seen[0] | seen[1] <= expected(rows, tokenizer)


def asked(question: str, count: int, words: int) -> list[Row]:
    """Rows of one question, each with another answer of about so many tokens."""
    return [Row(question, f"[No Retrieval]{'w ' * words}{number}[Utility:5]") for number in range(count)]


GROUPS = [*asked("twins", 2, 40), *asked("many", 17, 3), *asked("one", 1, 9), *asked("too long together", 2, 300)]


def test_rows_that_ask_the_same_are_groups():
    assert pipeline.group_starts(GROUPS).tolist() == [0, 2, 18, 19, 20, 22]
    assert pipeline.group_starts([*asked("a", 1, 2), Row("a", "x", input="b"), *asked("a", 1, 2)]).tolist() == [
        0,
        1,
        2,
        3,
    ]


def test_variants_of_one_row_are_a_group_and_numbered_rows_are_not():
    def row(identity: str, dataset: str) -> Row:
        return Row(identity + dataset, "[No Retrieval]x[Utility:5]", id=identity, dataset_name=dataset)

    rows = [row("a_1#0", "a"), row("a_1#1", "a_contrast"), row("a_2#0", "a"), row("b#0", "b"), row("b#1", "b")]
    rows += [row("b#2", "ab_contrast"), row("c", "c"), row("c", "c_contrast")]
    assert pipeline.group_starts(rows).tolist() == [0, 2, 3, 4, 5, 6, 7, 8]


@pytest.mark.parametrize("pack", [True, False])
def test_groups_are_packed_together_and_told_apart(tokenizer, pack):
    wanted = expected(GROUPS, tokenizer)
    places: dict[tuple, set] = {}
    for number, batch in enumerate(itertools.islice(make(GROUPS, tokenizer, pack=pack), 60)):
        for piece, b in [(piece, b) for b in range(2) for piece in pieces({k: v[b : b + 1] for k, v in batch.items()})]:
            places.setdefault(piece, set()).add((number, b))
    assert places.keys() == wanted
    twins = [next(iter(expected([row], tokenizer))) for row in GROUPS[:2]]
    assert (places[twins[0]] == places[twins[1]]) == pack


def test_a_stream_is_restored_in_the_middle_of_a_group_that_is_not_joined(tokenizer):
    stream = make(GROUPS, tokenizer, pack=False, batch_size=1)
    for _ in range(30):
        state = stream.get_state()
        wanted = next(stream)
        other = make(GROUPS, tokenizer, pack=False, batch_size=1)
        other.set_state(state)
        found = next(other)
        assert all(np.array_equal(found[name], wanted[name]) for name in wanted)


def test_rows_that_do_not_fit_are_counted(tokenizer):
    config = DataConfig(sequence_length=128)
    assert pipeline.survey(asked("short", 4, 3), tokenizer, config) == (0, 0)
    assert pipeline.survey([*asked("short", 3, 3), *asked("long", 1, 300)], tokenizer, config) == (0.25, 0)
    unanswered = Row("w " * 300, "[No Retrieval]x[Utility:5]")
    assert pipeline.survey([*asked("short", 3, 3), unanswered], tokenizer, config) == (0.25, 0.25)
    with pytest.raises(UserError, match="no row has anything to learn"):
        pipeline.survey([unanswered], tokenizer, config)
