"""A Hugging Face or GGUF tokenizer with the reflection tokens in it.

Two doors: `encode` is for text of users and passages and yields no special id whatever the text holds; special ids
come only from the program (prompts, fences) and, through `reflection.parse`, from the outputs of trusted rows.
"""

import dataclasses
import os
import pathlib
from collections.abc import Iterable

from selfrag_jax import reflection
from selfrag_jax.errors import UserError
from selfrag_jax.reflection import Piece, ReflectionIds
from selfrag_jax.tokenizer_files import Vocabulary, read_vocabulary


@dataclasses.dataclass(frozen=True)
class Tokenizer:
    """Text to ids and back. Make it with `Tokenizer.load`; it pickles, and holds no open file."""

    vocabulary: Vocabulary
    reflection: ReflectionIds
    num_added: int  # reflection tokens that the files did not have; their ids are the last ones

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, add_reflection_tokens: bool = True) -> "Tokenizer":
        """The tokenizer of a Hugging Face directory or a .gguf file.

        Reflection tokens that it already has keep their ids; missing ones follow the last id in published order, so
        that Llama-2 files get 32000…32015. Raises UserError where the files cannot be used, or lack the tokens
        and `add_reflection_tokens` is False.
        """
        vocabulary = read_vocabulary(pathlib.Path(path))
        missing = [token for token in reflection.TOKENS if token not in vocabulary.special]
        if missing and not add_reflection_tokens:
            raise UserError(f"{path}: the tokenizer has no {', '.join(missing)}; load it with these added")
        for token in missing:
            vocabulary.special[token] = len(vocabulary.token_bytes)
            vocabulary.token_bytes.append(token.encode())
        return cls(vocabulary, ReflectionIds.from_lookup(vocabulary.special.get), len(missing))

    def __post_init__(self):
        object.__setattr__(self, "_special_ids", frozenset(self.vocabulary.special.values()))

    @property
    def vocab_size(self) -> int:
        """Ids in use, the added ones included: every id is below it."""
        return len(self.vocabulary.token_bytes)

    @property
    def bos_id(self) -> int | None:
        return self.vocabulary.bos_id

    @property
    def eos_id(self) -> int:
        """The id that ends an answer. Raises UserError where the files name none."""
        if self.vocabulary.eos_id is None:
            raise UserError("the tokenizer names no end-of-sequence token; set eos_token in tokenizer_config.json")
        return self.vocabulary.eos_id

    @property
    def pad_id(self) -> int:
        return self.reflection.pad

    @property
    def add_bos(self) -> bool:
        return self.vocabulary.add_bos

    @property
    def special_ids(self) -> frozenset[int]:
        """The ids that `encode` never yields, whatever the text."""
        return self._special_ids  # type: ignore[attr-defined]

    def encode(self, text: str, *, first: bool = False) -> list[int]:
        """The ids of text from anywhere; none is special, even where the text spells a special token.

        `first`: the text stands at the very start of the sequence, where Llama-2's SentencePiece puts a space before
        it; after a special token it must not (`legacy=False`). Raises UserError on text that is not valid Unicode.
        """
        space = self.vocabulary.space_first
        if first and text and (space == "always" or (space == "missing" and not text.startswith(" "))):
            text = " " + text
        try:
            text.encode()
        except UnicodeEncodeError:
            raise UserError(f"text that is not valid Unicode: {ascii(text)[:80]}; mend its encoding") from None
        return self.vocabulary.encode(text)

    def decode(self, ids: Iterable[int], *, skip_special: bool = True, first: bool = False) -> str:
        """The text of ids. Leading spaces stay, so that the texts of consecutive pieces can be joined.

        Bytes that form no character become U+FFFD. `first` takes off the space that `encode` with `first` put there.
        """
        special, token_bytes = self.special_ids, self.vocabulary.token_bytes
        kept = (int(number) for number in ids)
        raw = b"".join(token_bytes[number] for number in kept if not (skip_special and number in special))
        text = raw.decode("utf-8", "replace")
        return text[1:] if first and self.vocabulary.space_first != "never" and text.startswith(" ") else text

    def encode_prompt(self, instruction: str, input: str = "") -> list[int]:
        """The prompt of `reflection.prompt` from the start of the sequence, with the begin token where there is one."""
        begin = [self.bos_id] if self.add_bos and self.bos_id is not None else []
        return begin + self.encode(reflection.prompt(instruction, input), first=True)

    def encode_passage(self, title: str, text: str, max_tokens: int | None = None) -> list[int]:
        """`<paragraph>`, title and text, `</paragraph>`: at most `max_tokens` ids (≥ 2), the fences among them.

        A long passage is cut at a token boundary and keeps its closing fence.
        """
        if max_tokens is not None and max_tokens < 2:
            raise ValueError(f"max_tokens {max_tokens}: the two fences need 2")
        ids = self.encode(reflection.passage(title, text))
        if max_tokens is not None:
            ids = ids[: max_tokens - 2]
        return [self.reflection.paragraph, *ids, self.reflection.paragraph_end]

    def encode_piece(self, piece: Piece) -> list[int]:
        """The ids of one part of a trusted row's output; a passage comes with its fences."""
        if piece.kind == "token":
            return [self.reflection[piece.text]]
        ids = self.encode(piece.text)
        if piece.kind == "passage":
            return [self.reflection.paragraph, *ids, self.reflection.paragraph_end]
        return ids

    def encode_output(self, output: str) -> list[int]:
        """The ids of a trusted row's output, in which tokens outside passages are meant as such.

        Raises UserError as `reflection.parse` does.
        """
        return [number for piece in reflection.parse(output) for number in self.encode_piece(piece)]
