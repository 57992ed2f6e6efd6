"""The segment search of many questions at once: what lies on the device, and how it moves on.

Rows are the unended paths of all questions. Each round every row is followed by its candidates (one per passage, or one
without), in two device calls; the host scores them and keeps each question's best; the kept paths' tokens are read
onto their parents' prefixes.

With `history="passages"` everything stays inline and a row has one prefix. With `"segments"` it has two: `start`, with
the passage in force, from which segments that continue go on, and `base`, the prompt and the plain text of the
segments, from which a new retrieval goes on. Where a row is about to retrieve they are the same. With `"text"` there is
only the base.
"""

import dataclasses
import time
from collections import defaultdict
from collections.abc import Sequence

import jax
import numpy as np

from selfrag_jax.config import DecodeConfig
from selfrag_jax.decoding import buckets, cache, generate, scoring, search
from selfrag_jax.decoding.cache import Prefix
from selfrag_jax.decoding.model import Model
from selfrag_jax.decoding.retriever import Passage
from selfrag_jax.decoding.scoring import Action, Decision, Trace
from selfrag_jax.decoding.search import Path, Step
from selfrag_jax.decoding.state import Draft, Question, Row


class Batch:
    """A search in progress."""

    def __init__(self, model: Model, config: DecodeConfig, prompts: Sequence[list[int]], top_k: int = 1):
        """
        Args:
            prompts: the questions as ids.
            top_k: K, the passages that a retrieval usually brings; a call has room for so many candidates or for one.
        """
        self.model, self.config, self.top_k = model, config, top_k
        self.questions = [Question(list(prompt)) for prompt in prompts]
        self.rows: list[Row] = []
        self.timings: dict[str, float] = defaultdict(float)
        self._control = model.control(config.stop_at)
        self._read_prompts()
        if config.probe_tokens:
            self._probe()

    # ---- prefixes

    def _read_prompts(self) -> None:
        prompts = [question.prompt for question in self.questions]
        width = buckets.fit(max(map(len, prompts)), buckets.BLOCKS)
        size = buckets.fit(width, buckets.PREFIXES)
        rows = buckets.rows(len(prompts))
        nothing = cache.empty_prefix(self.model.config, rows, size, self.model.dtype)
        self.start, readout = self._extend(nothing, list(range(len(prompts))), prompts, size)
        self.base = self.start
        readout = jax.device_get(readout)
        for number, question in enumerate(self.questions):
            decision = self._decide(readout.reflection[number], readout.log_norm[number], readout.token[number], False)
            question.first_decision = decision
            question.prefilled += len(question.prompt)
            length = len(question.prompt)
            self.rows.append(Row(number, Path((), "", 0.0, decision), decision, length, length))

    def _probe(self) -> None:
        """What the authors' long form asks besides: whether [Retrieval] is in the first tokens of a free answer."""
        traces = self._generate([[Draft(())] for _ in self.rows], [self.config.probe_tokens] * len(self.rows))
        for number, (trace,) in enumerate(traces):
            row = self.rows[number]
            if row.decision.action == "retrieve" and self.model.ids.retrieval not in trace.tokens:
                decision = dataclasses.replace(row.decision, action="none")
                self.questions[row.question].first_decision = decision
                path = dataclasses.replace(row.path, decision=decision)
                self.rows[number] = dataclasses.replace(row, path=path, decision=decision)

    def _extend(
        self, prefix: Prefix, parents: list[int], tokens: list[list[int]], size: int
    ) -> tuple[Prefix, generate.Readout]:
        rows = buckets.rows(len(parents))
        width = buckets.fit(max(map(len, tokens)), buckets.BLOCKS)
        block = np.zeros((rows, width), np.int32)
        counts, gather = np.zeros(rows, np.int32), np.zeros(rows, np.int32)
        for row, (parent, ids) in enumerate(zip(parents, tokens, strict=True)):
            block[row, : len(ids)], counts[row], gather[row] = ids, len(ids), parent
        model = self.model
        return self._timed(
            "extend",
            lambda: generate.extend(
                model.params, prefix, gather, block, counts, self._control, config=model.config, size=size
            ),
        )

    def _decide(self, reflection_logits, log_norm, token, evidence: bool, retrievals: int = 0) -> Decision:
        ids, config = self.model.ids, self.config
        return scoring.decide(reflection_logits, float(log_norm), int(token), ids, config, evidence, retrievals)

    def _timed(self, name: str, call):
        began = time.perf_counter()
        out = jax.block_until_ready(call())
        self.timings[name] += time.perf_counter() - began
        return out

    # ---- a round

    def drafts(self, row: Row, passages: Sequence[Passage]) -> list[Draft]:
        """The candidates that follow a row: one per passage if it retrieves, else one."""
        ids, question = self.model.ids, self.questions[row.question]
        if row.decision.action == "retrieve" and passages:
            different: dict[tuple[str, str], Passage] = {}
            for passage in passages:
                different.setdefault((passage.title, passage.text), passage)
            if len(different) < len(passages):  # equal candidates would fill the beam with one answer
                question.note("a passage that was found twice is used once")
            return [self._passage_draft(row, question, passage) for passage in different.values()]
        opening: dict[Action, tuple[int, ...]] = {"continue": (ids.continue_,), "text": ()}
        action = row.decision.action
        return [Draft(opening.get(action, (ids.no_retrieval,)), row.path.evidence if action == "continue" else None)]

    def _passage_draft(self, row: Row, question: Question, passage: Passage) -> Draft:
        room = self.model.config.max_positions - row.start_length - 1
        room -= min(self._budget(row), room // 2)  # at least half of what is left is for the passage
        encode = self.model.tokenizer.encode_passage
        ids = encode(passage.title, passage.text)
        cut = len(ids) > room
        if cut:
            ids = encode(passage.title, passage.text, max_tokens=room)
            question.note(f"passage {passage.title!r} was cut to {room} tokens, the room left in the context")
        return Draft((self.model.ids.retrieval, *ids), question.passage_number(passage), cut)

    def _budget(self, row: Row) -> int:
        left = self.config.max_new_tokens - row.path.generated
        return min(left, self.config.max_segment_tokens or left)

    def advance(self, passages: Sequence[Sequence[Passage]]) -> None:
        """One segment for every row. passages: what was found for each row (nothing for rows that do not retrieve)."""
        drafts = []
        for row, found in zip(self.rows, passages, strict=True):
            if row.decision.action == "retrieve":
                self.questions[row.question].retrievals += self.config.requery or row.path.retrievals == 0
                if not found:
                    self.questions[row.question].note("the retriever found no passage: answered without one")
            drafts.append(self.drafts(row, found))
        traces = self._generate(drafts, [self._budget(row) for row in self.rows])
        parents = self._keep(drafts, traces)
        self._move_on(parents)

    def _generate(self, drafts: list[list[Draft]], budgets: list[int]) -> list[list[Trace]]:
        """The segments of all rows' candidates, of up to so many tokens for each row.

        Rows that follow K passages and rows with one candidate go into device calls of their own: together every row
        would be padded to K candidates with passages.
        """
        alone = [number for number, candidates in enumerate(drafts) if len(candidates) == 1]
        traces: dict[int, list[Trace]] = {}
        for numbers in (alone, [number for number in range(len(drafts)) if len(drafts[number]) > 1]):
            if numbers:
                traces |= zip(numbers, self._follow_rows(numbers, drafts, budgets), strict=True)
        return [traces[number] for number in range(len(drafts))]

    def _follow_rows(self, numbers: list[int], drafts: list[list[Draft]], budgets: list[int]) -> list[list[Trace]]:
        """The segments of some rows' candidates, in two device calls."""
        model, rows = self.model, buckets.rows(len(numbers))
        gather = numbers + [numbers[0]] * (rows - len(numbers))
        prefix = self.start if len(numbers) == len(drafts) else generate.take(self.start, np.array(gather))
        most = max(len(drafts[number]) for number in numbers)
        most = 1 if most == 1 else max(most, self.top_k)  # fewer passages than K are padded, not compiled for
        bucket = buckets.fit(max(1, *(len(d.suffix) for n in numbers for d in drafts[n])), buckets.SUFFIXES)
        tokens = np.zeros((rows, most, bucket), np.int32)
        lengths, valid = np.zeros((rows, most), np.int32), np.zeros((rows, most), bool)
        budget = np.ones((rows, most), np.int32)
        beyond = int(self.config.force_critique)  # one more token, of which only the position is wanted
        for place, number in enumerate(numbers):
            for candidate, draft in enumerate(drafts[number]):
                tokens[place, candidate, : len(draft.suffix)] = draft.suffix
                lengths[place, candidate], valid[place, candidate] = len(draft.suffix), True
                left = model.config.max_positions - self.rows[number].start_length - len(draft.suffix)
                budget[place, candidate] = max(1, min(budgets[number] + beyond, left))
        longest = min(self.config.max_new_tokens, self.config.max_segment_tokens or self.config.max_new_tokens)
        max_new = buckets.fit(max(longest, *budgets) + beyond, buckets.NEW_TOKENS)
        k, v = cache.empty_suffix(model.config, rows, most, bucket + max_new, model.dtype)
        last, k, v = self._timed(
            "prefill", lambda: generate.prefill(model.params, prefix, tokens, lengths, k, v, config=model.config)
        )
        readout, counts, _, _ = self._timed(
            "decode",
            lambda: generate.decode(
                model.params, prefix, last, lengths, valid, budget, self._control, k, v,
                config=model.config, bucket=bucket, max_new=max_new,
            ),
        )  # fmt: skip
        out, counts = jax.device_get((readout, counts))
        return [
            [
                self._trace(out, (place, n), int(counts[place, n]), number, budgets[number])
                for n in range(len(drafts[number]))
            ]
            for place, number in enumerate(numbers)
        ]

    def _trace(self, out: generate.Readout, at: tuple[int, int], count: int, row: int, budget: int) -> Trace:
        """A candidate's share of the readout; a token beyond the budget was made for its position only."""
        kept = (*at, slice(0, min(count, budget)))
        tokens, cut = out.token[kept], None
        if self.config.stop_at == "eos" and self.rows[row].decision.action == "retrieve":
            cut = scoring.first_of(tokens, np.array([self.model.ids.retrieval]))
        closed = cut is not None or int(tokens[-1]) in self._control.stop_4
        after = out.reflection[(*at, budget)] if count > budget else None
        return Trace(tokens, out.logprob[kept], out.reflection[kept], out.log_norm[kept], closed, cut=cut, after=after)

    def _keep(self, drafts: list[list[Draft]], traces: list[list[Trace]]) -> list[tuple[int, Path]]:
        """Score the candidates and keep each question's best; the kept paths that go on, with their parents' rows."""
        pools: dict[int, list[Path]] = defaultdict(list)
        parent_of: dict[tuple[int, int], int] = {}
        for number, row in enumerate(self.rows):
            question = self.questions[row.question]
            for draft, trace in zip(drafts[number], traces[number], strict=True):
                path = self._follow(row, draft, trace, len(question.candidates))
                parent_of[row.question, path.steps[-1].node] = number
                question.candidates.append(path)
                question.prefilled += len(draft.suffix)
                question.decoded += len(trace.tokens)
                pools[row.question].append(path)
                if draft.cut:
                    question.cut.add(path.steps[-1].node)
                if not search.passes(path.steps[-1], self.config):
                    question.filtered.add(path.steps[-1].node)
        going_on: list[tuple[int, Path]] = []
        for number, new in sorted(pools.items()):
            question = self.questions[number]
            question.paths = search.keep([path for path in question.paths if path.ended], new, self.config)
            question.kept |= {path.steps[-1].node for path in question.paths}
            if not search.passes(question.paths[0].steps[-1], self.config):
                question.note("the filters would have dropped every candidate; the best of these was kept")
            going_on += [(parent_of[number, p.steps[-1].node], p) for p in question.paths if not p.ended]
        return going_on

    def _follow(self, row: Row, draft: Draft, trace: Trace, node: int) -> Path:
        """The row's path with one more segment."""
        path, config = row.path, self.config
        action = row.decision.action if draft.passage is not None or row.decision.action == "text" else "none"
        ended, decision = self._what_follows(row, draft, trace)
        force = ["issup"] if config.force_critique else []
        if force and ended and all(step.score.isuse is None for step in path.steps):
            force.append("isuse")
        score = scoring.score_segment(trace, self.model.ids, config, action, path.isrel, force)
        parent = path.steps[-1].node if path.steps else None
        step = Step(node, parent, len(path.steps), action, draft.passage, row.decision, draft.suffix, trace, score)
        return search.follow(path, step, ended, decision, config)

    def _what_follows(self, row: Row, draft: Draft, trace: Trace) -> tuple[str, Decision | None]:
        """Why the path ends with this segment, or "" and the decision at the boundary after it."""
        path, config, last = row.path, self.config, int(trace.tokens[trace.last])
        if last == self.model.tokenizer.eos_id:
            return "eos", None
        spent = path.generated + len(trace.tokens) >= config.max_new_tokens
        if not trace.closed:
            whole = len(trace.tokens) >= self._budget(row)
            return "budget" if spent else "segment" if whole else "context", None
        if len(path.steps) + 1 >= config.max_depth:
            return "depth", None
        if spent:
            return "budget", None
        # A retrieval that found nothing takes the evidence before it out of force; with no passage in the prompt there
        # is none to continue.
        evidence = draft.passage is not None or (row.decision.action != "retrieve" and path.evidence is not None)
        evidence = evidence and config.history != "text"
        retrievals = path.retrievals + (row.decision.action == "retrieve")
        decision = self._decide(trace.reflection[trace.last], trace.log_norms[trace.last], last, evidence, retrievals)
        capped = 0 < config.max_retrievals <= retrievals
        if config.stop_at == "eos" and not capped:  # the token alone decides: it is [Retrieval]
            decision = dataclasses.replace(decision, action="retrieve")
        if self._room_after(row, draft, trace, decision) < MIN_ROOM:
            return "context", None
        return "", decision

    def _room_after(self, row: Row, draft: Draft, trace: Trace, decision: Decision) -> int:
        """Positions left for the next segment, which starts from the base where it retrieves and drops old passages."""
        begins_at = row.start_length + len(draft.suffix)
        if self.config.history == "text" or (self.config.history == "segments" and decision.action == "retrieve"):
            begins_at = row.base_length
        return self.model.config.max_positions - begins_at - len(trace.segment)

    # ---- onto the prefixes

    def _move_on(self, going_on: list[tuple[int, Path]]) -> None:
        """Read the kept segments onto their parents' prefixes, and make the rows of the next round."""
        if not going_on:
            self.rows = []
            return
        parents = [parent for parent, _ in going_on]
        inline, plain, reflection = [], [], set(self.model.ids.array.tolist())
        for _, path in going_on:
            step = path.steps[-1]
            said = [int(token) for token in step.trace.segment[:-1]]  # the closing Retrieve token is decided anew
            inline.append([*step.suffix, *said])
            plain.append([token for token in said if token not in reflection])
        old = [self.rows[parent] for parent in parents]
        retrieves = [path.decision.action == "retrieve" for _, path in going_on if path.decision is not None]
        if self.config.history == "passages":
            starts = bases = [row.start_length + len(ids) for row, ids in zip(old, inline, strict=True)]
            self.start = self.base = self._read(
                self.start, parents, inline, [row.start_length for row in old], going_on
            )
        elif self.config.history == "text":
            starts = bases = [row.base_length + len(ids) for row, ids in zip(old, plain, strict=True)]
            self.start = self.base = self._read(self.base, parents, plain, [row.base_length for row in old], going_on)
        else:
            # A row about to retrieve goes on from its base, so its passage need not be read again.
            inline = [[] if new else ids for new, ids in zip(retrieves, inline, strict=True)]
            bases = [row.base_length + len(ids) for row, ids in zip(old, plain, strict=True)]
            starts = [
                base if new else row.start_length + len(ids)
                for base, new, row, ids in zip(bases, retrieves, old, inline, strict=True)
            ]
            before = [*(row.base_length for row in old), *(row.start_length for row in old)]
            base, start = self.base, self.start
            self.base = self._read(base, parents, plain, before, going_on, also=inline)
            self.start = self.base
            if not all(retrieves):
                with_passage = self._read(start, parents, inline, before, going_on, also=plain)
                mask = np.zeros(self.base.rows, bool)
                mask[: len(retrieves)] = retrieves
                self.start = generate.choose(mask, self.base, with_passage)
        self.rows = [
            Row(old_row.question, path, path.decision, start, base)
            for old_row, (_, path), start, base in zip(old, going_on, starts, bases, strict=True)
            if path.decision is not None
        ]

    def _read(self, prefix, parents, tokens, before, going_on, also=None) -> Prefix:
        """`_extend`, in a cache with room for what is read here and for what the sibling prefix reads (`also`)."""
        widths = [buckets.fit(max(map(len, block)), buckets.BLOCKS) for block in (tokens, also or tokens)]
        size = max(prefix.size, self.start.size, buckets.fit(max(before) + max(widths), buckets.PREFIXES))
        for (parent, _), ids in zip(going_on, tokens, strict=True):
            self.questions[self.rows[parent].question].prefilled += len(ids)
        return self._extend(prefix, parents, tokens, size)[0]


MIN_ROOM = 16  # positions that must be left for another segment
