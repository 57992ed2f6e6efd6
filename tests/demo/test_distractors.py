"""Wrong values are wrong: of lists, in every member."""

import random

import pytest

from selfrag_jax.demo.distractors import compatible, similar_entities, wrong_values
from selfrag_jax.demo.facts import entities


@pytest.mark.parametrize(
    "a, b",
    [
        ("Polynesia", "Oceania"),  # nested regions
        ("French", "English and French"),
        ("German, French and Italian", "Spanish, Italian and Basque"),
        ("Chad, Libya and Niger", "Algeria, Libya and Tunisia"),
        ("São Tomé", "Sao Tome"),
    ],
)
def test_compatible(a, b):
    assert compatible(a, b) and compatible(b, a)


@pytest.mark.parametrize("a, b", [("Oman and Yemen", "Chad and Libya"), ("French", "German"), ("Paris", "Vienna")])
def test_incompatible(a, b):
    assert not compatible(a, b) and not compatible(b, a)


@pytest.mark.parametrize("relation", ["languages", "neighbours"])
def test_wrong_lists_name_no_right_member(relation):
    def members(value: str) -> set[str]:
        return set(value.replace(" and ", ", ").split(", "))

    rng, found = random.Random(0), 0
    for entity in entities():
        if relation in entity.facts:
            wrong = wrong_values(entity, relation, 3, rng)
            found += len(wrong)
            for i, value in enumerate(wrong):
                others = [entity.facts[relation], *wrong[:i]]
                assert not any(members(value) & members(other) for other in others), (entity.name, value)
    assert found > 100


def test_similar_entities_are_others_of_the_kind():
    for entity in list(entities())[::97]:
        near = similar_entities(entity.key)
        assert all(e.kind == entity.kind and e.key != entity.key for e in near) and len(near) <= 60
