"""From a finished search to a `Result`: texts, citations, the vote of a closed question, and the tree as data."""

import dataclasses
from collections.abc import Iterator

from selfrag_jax import reflection
from selfrag_jax.decoding import citations, options
from selfrag_jax.decoding.model import TokenizerLike
from selfrag_jax.decoding.result import (
    Candidate,
    Choice,
    CitedPassage,
    Counts,
    FinalPath,
    Group,
    OfferedPassage,
    Result,
    Segment,
    Sentence,
)
from selfrag_jax.decoding.scoring import Decision, GroupReading
from selfrag_jax.decoding.search import Path, Step
from selfrag_jax.decoding.state import Question, Request

_CUT_SHORT = {
    "budget": ("the answer was cut at decode.max_new_tokens",),
    "segment": ("the answer was cut at decode.max_segment_tokens",),
    "context": ("the answer was cut where the model's context is full",),
    "depth": ("the answer was cut after decode.max_depth segments",),
}


def result_of(request: Request, question: Question, tokenizer: TokenizerLike, timings: dict[str, float]) -> Result:
    """The answer to a question whose search has ended."""
    best, votes, vote_notes = _vote(request, question, tokenizer)
    sentences, cited, cited_text = cited_so_far(best.steps, question, tokenizer)
    assert question.first_decision is not None
    return Result(
        instruction=request.instruction,
        input=request.input,
        text=_text(best, tokenizer),
        cited_text=cited_text,
        sentences=tuple(sentences),
        citations=tuple(cited),
        segments=tuple(step.node for step in best.steps),
        passages=_offered(question),
        tree=tuple(_candidate(question, path, tokenizer) for path in question.candidates),
        paths=tuple(FinalPath(tuple(s.node for s in p.steps), p.score) for p in question.paths),
        first_decision=_choice(question.first_decision),
        counts=Counts(question.retrievals, question.prefilled, question.decoded),
        notes=(*question.notes, *_CUT_SHORT.get(best.ended, ()), *vote_notes),
        timings=timings,
        option=max(votes, key=votes.__getitem__) if votes else None,
        options=votes,
    )


def cited_so_far(
    steps: tuple[Step, ...], question: Question, tokenizer: TokenizerLike
) -> tuple[list[Sentence], list[CitedPassage], str]:
    """`citations.cite` over the first segments of an answer; what it finds stays when more of them follow."""
    return citations.cite(steps, [_said(step, tokenizer) for step in steps], _offered(question))


def segments(
    before: tuple[Step, ...], settled: tuple[Step, ...], question: Question, tokenizer: TokenizerLike
) -> Iterator[Segment]:
    """What `settled` adds to `before`, of which it is a continuation, segment by segment."""
    _, known, shown = cited_so_far(before, question, tokenizer)
    for count in range(len(before) + 1, len(settled) + 1):
        _, cited, longer = cited_so_far(settled[:count], question, tokenizer)
        yield Segment(settled[count - 1].node, longer[len(shown) :], tuple(cited[len(known) :]))
        known, shown = cited, longer


def best_path(request: Request, question: Question, tokenizer: TokenizerLike) -> Path:
    """The path that is the answer: the best of the beam, or of those that name the winning option."""
    return _vote(request, question, tokenizer)[0]


def _offered(question: Question) -> tuple[OfferedPassage, ...]:
    return tuple(OfferedPassage(p.id, p.title, p.text, p.score) for p in question.passages)


def _said(step: Step, tokenizer: TokenizerLike) -> str:
    return tokenizer.decode(step.trace.segment.tolist())


def _text(path: Path, tokenizer: TokenizerLike) -> str:
    return citations.join([_said(step, tokenizer) for step in path.steps])


def _vote(request: Request, question: Question, tokenizer: TokenizerLike) -> tuple[Path, dict[str, float], list[str]]:
    """The path that is the answer, and for a closed question the sums by which its option was chosen."""
    if not request.options:
        return question.paths[0], {}, []
    passed = [path for path in question.candidates if path.steps[-1].node not in question.filtered]
    ended = [path for path in passed or question.paths if path.ended]
    named = [options.option_of(_text(path, tokenizer), request.options) for path in ended]
    votes = options.tally(zip(named, [path.score for path in ended], strict=True), request.options)
    if not votes:
        return question.paths[0], {}, ["no candidate names one of the options"]
    chosen = max(votes, key=votes.__getitem__)
    best = max((path for path, name in zip(ended, named, strict=True) if name == chosen), key=lambda path: path.score)
    return best, votes, []


def _candidate(question: Question, path: Path, tokenizer: TokenizerLike) -> Candidate:
    step = path.steps[-1]
    tokens = tuple(step.trace.segment.tolist())
    return Candidate(
        node=step.node,
        parent=step.parent,
        depth=step.depth,
        decision=dataclasses.replace(_choice(step.decision), action=step.action),
        passage=step.passage,
        passage_cut=step.node in question.cut,
        text=tokenizer.decode(tokens),
        output=tokenizer.decode(tokens, skip_special=False),
        tokens=tokens,
        first_term=step.score.first_term,
        isrel=_group("isrel", step.score.isrel),
        issup=_group("issup", step.score.issup),
        isuse=_group("isuse", step.score.isuse),
        path_score=path.score,
        kept=step.node in question.kept,
        filtered=step.node in question.filtered,
        ended=path.ended,
    )


def _choice(decision: Decision) -> Choice:
    probabilities = dict(zip(reflection.RETRIEVE, decision.probabilities, strict=True))
    return Choice(decision.action, probabilities, decision.ratio, decision.mass, decision.greedy)


def _group(name: str, reading: GroupReading | None) -> Group | None:
    if reading is None:
        return None
    values = reflection.GROUPS[name]
    probabilities = dict(zip(values, reading.probabilities, strict=True))
    return Group(probabilities, values[reading.greedy], reading.score, reading.position < 0, reading.forced)
