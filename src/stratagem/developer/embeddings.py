"""The embedder in use, for callers: texts to vectors, and to the tokens that it reads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from stratagem import limits
from stratagem.developer.models import (
    EmbeddedText,
    EmbeddedTexts,
    EmbeddingStatus,
    Tokens,
    Untokenized,
)
from stratagem.engine import values
from stratagem.errors import EmbeddingFailed, ValidationFailed
from stratagem.parameters import Param
from stratagem.search import tokens as vocabulary
from stratagem.search.embedding import Embedder
from stratagem.search.foundation import BoundSystem

__all__ = ["Embeddings"]

_Text = Annotated[str, Param("The text", quiet=True)]
_Texts = Annotated[Sequence[str], Param("The texts, in their order", quiet=True)]


class Embeddings(BoundSystem):
    """Vectors of texts, for one caller."""

    def text(self, text: _Text) -> EmbeddedText:
        """Return the vector of a text: of length one, or zeros where no word of it is known.

        Raises:
            EmbeddingFailed: There is no embedder.
        """
        embedder = self._embedder()
        _check(text)
        return EmbeddedText(embedder.embed([text])[0].tolist(), embedder.dimensions, embedder.name)

    def batch(self, texts: _Texts) -> EmbeddedTexts:
        """Return the vectors of several texts."""
        embedder = self._embedder()
        if not 1 <= len(texts) <= limits.EMBED_TEXTS_MAX:
            raise ValidationFailed(
                f"Between 1 and {limits.EMBED_TEXTS_MAX} texts can be embedded at once.",
                field="texts",
                limit=limits.EMBED_TEXTS_MAX,
                hint="Embed them in several calls." if texts else "Give at least one text.",
            )
        for each in texts:
            _check(each)
        _check_total(texts)
        rows = embedder.embed(list(texts)).tolist()
        return EmbeddedTexts(rows, embedder.dimensions, embedder.name)

    def status(self) -> EmbeddingStatus:
        """Return the embedder in use, and how many texts have a vector or wait for one."""
        index = self._foundation.index
        embedder = index.embedder
        with self._store.snapshot() as reader:
            embedded, pending = reader.vectors.count(), index.count_without_vector(reader)
        return EmbeddingStatus(
            enabled=embedder is not None,
            model=embedder.name if embedder else "none",
            dimension=embedder.dimensions if embedder else None,
            loaded=embedder.is_loaded if embedder else False,
            embedded=embedded if embedder else 0,
            pending=pending,
        )

    def tokenize(self, text: _Text) -> Tokens:
        """Return the tokens that the embedder of Stratagem reads in a text."""
        _check(text)
        numbers, pieces = vocabulary.tokenize(text)
        return Tokens(numbers, pieces, len(numbers), vocabulary.NAME)

    def detokenize(
        self,
        tokens: Annotated[Sequence[int], Param("Tokens", quiet=True, max_length=limits.TOKENS_MAX)],
    ) -> Untokenized:
        """Return tokens as text; what a tokenizer drops (case, spacing) does not come back."""
        return Untokenized(vocabulary.detokenize(tokens), vocabulary.NAME)

    def _embedder(self) -> Embedder:
        embedder = self._foundation.index.embedder
        if embedder is None:
            raise EmbeddingFailed(
                "No embedder is in use.",
                hint="Start with --embedder static, or --auto-embed.",
            )
        return embedder


def _check_total(texts: Sequence[str]) -> None:
    """Refuse more text than can be embedded while other callers wait."""
    total = sum(map(len, texts))
    if total > limits.EMBED_CHARS_MAX:
        raise ValidationFailed(
            f"`texts` have {total:,} characters in all; the limit is {limits.EMBED_CHARS_MAX:,}.",
            field="texts",
            limit=limits.EMBED_CHARS_MAX,
            hint="Embed them in several calls.",
        )


def _check(text: str) -> None:
    if len(text) > limits.INDEXED_CHARS_MAX:
        raise ValidationFailed(
            f"`text` is {len(text):,} characters long; the limit is {limits.INDEXED_CHARS_MAX:,}.",
            field="text",
            limit=limits.INDEXED_CHARS_MAX,
        )
    values.encode(text, field="text")
