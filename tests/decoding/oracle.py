"""The whole segment search once more, slowly: NumPy in float64, one candidate at a time, every step from the start.

Written from the equations (SELFRAG.md §2) and on its own: it shares no code with the package, and its ids, formulas and
network are typed anew.
"""

import dataclasses
import itertools
import math

import numpy as np

# The tiny tokenizer's ids: 40 words, the end of sequence, then the sixteen tokens in published order.
EOS = 40
NO_RETRIEVAL, RETRIEVAL, CONTINUE, IRRELEVANT, RELEVANT, OPEN, CLOSE = range(41, 48)
UTILITY = list(range(48, 53))
SUPPORT = [53, 54, 55]  # fully, partially, no
RETRIEVE = [NO_RETRIEVAL, RETRIEVAL, CONTINUE]
ALL_13 = {*RETRIEVE, IRRELEVANT, RELEVANT, *UTILITY, *SUPPORT}
USED = 57


def llama_last_logits(params, shape, ids: list[int]) -> np.ndarray:
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
    return (params.get("head", params["embed"]) @ norm(x[-1], params["final_norm"]))[:USED]


@dataclasses.dataclass
class Node:
    parent: int | None
    action: str
    tokens: list[int]
    terms: dict  # first, isrel, issup, isuse (None where absent)
    score: float
    ended: bool
    texts: list[list[int]]  # of every segment on the path, without reflection tokens
    inline: list[int]  # everything since the prompt, or since the last retrieval with history="segments"
    past_text: list[int]  # with "segments": what stands between the prompt and `inline`
    path_terms: list[dict]
    used: int
    evidence: bool
    last_logits: np.ndarray
    depth: int


@dataclasses.dataclass
class Outcome:
    nodes: list[Node]
    best: int
    kept: set[int]
    margin: float  # the smallest lead that any greedy token or kept path had


def softmax(x):
    e = np.exp(x - x.max())
    return e / e.sum()


