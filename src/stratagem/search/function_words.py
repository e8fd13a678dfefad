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
    werden wurde kann soll muss diese diesen dieser dieses ins bin bist sein seine seinen ihn ihm
    wenn weil dass noch schon sehr nur
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
    waarom hoeveel zijn is was niet deze dit dat heb heeft bij op aan er hij wij ook moet wordt
"""
_SCANDINAVIAN = """
    och att det den som ett jag mig min mitt mina vad vem hur inte av med og jeg mit hvad hvem
    hvor hvordan ikke af til er en et ar pa nar fran vi din ditt dina sin sitt vart vara varfor
    vilken vilket vilka eller men om har hade ska skulle finns nagot nagon hva hvorfor hvornar
    hvilken hvilket hvilke fra din skal vil eller noget noen noe finnes vores deres hos
"""
_SLAVIC = """
    w z na do jest sie jak gdzie mi moj moja prosze dla ten ta czy nie kto kiedy dlaczego ile ktory
    ktora ktore jaki jaka jakie moje ma sa przez od po kdo kde kdy jaky jakou kolik proc ktera
    je jsou neni muj mam byl byla bylo bude bedzie v u
"""
_OTHERS = """
    bir bu su ve ile icin nasil nedir ne mi benim bana lutfen kim kac hangi neden nerede kadar degil
    var yok este sunt cine unde cand ce din pentru si onko missa mika milloin miten mita kuka kuinka
    miksi hol mikor hany melyik egy nem apa apakah siapa kapan berapa yang dari itu saya untuk toi
    cua cho va la co khong mot nhung trong tu
"""
# What English texts have too, as words, names, abbreviations or commands.
_NAMES_AND_COMMANDS = """
    ai al apa ar att au aus aux av bin bu ce cho co com come comment como con da dari das dat dei
    del dem den des die din dir dos du e ed elle em en er era es est favor fra ha har hat hay ho hoe
    hol im ins ist itu jest kde kim kuka ma mam med men mes met mi mia mig mika min mina mir mis mit
    mitt moet moje mon mot na nar nas ne nie noe nos o od om op os ou pa par per po pour proc sa
    sans sao se ses si sin sit ska skal som son su sur sus ta ten til toi ton tu u um unde uno uns v
    va van var vara vart vi vil w war wen y yang z
"""
# Of these the ones that are none of English as they are spelled.
_ACCENTED: Final = frozenset(["är", "é", "når", "när", "où", "på", "są"])
# What names begin with, or have in them: Los Angeles, Maria de Souza, van der Berg.
_PARTS_OF_NAMES = """
    da das de del della den der des di dos du el la las le les los van von
"""
_IN_NAMES: Final = frozenset(_PARTS_OF_NAMES.split())
# So many of them at most stand in a row.
_RUN_MAX: Final = 3
# Names of languages: so many in a row are a list, and no sentence.
_CODES_OF_LANGUAGES = """
    ar bg cs da de en es fi fr hr hu it ja ko nl pl pt ru sv tr uk vi zh
"""
_LANGUAGES: Final = frozenset(_CODES_OF_LANGUAGES.split())
_LISTED_MIN: Final = 3
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
        _SLAVIC,
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
# In a text of so many words an accent and a single one show the language. A longer one has two.
_ACCENTED_MIN: Final = 3
_SINGLE_MAX: Final = 12

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
    if FUNCTION_WORDS.isdisjoint(bare):
        return False
    places = {
        word: place
        for place, word in reversed([*enumerate(bare)])
        if word in FUNCTION_WORDS and not _is_mentioned(chunks, bare, place)
    }
    telling = [place for word, place in places.items() if _is_never_english(chunks[place], word)]
    if not telling:
        return False
    english = len(_ENGLISH_ONLY.intersection(bare))
    if len(places) < _FUNCTION_WORDS_MIN:
        return not english and _builds_sentence(chunks, bare, telling[0])
    return len(places) > english


def _is_never_english(chunk: str, word: str) -> bool:
    return word in _NEVER_ENGLISH or chunk.casefold().strip(_EDGES) in _ACCENTED


def _builds_sentence(chunks: Sequence[str], bare: Sequence[str], place: int) -> bool:
    """Whether the only function word of a text shows that the rest is in its language, too.

    It does at the beginning of a question, or where a word of the text has an accent.
    """
    if len(chunks) > _SINGLE_MAX or place + 1 == len(chunks):
        return False
    if bare[place] in _IN_NAMES or chunks[place].isupper():
        return False
    if _is_capitalised(chunks[place + 1]):
        return False
    asks = not place and chunks[-1].endswith("?")
    return asks or (len(chunks) >= _ACCENTED_MIN and any(map(_has_accent, chunks)))


def _is_mentioned(chunks: Sequence[str], bare: Sequence[str], place: int) -> bool:
    """Whether a word builds no sentence: it is listed (`en, de`), or a part of a name."""
    if chunks[place].endswith(_LISTING) or _is_among_languages(bare, place):
        return True
    begins = not place or chunks[place - 1].endswith(_SENTENCE_ENDS)
    return (not begins and _is_capitalised(chunks[place])) or _is_in_name(chunks, bare, place)


def _is_among_languages(bare: Sequence[str], place: int) -> bool:
    first = end = place
    while first > 0 and bare[first - 1] in _LANGUAGES:
        first -= 1
    while end < len(bare) and bare[end] in _LANGUAGES:
        end += 1
    return end - first >= _LISTED_MIN and bare[place] in _LANGUAGES


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


def _has_accent(chunk: str) -> bool:
    """Whether a word has a letter that is a Latin one with an accent."""
    return not chunk.isascii() and any(
        each.isalpha() and not each.isascii() and fold(each).isascii() for each in chunk
    )


def _bare(chunk: str) -> str:
    return fold(chunk).casefold().strip(_EDGES)
