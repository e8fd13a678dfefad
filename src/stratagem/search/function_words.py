"""Words of other languages that say how a sentence is built and not what it is about.

The embedder knows English. It also knows `de`, `la` and `mi`, which any text in Spanish has, so
that two texts in one such language look alike whatever they say, and share words as two English
texts share "the". So a question in another language is recognised by these words, asks for the
others only, and is compared by words alone.

A word is spelled as `fold` leaves it, in small letters. What English or code uses too (`die`, `os`,
`var`) does not show by itself that a text is in another language.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from stratagem.search.characters import fold
from stratagem.search.stopwords import STOP_WORDS

__all__ = ["FUNCTION_WORDS", "is_foreign", "leave_out_function_words"]

_GERMAN = """
    der die das den dem des ein eine einen einem einer eines und oder ich du er sie es wir ihr
    ihre mir mich dir dich uns unser unsere ist sind war hat habe haben wie wo wer wen wem wann
    warum wohin woher wieviel was welche welcher welches von vom nach fur mit im am auf aus bei
    zu zum zur bitte nicht auch mein meine meinen meiner meinem dein deine kein keine alle wird
    werden wurde kann soll muss diese diesen dieser dieses ins
"""
_SPANISH = """
    el la los las un una unos unas y o de del al en que quien cual cuales cuando cuanto cuanta
    cuantos cuantas como donde adonde por para con sin mi mis su sus tu tus es son era esta este
    estos estan nuestro nuestra quiero puedes podrias favor hay hace se lo le
"""
_FRENCH = """
    le la les un une des et ou du de au aux je tu il elle nous vous mon ma mes ton ta tes son sa
    ses notre votre ce cet cette ces est sont etait quel quelle quels quelles qui que quand
    combien comment pourquoi lequel laquelle pour avec sans dans sur chez moi par fait-il veux
    peux
"""
_PORTUGUESE = """
    o os as um uma uns umas de do da dos das no na nos nas em que meu minha meus minhas qual
    quais quem onde quando quanto quantos quantas como sao esta quero pode voce por para com
"""
_ITALIAN = """
    il lo la gli un uno una di del dei della delle dello nel nella che chi cosa dove quando
    quanto come quanti quante perche quale qual e ed sono mio mia miei mie ho ha si con per
    vorrei puoi favore
"""
_DUTCH = """
    de het een en van voor met naar ik je jij mijn ons onze wat hoe waar wie wanneer welke welk
    waarom hoeveel zijn is was niet deze dit dat heb heeft bij op aan
"""
_SCANDINAVIAN = """
    och att det den som ett jag mig min mitt mina vad vem hur inte av med og jeg mit hvad hvem
    hvor hvordan ikke af til er en et
"""
_OTHERS = """
    w z na do jest sie jak gdzie mi moj moja prosze dla ten ta bir bu su ve ile icin nasil nedir
    ne mi benim bana lutfen toi cua cho va la co khong mot nhung trong tu
"""
# What English texts have too, as words, names, abbreviations or commands.
_NAMES_AND_COMMANDS = """
    ai al att au aus aux av bu cho co com come comment como con da das dat dei del dem den des die
    dir dos du e ed elle em en er era es est favor ha hat hay ho hoe im ins ist jest ma med mes met
    mia mig min mina mir mis mit mitt mon mot na nas ne nos o op os ou par per pour sa sans sao se
    ses si sin som son su sur sus ta ten til toi ton tu um uno uns va van var vi w war wen y z
"""
# What names begin with, or have in them: Los Angeles, Maria de Souza, van der Berg.
_PARTS_OF_NAMES = """
    da das de del della den der des di dos du el la las le les los van von
