"""The whole segment search once more, slowly: NumPy in float64, one candidate at a time, every step from the start.

Written from the equations (SELFRAG.md §2) and on its own: it shares no code with the package, and its ids, formulas and
network are typed anew.
"""

import dataclasses
import itertools
import math

import numpy as np


class Ids:
    """Token ids: the end of sequence, and the sixteen added tokens in published order from `first`."""

    def __init__(self, eos: int, first: int, used: int):
        self.eos, self.first, self.used = eos, first, used  # used: vocabulary rows, without padding
        self.no_retrieval, self.retrieval, self.continue_ = self.retrieve = [first, first + 1, first + 2]
        self.irrelevant, self.relevant = first + 3, first + 4
        self.utility = [first + 7 + i for i in range(5)]
        self.support = [first + 12, first + 13, first + 14]  # fully, partially, no
        self.all_13 = {*self.retrieve, self.irrelevant, self.relevant, *self.utility, *self.support}


TINY = Ids(eos=40, first=41, used=57)  # 40 words, the end of sequence, and the sixteen


def llama_last_logits(params, shape, ids: list[int], used: int) -> np.ndarray:
    """Scores after the last of `ids`. shape: (heads, kv heads, head size, eps, theta, window)."""
    heads, kv_heads, size, eps, theta, window = shape
    blocks, x = params["blocks"], params["embed"][ids]
    n = len(ids)
    norm = lambda h, w: h / np.sqrt((h * h).mean(-1, keepdims=True) + eps) * w  # noqa: E731
    angle = np.arange(n)[:, None] * theta ** (-np.arange(size // 2) * 2 / size)[None]
    cos, sin = np.cos(angle)[:, None], np.sin(angle)[:, None]

    def turn(h):
        a, b = h[..., : size // 2], h[..., size // 2 :]
        return np.concatenate([a * cos - b * sin, b * cos + a * sin], -1)

    ahead = np.arange(n)[:, None] - np.arange(n)[None]
    seen = (ahead >= 0) & (ahead < window) if window else ahead >= 0
    for layer in range(len(blocks["q"])):
        w = {name: leaf[layer] for name, leaf in blocks.items()}
        h = norm(x, w["attn_norm"])
        q = turn((h @ w["q"]).reshape(n, heads, size))
        k = turn((h @ w["k"]).reshape(n, kv_heads, size)).repeat(heads // kv_heads, 1)
        v = (h @ w["v"]).reshape(n, kv_heads, size).repeat(heads // kv_heads, 1)
        scores = np.where(seen, np.einsum("thc,shc->hts", q, k) / math.sqrt(size), -np.inf)
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        x = x + np.einsum("hts,shc->thc", weights / weights.sum(-1, keepdims=True), v).reshape(n, -1) @ w["o"]
        h = norm(x, w["mlp_norm"])
        gate = h @ w["gate"]
        x = x + (gate / (1 + np.exp(-gate)) * (h @ w["up"])) @ w["down"]
    return (params.get("head", params["embed"]) @ norm(x[-1], params["final_norm"]))[:used]


@dataclasses.dataclass
class Node:
    """One candidate and all that its children need to know."""

    parent: int | None
    action: str
    asked: bool  # whether there was a retrieval before it; if it found nothing the action is "none"
    tokens: list[int]
    terms: dict  # first, isrel, issup, isuse (None where absent)
    score: float
    ended: bool
    texts: list[list[int]]  # of every segment on the path, without reflection tokens
    inline: list[int]  # everything since the prompt, or since the last retrieval with history="segments"
    past_text: list[int]  # with "segments": what stands between the prompt and `inline`
    path_terms: list[dict]
    used: int
    in_force: int | None  # the passage of the last retrieval on the path
    cites: int | None  # the passage that the segment rests on, where its greedy IsSup is fully or partially
    last_logits: np.ndarray
    depth: int


@dataclasses.dataclass
class Outcome:
    """All candidates in the order they were grown, and which of them won."""

    nodes: list[Node]
    best: int
    kept: set[int]
    margin: float  # the smallest lead that any greedy token or kept path had


def softmax(x):
    """Over the only axis."""
    e = np.exp(x - x.max())
    return e / e.sum()


def lead(x):
    """How far the largest is ahead of the next."""
    top = np.sort(x)[-2:]
    return top[1] - top[0]


def look_up(passages: list[list[int]], question: list[int], said: list[int], k: int) -> list[int]:
    """The test's retrieval: the numbers of k passages, which depend on the words of the question and what was said; now
    and then of fewer, or of none."""
    total = sum(word for word in [*question, *said] if word < TINY.eos)
    found = {5: 0, 6: k - 1}.get(total % 7, k)
    return [(total + i) % len(passages) for i in range(found)]


class Search:
    """`run()` searches as the settings `s` say, whose names are those of DecodeConfig.

    question: the word ids that retrieval sees; prompt: the ids that the model reads; passages: ids with their fences,
    of which every retrieval finds `k`.
    """

    def __init__(self, params, shape, question, prompt, passages, k, s, ids=TINY, look_up=look_up):
        self.ids, self.look_up = ids, look_up
        self.params, self.shape, self.question, self.prompt = params, shape, question, prompt
        self.passages, self.k, self.s = passages, k, s
        self.nodes: list[Node] = []
        self.margins = [np.inf]
        self.starved = False  # whether the filters once dropped every candidate

    def logits(self, ids):
        return llama_last_logits(self.params, self.shape, ids, self.ids.used)

    def greedy(self, context: list[int], budget: int):
        tokens, rows = [], []
        while True:
            logits = self.logits(context + tokens)
            self.margins.append(lead(logits))
            tokens.append(int(logits.argmax()))
            rows.append(logits)
            stops = [self.ids.eos] if self.s.stop_at == "eos" else [*self.ids.retrieve, self.ids.eos]
            if tokens[-1] in stops or len(tokens) == budget:
                return tokens, rows

    def decide(self, logits, evidence, retrievals):
        action = self.wish(logits, evidence)
        if action == "retrieve" and self.s.max_retrievals and retrievals >= self.s.max_retrievals:
            return "continue" if evidence else "none"
        return action

    def wish(self, logits, evidence):
        s = self.s
        if s.retrieve in ("always", "never"):
            return "retrieve" if s.retrieve == "always" else "none"
        p3 = softmax(logits[self.ids.retrieve])
        mass = softmax(logits)[self.ids.retrieve].sum()
        in_group = int(logits.argmax()) in self.ids.retrieve
        self.margins += [lead(logits), lead(p3), abs(mass - s.min_group_mass) if s.min_group_mass else np.inf]
        if not in_group and (s.retrieve == "token" or mass < s.min_group_mass):
            return "text"
        if p3.argmax() == 2 and evidence:
            return "continue"
        if s.retrieve == "token":
            return "retrieve" if p3.argmax() == 1 else "none"
        ratio = p3[1] / (p3[0] + p3[1]) if s.threshold_over == "two" else p3[1]
        self.margins.append(abs(ratio - s.threshold))
        return "retrieve" if ratio > s.threshold else "none"

    def grow(self, parent: int | None, action: str, passage: int | None, asked: bool = False) -> int:
        s, mother = self.s, self.nodes[parent] if parent is not None else None
        inline = list(mother.inline) if mother else []
        past = list(mother.past_text) if mother else []
        if mother and (s.history == "text" or (asked and s.history == "segments")):
            inline, past = [], [t for text in mother.texts for t in text]
        put_in = {"continue": [self.ids.continue_], "none": [self.ids.no_retrieval], "text": []}.get(action)
        if put_in is None:
            put_in = [self.ids.retrieval, *self.passages[passage]]
        used = mother.used if mother else 0
        context, left = self.prompt + past + inline + put_in, s.max_new_tokens - used
        written, rows = self.greedy(context, min(left, s.max_segment_tokens or left))
        tokens, goes_on = written, written[-1] in self.ids.retrieve
        if s.stop_at == "eos":
            goes_on = asked and self.ids.retrieval in written
            tokens = written[: written.index(self.ids.retrieval) + 1] if goes_on else written
        before = mother.path_terms if mother else []
        inherited = next((t["isrel"] for t in reversed(before) if t["isrel"] is not None), None)
        depth = mother.depth + 1 if mother else 1
        used += len(written)
        ended = not goes_on or depth >= s.max_depth or used >= s.max_new_tokens
        terms = self.measure(written, rows, action, inherited)
        if s.force_critique:
            closed = goes_on or tokens[-1] == self.ids.eos
            closing = rows[len(tokens) - 1] if closed else self.logits(context + tokens)
            has_use = any(t["isuse"] is not None for t in [*before, terms])
            self.read_what_is_missing(terms, written, rows, closing, action, ended and not has_use)
        self.margins.append(terms["lead"])
        if terms["isrel"] is not None:
            self.margins.append(abs(terms["isrel"] - 0.5))
        path_terms = [*before, terms]
        said = tokens[:-1] if goes_on else tokens
        plain = [t for t in said if t != self.ids.eos and t not in self.ids.all_13]
        in_force = passage if asked else (mother.in_force if mother else None)
        has_text = any(t < self.ids.first and t != self.ids.eos for t in said)
        cites = in_force if terms["support"] in ("full", "partial") and has_text else None
        node = Node(
            parent, action, asked, tokens, terms, path_score(s, path_terms, ended), ended,
            [*(mother.texts if mother else []), plain], inline + put_in + said, past, path_terms, used,
            in_force, cites, rows[len(tokens) - 1], depth,
        )  # fmt: skip
        self.nodes.append(node)
        return len(self.nodes) - 1

    def children(self, parent: int | None, logits) -> list[int]:
        mother = self.nodes[parent] if parent is not None else None
        looked, up = 0, mother
        while up is not None:
            looked, up = looked + up.asked, None if up.parent is None else self.nodes[up.parent]
        in_sight = mother is not None and mother.in_force is not None and self.s.history != "text"
        action = self.decide(logits, in_sight, looked)
        if mother and self.s.stop_at == "eos" and not (self.s.max_retrievals and looked >= self.s.max_retrievals):
            action = "retrieve"
        if not mother and self.s.probe_tokens and action == "retrieve":
            action = "retrieve" if self.ids.retrieval in self.greedy(self.prompt, self.s.probe_tokens)[0] else "none"
        if action != "retrieve":
            return [self.grow(parent, action, None)]
        said = mother.tokens if mother and self.s.requery else []
        found = self.look_up(self.passages, self.question, said, self.k)
        if not found:
            return [self.grow(parent, "none", None, asked=True)]
        return [self.grow(parent, action, n, asked=True) for n in found]

    def let_through(self, n: int) -> bool:
        node = self.nodes[n]
        irrelevant = node.terms["isrel"] is not None and node.terms["isrel"] < 0.5
        return not (self.s.filter_isrel and irrelevant) and not (self.s.filter_issup and node.terms["support"] == "no")

    def filtered(self, beam: list[int], old: set[int]) -> list[int]:
        left = [n for n in beam if n in old or self.let_through(n)]
        return left or [max(beam, key=lambda n: self.nodes[n].score)]

    def run(self) -> Outcome:
        nodes, kept, width = self.nodes, set(), self.s.beam
        beam = self.children(None, self.logits(self.prompt))
        while True:
            ranked = sorted(self.filtered(beam, kept), key=lambda n: -nodes[n].score)
            if len(ranked) > width:
                self.margins.append(nodes[ranked[width - 1]].score - nodes[ranked[width]].score)
            self.margins += [nodes[a].score - nodes[b].score for a, b in itertools.pairwise(ranked[:width])]
            beam = ranked[:width]
            kept |= set(beam)
            self.starved |= not any(self.let_through(n) for n in beam)
            if all(nodes[n].ended for n in beam):
                return Outcome(nodes, beam[0], kept, min(self.margins))
            beam = [n for n in beam if nodes[n].ended] + [
                child for n in beam if not nodes[n].ended for child in self.children(n, nodes[n].last_logits)
            ]

    def measure(self, tokens, rows, action, inherited):
        """The terms of a segment, and what its greedy IsSup says."""
        logp = [r[t] - (np.log(np.exp(r - r.max()).sum()) + r.max()) for t, r in zip(tokens, rows, strict=True)]
        if not self.s.count_reflection_tokens:
            logp = [x for t, x in zip(tokens, logp, strict=True) if t not in self.ids.all_13]
        total = sum(logp)
        first = {"none": 0.0, "log_prob": total, "prob": math.exp(total)}.get(
            self.s.first_term, math.exp(total / len(logp)) if logp else 1.0
        )
        terms = {"first": first, "isrel": None, "issup": None, "isuse": None, "support": None, "lead": np.inf}
        if action == "retrieve":
            terms["isrel"] = softmax(rows[0][[self.ids.irrelevant, self.ids.relevant]])[1]
        elif action == "continue":
            terms["isrel"] = inherited
        for t, r in zip(tokens, rows, strict=True):
            if t in self.ids.support and terms["issup"] is None and self.may_be_supported(terms, action):
                self.read_support(terms, r)
            if t in self.ids.utility and terms["isuse"] is None:
                self.read_use(terms, r)
        return terms

    def may_be_supported(self, terms, action):
        """Only what rests on a passage that is not judged irrelevant."""
        return action in ("retrieve", "continue") and (terms["isrel"] is None or terms["isrel"] >= 0.5)

    def read_support(self, terms, logits):
        p = softmax(logits[self.ids.support])
        terms["issup"] = p[0] + (0.5 * p[1] if self.s.critique == "graded" else 0)
        terms["support"], terms["lead"] = ("full", "partial", "no")[int(p.argmax())], lead(p)

    def read_use(self, terms, logits):
        p = softmax(logits[self.ids.utility])
        terms["isuse"] = p @ [-1, -0.5, 0, 0.5, 1] if self.s.critique == "graded" else p[4]

    def read_what_is_missing(self, terms, tokens, rows, closing, action, wants_use):
        """force_critique: IsSup where IsUse or the closing token stands, IsUse where the latter does or would."""
        if terms["issup"] is None and self.may_be_supported(terms, action):
            before_use = [r for t, r in zip(tokens, rows, strict=True) if t in self.ids.utility]
            self.read_support(terms, before_use[0] if before_use else closing)
        if wants_use and terms["isuse"] is None:
            self.read_use(terms, closing)


def path_score(s, terms, ended):
    """First terms and critique of a path, as SELFRAG.md §2 settles it."""
    uses = [t["isuse"] for t in terms if t["isuse"] is not None]
    pool = {"isrel": s.w_isrel, "issup": s.w_issup, "isuse": s.w_isuse}
    if s.absent == "zero":
        f = [t["first"] + sum(pool[g] * (t[g] or 0.0) for g in pool) for t in terms]
        return {"product": math.prod(f), "sum": sum(f), "mean": sum(f) / len(f)}[s.combine]
    if s.combine == "product":
        out = 1.0
        last_use = max((i for i, t in enumerate(terms) if t["isuse"] is not None), default=-1)
        for i, t in enumerate(terms):
            have = {g: t[g] for g in ("isrel", "issup") if t[g] is not None}
            if ended and i == last_use:
                have["isuse"] = t["isuse"]
            out *= t["first"] + renormalised(have, pool)
        return out
    add = (lambda v: sum(v)) if s.combine == "sum" else (lambda v: sum(v) / len(v))
    have = {}
    for g in ("isrel", "issup"):
        values = [t[g] for t in terms if t[g] is not None]
        if values:
            have[g] = add(values)
    if ended and uses:
        have["isuse"] = uses[-1]
    return add([t["first"] for t in terms]) + renormalised(have, pool)


def renormalised(have, pool):
    """The weighted sum of the groups present, scaled as if all were."""
    present = sum(pool[g] for g in have)
    return sum(pool.values()) / present * sum(pool[g] * v for g, v in have.items()) if present else 0.0
