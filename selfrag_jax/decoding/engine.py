"""Questions in, answers out: the engine that notebooks and the command line use."""

import dataclasses
import time
from collections.abc import Mapping, Sequence

import jax
import jax.numpy as jnp

from selfrag_jax import reflection
from selfrag_jax.config import Config, DecodeConfig
from selfrag_jax.decoding import citations, options, search
from selfrag_jax.decoding.batch import MIN_ROOM, Batch
from selfrag_jax.decoding.model import Model, TokenizerLike
from selfrag_jax.decoding.result import Candidate, Choice, Counts, FinalPath, Group, OfferedPassage, Result
from selfrag_jax.decoding.retriever import Passage, Retriever
from selfrag_jax.decoding.scoring import Decision, GroupReading
from selfrag_jax.decoding.search import Path
from selfrag_jax.decoding.state import Question, Row
from selfrag_jax.errors import UserError
from selfrag_jax.models.llama import Params
from selfrag_jax.models.llama_config import LlamaConfig

_CUT_SHORT = {
    "budget": ("the answer was cut at decode.max_new_tokens",),
    "context": ("the answer was cut where the model's context is full",),
    "depth": ("the answer was cut after decode.max_depth segments",),
}


@dataclasses.dataclass(frozen=True)
class Request:
    """One question. Given passages replace the retriever: the first K, in their order, at every retrieval.

    `options` make it a closed question: label → what it stands for ("" where the label says it all). Every candidate
    that ended an answer then votes with its score for the option it names, and the option with the largest sum wins.
    """

    instruction: str
    input: str = ""
    passages: Sequence[Passage] | None = None
    options: Mapping[str, str] | None = None


