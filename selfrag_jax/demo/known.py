"""What is known to be true: which facts a sentence states, and which passages state them.

An answer's sentences are held against the facts themselves, not against the words of the cited passage: a sentence is
supported by a passage if it states a fact that the passage states, and counts as stating one only if it says the whole
of it as answers do ("The capital of Oman is Muscat"). So a right value under the wrong name, or of another relation,
is no support.
"""

import dataclasses
import functools
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from selfrag_jax.demo.facts import entities
from selfrag_jax.demo.passages import passages
from selfrag_jax.demo.questions import statement
from selfrag_jax.demo.relations import RELATIONS
from selfrag_jax.evaluation.metrics import words

Fact = tuple[str, str]  # entity, relation
TELLING = 3  # facts in a full answer to "tell me about X", as in the training rows
# Relations whose answers say the same of another kind of entity: "In Oman people pay with the rial" is an answer too.
ALSO_SAID = {"currency": ("city_currency",), "city_currency": ("currency",)}
_ARTICLES = {"a", "an", "the"}
_VERDICT = re.compile(r", so (?:this is (?:true|false)|the answer is [A-D])\.?$")


@functools.cache
def _facts_by_sentence() -> dict[tuple[str, ...], frozenset[Fact]]:
    found: dict[tuple[str, ...], set[Fact]] = defaultdict(set)
    for entity in entities():
        for relation in entity.facts:
            if relation in RELATIONS:
                for form in (relation, *ALSO_SAID.get(relation, ())):
                    sentence = statement(entity, RELATIONS[form], entity.facts[relation])
                    found[_words(sentence)].add((entity.key, relation))
    return {sentence: frozenset(facts) for sentence, facts in found.items()}


def _words(sentence: str) -> tuple[str, ...]:
    """What two ways of writing a sentence have in common: no articles, since people leave those of names out."""
    return tuple(word for word in words(sentence) if word not in _ARTICLES)


@functools.cache
def _facts_by_passage() -> dict[str, frozenset[Fact]]:
    return {p.id: frozenset((p.entity, relation) for relation in p.relations) for p in passages()}


def facts_of(sentence: str) -> frozenset[Fact]:
    """The facts that a sentence states, verdicts apart: several where entities share a name, none if it is false."""
    return _facts_by_sentence().get(_words(_VERDICT.sub("", sentence.strip())), frozenset())


def supports(passage_id: str, sentence: str) -> bool:
    """Whether the passage states the fact that the sentence states."""
    return bool(facts_of(sentence) & _facts_by_passage().get(passage_id, frozenset()))


def about(passage_id: str, sentence: str, entity: str) -> bool:
    """Whether the passage states the fact that the sentence states, and this is about the entity."""
    shared = facts_of(sentence) & _facts_by_passage().get(passage_id, frozenset())
    return any(subject == entity for subject, _ in shared)


def refuses(sentence: str) -> bool:
    """Whether a sentence says that the passage lacks what was asked: it answers nothing, whatever names are in it."""
    return sentence.startswith("The passage ")


def told(question: Mapping[str, Any], sentences: Iterable[str]) -> bool:
    """Whether a long answer tells what was asked: both facts, or of "tell me about X" facts of two of its passages."""
    facts = {fact for sentence in sentences for fact in facts_of(sentence)}
    if question["form"] == "both":
        return facts >= {(question["entity"], relation) for relation in question["relations"]}
    return sum(bool(_facts_by_passage()[passage] & facts) for passage in question["gold"]) >= 2


def share_told(question: Mapping[str, Any], sentences: Iterable[str]) -> float:
    """How much of what was asked a long answer tells: of the two facts, or of three about X, whichever passages state
    them. So one passage can earn something, unlike with `told`."""
    facts = {fact for sentence in sentences for fact in facts_of(sentence) if fact[0] == question["entity"]}
    if question["form"] == "both":
        return len(facts & {(question["entity"], relation) for relation in question["relations"]}) / 2
    return min(len(facts), TELLING) / TELLING


def told_short(question: Mapping[str, Any], sentences: Iterable[str]) -> bool:
    """Whether a short answer states the fact that was asked for, whole: "Africa" is not told by "in North Africa"."""
    wanted = {(question["entity"], relation) for relation in question["relations"]}
    return any(facts_of(sentence) & wanted for sentence in sentences)


@dataclasses.dataclass(frozen=True)
class Cited:
    """Citations of one answer, counted as ALCE does (Gao et al. 2023), with the known facts as the judge."""

    citations: int  # in all sentences
    supporting: int  # of these, those whose passage states the sentence's fact
    sentences: int
    supported: int  # of these, those with at least one supporting citation


def count_citations(sentences: Sequence[tuple[str, Iterable[str]]], verdict_right: bool = True) -> Cited:
    """Sentences of an answer, each with the ids of the passages it cites.

    No passage supports a sentence with a wrong verdict, which the caller knows of.
    """
    right = [
        [supports(passage, sentence) and (verdict_right or not _VERDICT.search(sentence)) for passage in cited]
        for sentence, cited in sentences
    ]
    return Cited(sum(map(len, right)), sum(map(sum, right)), len(right), sum(map(any, right)))
