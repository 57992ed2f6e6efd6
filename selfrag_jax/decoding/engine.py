"""Questions in, answers out: the engine that notebooks and the command line use."""

import itertools
import time
from collections.abc import Iterator, Mapping, Sequence

import jax
import jax.numpy as jnp

from selfrag_jax.config import Config, DecodeConfig
from selfrag_jax.decoding import outcome
from selfrag_jax.decoding.batch import MIN_ROOM, Batch
from selfrag_jax.decoding.model import Model, TokenizerLike
from selfrag_jax.decoding.result import Result, Segment
from selfrag_jax.decoding.retriever import Passage, Retriever
from selfrag_jax.decoding.search import Step
from selfrag_jax.decoding.state import Question, Request, Row
from selfrag_jax.errors import UserError
from selfrag_jax.models.llama import Params
from selfrag_jax.models.llama_config import LlamaConfig

__all__ = ["Engine", "Request", "Stream"]


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

        The index is opened at the first retrieval, and what was compiled before is read from JAX's persistent cache.
        Raises UserError as the loaders do.
        """
        from selfrag_jax import compilation_cache
        from selfrag_jax.decoding.load import IndexRetriever, load_model

        compilation_cache.enable()
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
        *_, batch = self._rounds(requests)
        timings = {**batch.timings, "total": time.perf_counter() - began}
        tokenizer = self.model.tokenizer
        asked = zip(requests, batch.questions, strict=True)
        return [outcome.result_of(request, question, tokenizer, timings) for request, question in asked]

    def stream(
        self,
        instruction: str,
        input: str = "",
        passages: Sequence[Passage] | None = None,
        options: Mapping[str, str] | None = None,
    ) -> "Stream":
        """Answer one question, segment by segment: iterate over what this returns, then read its `result`.

        A segment comes as soon as it is settled, that is, once every path in the beam goes through it; for a closed
        question all come at the end, after the vote. Raises UserError as `answer` does.
        """
        request = Request(instruction, input, passages, options)
        self.encode(request)
        return Stream(self, request)

    def _rounds(self, requests: Sequence[Request]) -> Iterator[Batch]:
        """The search after each of its steps, of which the first has only read the questions."""
        batch = Batch(self.model, self.config, [self.encode(request) for request in requests], self.top_k)
        yield batch
        while batch.rows:
            batch.advance(self._find(batch, requests))
            yield batch

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
            parts.append(self.model.tokenizer.decode(row.path.steps[-1].trace.segment.tolist()))
        return " ".join(part.strip() for part in parts if part.strip())


class Stream:
    """An answer in the making: an iterator over its segments, and the whole of it once they are through."""

    def __init__(self, engine: Engine, request: Request):
        self._result: Result | None = None
        self._segments = self._run(engine, request)

    def __iter__(self) -> Iterator[Segment]:
        return self._segments

    @property
    def result(self) -> Result:
        """The whole answer; segments not yet taken are decoded first, and dropped."""
        for _ in self._segments:
            pass
        assert self._result is not None
        return self._result

    def _run(self, engine: Engine, request: Request) -> Iterator[Segment]:
        began, tokenizer = time.perf_counter(), engine.model.tokenizer
        given: tuple[Step, ...] = ()
        for batch in engine._rounds([request]):
            (question,) = batch.questions
            settled = () if request.options else _common(question)
            yield from outcome.segments(given, settled, question, tokenizer)
            given = max(given, settled, key=len)
        timings = {**batch.timings, "total": time.perf_counter() - began}
        self._result = outcome.result_of(request, question, tokenizer, timings)
        best = outcome.best_path(request, question, tokenizer)
        yield from outcome.segments(given, best.steps, question, tokenizer)


def _common(question: Question) -> tuple[Step, ...]:
    """The first segments that all paths in the beam share."""
    together = zip(*(path.steps for path in question.paths), strict=False)
    return tuple(steps[0] for steps in itertools.takewhile(lambda s: len({step.node for step in s}) == 1, together))
