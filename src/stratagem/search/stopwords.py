"""English words that say how a sentence is built and not what it is about.

Only closed classes: articles, pronouns, prepositions, conjunctions, auxiliaries, question
words and adverbs of degree, spelled as analysis leaves them (no apostrophes). What also
names a thing that people look for is left out: may, id, ill. A shorter list, without
question words and auxiliaries, cost 1.5 points of recall on conversations; a longer one, with
common verbs, gained nothing.
"""

from __future__ import annotations

from typing import Final

__all__ = ["STOP_WORDS"]

_ARTICLES = "a an the this that these those"
_PRONOUNS = """
    i me my mine myself we us our ours ourselves you your yours yourself yourselves
    he him his himself she her hers herself it its itself they them their theirs themselves
    one ones someone somebody something anyone anybody anything
    everyone everybody everything nobody nothing each other
"""
_PREPOSITIONS = """
    about above across after against along among around as at before behind below beside between
    beyond by down during for from in inside into near of off on onto out outside over
    since through to toward towards under until up upon via with within without
"""
_CONJUNCTIONS = """
    and but or nor so yet if then else than because while although though unless whether
"""
_AUXILIARIES = """
    am is are was were be been being do does did doing done have has had having
    can could shall should will would might must ought cannot
    dont doesnt didnt isnt arent wasnt werent hasnt havent hadnt cant couldnt
    wont wouldnt shouldnt mustnt aint im ive youre youve youll hes shes
    theyre theyve theyll weve thats theres whats lets
"""
_QUESTIONS = "what which who whom whose when where why how"
_ADVERBS = """
    not no yes there here now just only very too also again ever never always
    any all some both few more most much many such same own
"""

STOP_WORDS: Final = frozenset(
    word
    for words in (
        _ARTICLES,
        _PRONOUNS,
        _PREPOSITIONS,
        _CONJUNCTIONS,
        _AUXILIARIES,
        _QUESTIONS,
        _ADVERBS,
    )
    for word in words.split()
)
