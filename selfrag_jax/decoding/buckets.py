"""The static shapes that device calls are padded to: one table, so that nothing compiles twice in a run.

Every combination is a compilation, so the steps are wide where padding is cheap (prefixes, which are read once per
token, and tokens read onto them) and narrow where it is not (passages, of which every candidate has its own).
"""

PREFIXES = tuple(128 << i for i in range(11))  # S: 128 … 131072
BLOCKS = tuple(64 << i for i in range(12))  # T, tokens read onto a prefix in one call
SUFFIXES = (1, *(half for i in range(11) for half in (64 << i, 96 << i)))  # P; [No Retrieval] alone is one token
NEW_TOKENS = tuple(16 << i for i in range(12))  # M


def fit(needed: int, table: tuple[int, ...]) -> int:
    """The smallest entry that holds `needed`. Raises ValueError where none does."""
    for size in table:
        if needed <= size:
            return size
    raise ValueError(f"{needed} is larger than the largest bucket, {table[-1]}")


def rows(needed: int) -> int:
    """Rows in one call: a power of two, or half as many again. Padding rows are computed like the others."""
    whole = 1 << (max(needed, 1) - 1).bit_length()
    return whole * 3 // 4 if whole > 2 and needed <= whole * 3 // 4 else whole