"""
_IN_NAMES: Final = frozenset(_PARTS_OF_NAMES.split())
# So many of them at most stand in a row.
_RUN_MAX: Final = 3
# A German noun behind one of these has a capital letter, too.
_GERMAN_IN_NAMES: Final = frozenset(["das", "den", "der", "des", "von"])
# What English has behind a word of another language, in small letters too: de facto, et al.
_BORROWED: Final = frozenset(["al", "angeles", "facto", "janeiro", "jure", "novo", "vegas"])
_ALL: Final = frozenset(
    word
    for words in (
        _GERMAN,
        _SPANISH,
        _FRENCH,
        _PORTUGUESE,
        _ITALIAN,
        _DUTCH,
        _SCANDINAVIAN,
        _OTHERS,
    )
    for word in words.split()
)
FUNCTION_WORDS: Final = _ALL - STOP_WORDS

_ENGLISH_TOO: Final = frozenset(_NAMES_AND_COMMANDS.split())
_NEVER_ENGLISH: Final = FUNCTION_WORDS - _ENGLISH_TOO
_ENGLISH_ONLY: Final = STOP_WORDS - _ALL
# A single one may be part of a name: "el" in El Paso.
_FUNCTION_WORDS_MIN: Final = 2

# No word that builds a sentence stands before one of these.
_LISTING: Final = (",", ";", ")", "]", "}", "'", '"', "`")
_SENTENCE_ENDS: Final = (".", "!", "?", ":")
_EDGES: Final = "¿¡.,;:!?()[]{}\"'`«»„“”"


def is_foreign(text: str) -> bool:
    """Whether a text is in another language that is written with Latin letters."""
    chunks = text.split()
    return _are_foreign(chunks, list(map(_bare, chunks)))


def leave_out_function_words(chunks: Sequence[str]) -> Sequence[str]:
    """Return what a text in another language is about; all of it, if it is not in one."""
    bare = list(map(_bare, chunks))
    if not _are_foreign(chunks, bare):
        return chunks
    kept = [chunk for chunk, word in zip(chunks, bare, strict=True) if word not in FUNCTION_WORDS]
    return kept or chunks


def _are_foreign(chunks: Sequence[str], bare: Sequence[str]) -> bool:
    if _NEVER_ENGLISH.isdisjoint(bare):
        return False
    distinct = {
        word
        for place, word in enumerate(bare)
        if word in FUNCTION_WORDS and not _is_mentioned(chunks, bare, place)
    }
    if distinct.isdisjoint(_NEVER_ENGLISH):
        return False
    count = len(distinct)
    return count >= _FUNCTION_WORDS_MIN and count > len(_ENGLISH_ONLY.intersection(bare))


def _is_mentioned(chunks: Sequence[str], bare: Sequence[str], place: int) -> bool:
    """Whether a word builds no sentence: it is listed (`en, de`), or a part of a name."""
    if chunks[place].endswith(_LISTING):
        return True
    begins = not place or chunks[place - 1].endswith(_SENTENCE_ENDS)
    return (not begins and _is_capitalised(chunks[place])) or _is_in_name(chunks, bare, place)


def _is_in_name(chunks: Sequence[str], bare: Sequence[str], place: int) -> bool:
    first, end = place, place + 1
    if bare[place] in _IN_NAMES:
        while first > max(place - _RUN_MAX, 0) and bare[first - 1] in _IN_NAMES:
            first -= 1
        while end < min(place + _RUN_MAX, len(bare)) and bare[end] in _IN_NAMES:
            end += 1
    if end == len(bare):
        return False
    if bare[end] in _BORROWED:
        return True
    if bare[place] not in _IN_NAMES or not _is_capitalised(chunks[end]):
        return False
    if bare[first] in _GERMAN_IN_NAMES:
        return bare[first] == "von" and end - first > 1
    is_long = bare[first] == "van" and end - first > 1
    return is_long or any(map(_is_capitalised, chunks[max(first - 1, 0) : first + 1]))


def _is_capitalised(chunk: str) -> bool:
    word = chunk.strip(_EDGES)
    return word[:1].isupper() and not word.isupper()


def _bare(chunk: str) -> str:
    return fold(chunk).casefold().strip(_EDGES)