def search(params, shape, prompt: list[int], passages: list[list[int]], s) -> Outcome:
    """s: settings with the names of DecodeConfig. passages: ids with their fences, the same at every retrieval."""
    margins = [np.inf]
    nodes: list[Node] = []
    kept: set[int] = set()

    def greedy(context: list[int], budget: int):
        tokens, rows = [], []
        while True:
            logits = llama_last_logits(params, shape, context + tokens)
            top = np.sort(logits)[-2:]
            margins.append(top[1] - top[0])
            tokens.append(int(logits.argmax()))
            rows.append(logits)
            if tokens[-1] in RETRIEVE or tokens[-1] == EOS or len(tokens) == budget:
                return tokens, rows

    def decide(logits, evidence):
        if s.retrieve in ("always", "never"):
            return "retrieve" if s.retrieve == "always" else "none"
        p3 = softmax(logits[RETRIEVE])
        mass = softmax(logits)[RETRIEVE].sum()
        in_group = int(logits.argmax()) in RETRIEVE
        if not in_group and (s.retrieve == "token" or mass < s.min_group_mass):
            return "text"
        if p3.argmax() == 2 and evidence:
            return "continue"
        if s.retrieve == "token":
            return "retrieve" if p3.argmax() == 1 else "none"
        ratio = p3[1] / (p3[0] + p3[1]) if s.threshold_over == "two" else p3[1]
        margins.append(abs(ratio - s.threshold))
        return "retrieve" if ratio > s.threshold else "none"

    def measure(tokens, rows, action, inherited):
        logp = [r[t] - (np.log(np.exp(r - r.max()).sum()) + r.max()) for t, r in zip(tokens, rows, strict=True)]
        if not s.count_reflection_tokens:
            logp = [x for t, x in zip(tokens, logp, strict=True) if t not in ALL_13]
        total = sum(logp)
        first = {"none": 0.0, "log_prob": total, "prob": math.exp(total)}.get(
            s.first_term, math.exp(total / len(logp)) if logp else 1.0
        )
        terms = {"first": first, "isrel": None, "issup": None, "isuse": None}
        if action == "retrieve":
            terms["isrel"] = softmax(rows[0][[IRRELEVANT, RELEVANT]])[1]
        elif action == "continue":
            terms["isrel"] = inherited
        relevant = terms["isrel"] is None or terms["isrel"] >= 0.5
        for t, r in zip(tokens, rows, strict=True):
            if t in SUPPORT and terms["issup"] is None and action in ("retrieve", "continue") and relevant:
                p = softmax(r[SUPPORT])
                terms["issup"] = p[0] + (0.5 * p[1] if s.critique == "graded" else 0)
            if t in UTILITY and terms["isuse"] is None:
                p = softmax(r[UTILITY])
                terms["isuse"] = p @ [-1, -0.5, 0, 0.5, 1] if s.critique == "graded" else p[4]
        return terms

    def path_score(terms, ended):
        uses = [t["isuse"] for t in terms if t["isuse"] is not None]
        pool = {"isrel": s.w_isrel, "issup": s.w_issup, "isuse": s.w_isuse}
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
        present = sum(pool[g] for g in have)
        return sum(pool.values()) / present * sum(pool[g] * v for g, v in have.items()) if present else 0.0

    def grow(parent: int | None, action: str, passage: list[int] | None) -> int:
        mother = nodes[parent] if parent is not None else None
        inline = list(mother.inline) if mother else []
        past = list(mother.past_text) if mother else []
        if mother and action == "retrieve" and s.history == "segments":
            inline, past = [], [t for text in mother.texts for t in text]
        put_in = {
            "retrieve": [RETRIEVAL, *(passage or [])],
            "continue": [CONTINUE],
            "none": [NO_RETRIEVAL],
            "text": [],
        }[action]
        used = mother.used if mother else 0
        tokens, rows = greedy(prompt + past + inline + put_in, s.max_new_tokens - used)
        before = mother.path_terms if mother else []
        before = mother.path_terms if mother else []
        inherited = next((t["isrel"] for t in reversed(before) if t["isrel"] is not None), None)
        terms = measure(tokens, rows, action, inherited)
        depth = mother.depth + 1 if mother else 1
        used += len(tokens)
        ended = tokens[-1] not in RETRIEVE or depth >= s.max_depth or used >= s.max_new_tokens
        path_terms = [*before, terms]
        said = tokens[:-1] if tokens[-1] in RETRIEVE else tokens
        plain = [t for t in said if t < EOS or t in (OPEN, CLOSE, 56)]
        node = Node(
            parent, action, tokens, terms, path_score(path_terms, ended), ended,
            [*(mother.texts if mother else []), plain], inline + put_in + said, past, path_terms, used,
            action == "retrieve" or bool(mother and mother.evidence), rows[-1], depth,
        )  # fmt: skip
        nodes.append(node)
        return len(nodes) - 1

    def children(parent: int | None, logits) -> list[int]:
        action = decide(logits, nodes[parent].evidence if parent is not None else False)
        if action == "retrieve":
            return [grow(parent, action, passage) for passage in passages]
        return [grow(parent, action, None)]

    beam = children(None, llama_last_logits(params, shape, prompt))
    while True:
        ranked = sorted(beam, key=lambda n: -nodes[n].score)
        if len(ranked) > s.beam:
            margins.append(nodes[ranked[s.beam - 1]].score - nodes[ranked[s.beam]].score)
        margins += [nodes[a].score - nodes[b].score for a, b in itertools.pairwise(ranked[: s.beam])]
        beam = ranked[: s.beam]
        kept |= set(beam)
        if all(nodes[n].ended for n in beam):
            return Outcome(nodes, beam[0], kept, min(margins))
        beam = [n for n in beam if nodes[n].ended] + [
            child for n in beam if not nodes[n].ended for child in children(n, nodes[n].last_logits)
        ]
