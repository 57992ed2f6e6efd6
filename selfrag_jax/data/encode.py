"""From a generator row to ids and the loss mask."""

import dataclasses

import numpy as np

from selfrag_jax import reflection
from selfrag_jax.data.rows import Row
from selfrag_jax.errors import UserError
from selfrag_jax.tokenizer import Tokenizer


@dataclasses.dataclass(frozen=True)
class Encoded:
    """One training sequence: prompt, output, end token, cut at the greatest length."""

    ids: np.ndarray  # [T] int32
    loss_mask: np.ndarray  # [T] bool: whether token t is a target, i.e. is predicted from the tokens before it
    truncated: bool  # whether tokens were cut off at the end


def encode_row(row: Row, tokenizer: Tokenizer, *, max_length: int, mask: str = "paper") -> Encoded:
    """The ids of a row and which of them are learnt. The prompt is not, the end token is.

    `mask="paper"`: of each passage by itself `<paragraph>` is learnt, the text and `</paragraph>` are not.
    `mask="reference"`, as in the authors' training code: from the first `<paragraph>` to the last `</paragraph>` of
    the row nothing is learnt but these two tokens, so neither are the segments between passages; and the last token
    of the prompt is a target.

    The mask is made before the row is cut at `max_length`, so that a passage cut short stays masked. Raises UserError
    where the output's passages are not closed, or the mask has another name.
    """
    if mask not in ("paper", "reference"):
        raise UserError(f"data.mask is {mask!r}; expected paper or reference")
    ids = tokenizer.encode_prompt(row.instruction, row.input)
    learnt = [False] * len(ids)
    if mask == "reference":
        learnt[-1] = True
    for piece in reflection.parse(row.output):
        piece_ids = tokenizer.encode_piece(piece)
        ids += piece_ids
        masked = len(piece_ids) - 1 if piece.kind == "passage" else 0
        learnt += [True] * (len(piece_ids) - masked) + [False] * masked
    ids.append(tokenizer.eos_id)
    learnt.append(True)
    ids_T, learnt_T = np.array(ids, np.int32), np.array(learnt, bool)
    if mask == "reference":
        opens = np.flatnonzero(ids_T == tokenizer.reflection.paragraph)
        closes = np.flatnonzero(ids_T == tokenizer.reflection.paragraph_end)
        if opens.size:
            learnt_T[opens[0] : closes[-1] + 1] = False
            learnt_T[[opens[0], closes[-1]]] = True
    return Encoded(ids_T[:max_length], learnt_T[:max_length], len(ids) > max_length)