class Engine:
    """Self-RAG with one model, one retriever and one set of decoding settings."""

    def __init__(
        self,
        params: Params,
        model_config: LlamaConfig,
        tokenizer: TokenizerLike,
        retriever: Retriever | None,
        decode_config: DecodeConfig,
        top_k: int = 5,
    ):
        """
        Args:
            params: the stacked tree, of any leaf that `linear` knows.
            tokenizer: `selfrag_jax.tokenizer.Tokenizer`, or anything with its methods.
            retriever: may be None where every question brings its passages or retrieval is off.
            top_k: K, passages per retrieval.
        """
        params = jax.tree.map(jnp.asarray, params)
        dtype = jnp.bfloat16 if getattr(params["embed"], "dtype", None) == jnp.bfloat16 else jnp.float32
        self.model = Model(params, model_config, tokenizer, jnp.dtype(dtype))
        self.retriever, self.config, self.top_k = retriever, decode_config, top_k

    @classmethod
    def from_config(cls, config: Config, retriever: Retriever | None = None) -> "Engine":
        """Load what `config` names: model, adapter, tokenizer and, where none is given and there is one, the index.

        The index is opened at the first retrieval. Raises UserError as the loaders do.
        """
        from selfrag_jax.decoding.load import IndexRetriever, load_model

        if retriever is None and config.retrieval.index_dir:
            retriever = IndexRetriever(config.retrieval)
        params, model_config, tokenizer = load_model(config.model)
        return cls(params, model_config, tokenizer, retriever, config.decode, config.retrieval.top_k)

    def answer(
        self,
        instruction: str,
        input: str = "",
        passages: Sequence[Passage] | None = None,
        options: Mapping[str, str] | None = None,
    ) -> Result:
        """Answer one question. Raises UserError for an empty question or one that does not fit the context."""
        return self.answer_batch([Request(instruction, input, passages, options)])[0]

    def answer_batch(self, requests: Sequence[Request]) -> list[Result]:
        """Answer several questions in the same device calls; the results come in the order of the requests."""
        if not requests:
            return []
        began = time.perf_counter()
        batch = Batch(self.model, self.config, [self.encode(request) for request in requests], self.top_k)
        while batch.rows:
            batch.advance(self._find(batch, requests))
        timings = {**batch.timings, "total": time.perf_counter() - began}
        return [self._result(r, q, timings) for r, q in zip(requests, batch.questions, strict=True)]

    def encode(self, request: Request) -> list[int]:
        """A question's prompt as ids. Raises UserError for an empty question or one that leaves no room to answer."""
        if not request.instruction.strip() and not request.input.strip():
            raise UserError("the question is empty; write one")
        prompt = self.model.tokenizer.encode_prompt(request.instruction, request.input)
        limit = self.model.config.max_positions
        if len(prompt) + MIN_ROOM > limit:
            raise UserError(
                f"the question has {len(prompt)} tokens, but the model's context holds {limit}, of which an answer"
                f" needs {MIN_ROOM}; shorten it"
            )
        return prompt

    # ---- retrieval

    def _find(self, batch: Batch, requests: Sequence[Request]) -> list[list[Passage]]:
        """For each row the passages it is given: none unless it retrieves."""
        found: list[list[Passage]] = [[] for _ in batch.rows]
        asking: list[int] = []
        for number, row in enumerate(batch.rows):
            if row.decision.action == "retrieve":
                given = requests[row.question].passages
                if not self.config.requery and row.path.retrievals:
                    given = batch.questions[row.question].passages
                if given is None:
                    asking.append(number)
                else:
                    found[number] = list(given)[: self.top_k]
        if asking:
            if self.retriever is None:
                raise UserError("retrieval is wanted, but there is no index and no passages came with the question")
            began = time.perf_counter()
            queries = [self.query(requests[batch.rows[number].question], batch.rows[number]) for number in asking]
            for number, passages in zip(asking, self.retriever.retrieve(queries, self.top_k), strict=True):
                found[number] = list(passages)[: self.top_k]
            batch.timings["retrieve"] += time.perf_counter() - began
        return found

    def query(self, request: Request, row: Row) -> str:
        """What the retriever is asked: the question and, for later segments, the last segment's text (x, y_{t-1})."""
        parts = [request.instruction, request.input]
        if row.path.steps:
            parts.append(self._text(row.path.steps[-1].trace.segment))
        return " ".join(part.strip() for part in parts if part.strip())

    # ---- results

    def _text(self, tokens, skip_special: bool = True) -> str:
        return self.model.tokenizer.decode([int(t) for t in tokens], skip_special=skip_special)

    def _result(self, request: Request, question: Question, timings: dict[str, float]) -> Result:
        best, votes, vote_notes = self._vote(request, question)
        offered = tuple(OfferedPassage(p.id, p.title, p.text, p.score) for p in question.passages)
        texts = [self._text(step.trace.segment) for step in best.steps]
        sentences, cited, cited_text = citations.cite(best.steps, texts, offered)
        notes = [*question.notes, *_CUT_SHORT.get(best.ended, ()), *vote_notes]
        assert question.first_decision is not None
        return Result(
            instruction=request.instruction,
            input=request.input,
            text=citations.join(texts),
            cited_text=cited_text,
            sentences=tuple(sentences),
            citations=tuple(cited),
            segments=tuple(step.node for step in best.steps),
            passages=offered,
            tree=tuple(self._candidate(question, path) for path in question.candidates),
            paths=tuple(FinalPath(tuple(s.node for s in p.steps), p.score) for p in question.paths),
            first_decision=_choice(question.first_decision),
            counts=Counts(question.retrievals, question.prefilled, question.decoded),
            notes=tuple(notes),
            timings=timings,
            option=max(votes, key=votes.__getitem__) if votes else None,
            options=votes,
        )

    def _vote(self, request: Request, question: Question) -> tuple[Path, dict[str, float], list[str]]:
        """The path that is the answer, and for a closed question the sums by which its option was chosen."""
        if not request.options:
            return question.paths[0], {}, []
        ended = [path for path in question.candidates if path.ended]
        named = [options.option_of(self._answer_text(path), request.options) for path in ended]
        votes = options.tally(zip(named, [path.score for path in ended], strict=True), request.options)
        if not votes:
            return question.paths[0], {}, ["no candidate names one of the options"]
        chosen = max(votes, key=votes.__getitem__)
        best = max((path for path, name in zip(ended, named, strict=True) if name == chosen), key=lambda p: p.score)
        return best, votes, []

    def _answer_text(self, path: Path) -> str:
        return citations.join([self._text(step.trace.segment) for step in path.steps])

    def _candidate(self, question: Question, path: Path) -> Candidate:
        step = path.steps[-1]
        return Candidate(
            node=step.node,
            parent=step.parent,
            depth=step.depth,
            decision=dataclasses.replace(_choice(step.decision), action=step.action),
            passage=step.passage,
            passage_cut=step.node in question.cut,
            text=self._text(step.trace.segment),
            output=self._text(step.trace.segment, skip_special=False),
            tokens=tuple(int(token) for token in step.trace.segment),
            first_term=step.score.first_term,
            isrel=_group("isrel", step.score.isrel),
            issup=_group("issup", step.score.issup),
            isuse=_group("isuse", step.score.isuse),
            path_score=path.score,
            kept=step.node in question.kept,
            filtered=not search.passes(step, self.config),
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
