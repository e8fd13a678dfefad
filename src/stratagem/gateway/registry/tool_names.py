"""Names of tools: which are taken, and which can be mistaken for one that is.

People and models choose a tool by its name. Two names that look alike have the same *skeleton*:
what is left when case and letters that resemble each other are the same, and separators are left
out. A name is refused if its skeleton is that of somebody else's tool, or differs from that of a
built-in tool by one letter only, such as `strata_recal`.
"""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Iterable, Iterator
from typing import Final

from stratagem import limits
from stratagem.function_cache import cache_texts

__all__ = ["TakenNames", "skeleton"]

# Letters and digits that look alike in common typefaces, once case is folded; some look like two.
_ALIKE: Final[dict[int, str]] = {
    **dict(zip(map(ord, "01i|2589qv"), "olllzsbggu", strict=True)),
    **str.maketrans({"w": "uu", "m": "rn", "d": "cl", "_": "", "-": "", ".": ""}),
}
# Of shorter names, many honest ones differ by a letter.
_TYPED_CHARS_MIN: Final = 8
# Letters of other scripts that look like Latin ones, for names that came from elsewhere.
_FOREIGN: Final = str.maketrans("аеорсухіјѕԁԛԝʟɑɡοανκρτυχ", "aeopcyxijsdqwlagoavkptux")
# So many tools of one source may have the same name.
_NUMBERS_MAX: Final = 100


# A pure function of a short text; each registration compares with every registered name.
@cache_texts(16_384)
def skeleton(name: str) -> str:
    """Return what a name looks like; two names that look alike have the same."""
    plain = unicodedata.normalize("NFKD", name).casefold().translate(_FOREIGN)
    return "".join(char for char in plain if not unicodedata.combining(char)).translate(_ALIKE)


class TakenNames:
    """The names of tools that there are, each with its owner."""

    def __init__(self, names: Iterable[tuple[str, str | None]]) -> None:
        self._names: set[str] = set()
        self._skeletons: dict[str, list[tuple[str, str | None]]] = {}
        # Built-in tools by their skeletons, and by these without one of their letters.
        self._nearly: dict[str, str] = {}
        for name, owner in names:
            self.add(name, owner)

    def add(self, name: str, owner: str | None) -> None:
        """Take a name."""
        self._names.add(name)
        self._skeletons.setdefault(skeleton(name), []).append((name, owner))
        if owner is None:
            self._nearly.update(dict.fromkeys(_drop_one_letter(skeleton(name)), name))

    def twin_of(self, name: str, owner: str | None) -> str | None:
        """Return a tool of somebody else's that a name can be mistaken for."""
        for other, other_owner in self._skeletons.get(skeleton(name), ()):
            if other != name and (other_owner is None or other_owner != owner):
                return other
        nearly = (self._nearly.get(each) for each in _drop_one_letter(skeleton(name)))
        return next((other for other in nearly if other not in {None, name}), None)

    def free(self, source: str, name: str, owner: str) -> str | None:
        """Return a name for a tool of a source: its own, or one with the source before it."""
        for candidate in _candidates(source, name):
            if candidate not in self._names and self.twin_of(candidate, owner) is None:
                return candidate
        return None


def _drop_one_letter(plain: str) -> Iterator[str]:
    """Yield a text and what is left of it without each letter.

    Two texts share one of these if one letter was added, left out, changed or moved.
    """
    if len(plain) >= _TYPED_CHARS_MIN:
        yield plain
        yield from (plain[:at] + plain[at + 1 :] for at in range(len(plain)))


def _candidates(source: str, name: str) -> Iterator[str]:
    yield name
    prefixed = f"{source}_{name}"
    yield _shorten(prefixed)
    for number in range(2, _NUMBERS_MAX):
        yield _shorten(f"{prefixed}_{number}")


def _shorten(name: str) -> str:
    """Shorten a name that is too long; a suffix from its hash keeps it unique."""
    if len(name) <= limits.TOOL_NAME_CHARS_MAX:
        return name
    piece = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{name[: limits.TOOL_NAME_CHARS_MAX - len(piece) - 1]}_{piece}"
