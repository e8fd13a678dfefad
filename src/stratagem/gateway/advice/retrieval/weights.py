"""Every tuned number of recommendation, and how it was chosen.

Two judges see each tool, and neither is compared with how other tools do:

* *words*: BM25 over five fields, as one text whose fields count differently (BM25F), as a share of
  what a tool made of the request's own words would have. Divided by the best tool's instead, a
  tool that shares "show" with a request gets full marks wherever no tool shares more.
* *meaning*: the cosine with a tool's purpose (name, description, names of parameters) and with
  everything it says, half each.

    nearness = cosine + 3 · words
    score    = 1 / (1 + exp(-(slope · nearness + offset)))

The score says how likely the first tool is right, by a logistic curve for each embedder. Where the
best tool has less than `answer_score_min`, the answer is that no tool fits; below `SCORE_WEAK` the
tools are called weak matches.

Chosen on the tuning half of five catalogues (BFCL, MetaTool, LiveMCP, Seal-Tools, ToolAlpaca), each
of which counts alike; `python -m evals tools` prints the other half. Recall@1 / @5, own operations
left out:

                           BFCL        MetaTool    LiveMCP     Seal-Tools  ToolAlpaca
    share of the best tool .498/.801   .558/.718   .340/.520   .951/1.00   .406/.562
    1 · words              .485/.801   .556/.734   .400/.600   .918/.989   .281/.719
    2 · words              .485/.781   .576/.747   .380/.600   .923/.989   .375/.719
    3 · words              .495/.781   .585/.747   .380/.600   .923/1.00   .375/.719
    4 · words              .492/.781   .592/.754   .360/.580   .929/1.00   .375/.688

(The first row is what was there before, with own operations; the second still reads words as they
were guessed and adds two, the third adds two.)

A difference of less than two points is noise on the large
catalogues, of less than ten on the small ones. That the values in a request are such as a tool
takes was worth 1.4 points on BFCL, elsewhere noise, and is left out. More `WORDS_ADDED` make
short nonsense score lower: 0, 1 and 2 give an AUC of .82, .92 and .95 at 2 · words.

The floor of an answer was chosen to lose at most one right tool in a hundred of any catalogue of
the tuning half. Other signals were tried beside the score, in a logistic regression on that half:
how far the best cosine stands out of all cosines, or the best tool of the five behind it; the share
of the request's words that the tool uses, or has a neighbour of; the number of tools. At the same
loss none refuses more of the absent and of the nonsense than the score does. Only the number of
tools is worth something, in large catalogues: among thousands one is near to anything. Share of
requests refused in the tuning half, and of right tools among five lost, in BFCL, MetaTool, LiveMCP,
Seal-Tools, ToolAlpaca and our own short requests for the tools of LiveMCP:

    floor                    absent    nonsense    of it Seal-Tools    right tools lost
    .06                      .06       .53         .23                 .004 .000 .000 .000 .000 .000
    .10                      .23       .75         .46                 .004 .010 .000 .000 .000 .000
    .10 at 200 tools, ^.15   .20       .77         .54                 .004 .010 .000 .000 .000 .031
    .13                      .37       .80         .46                 .004 .029 .000 .000 .000 .031
    .16                      .53       .83         .54                 .004 .058 .000 .000 .000 .062

Evidence moves the log-odds of a score, so it decides between what is nearly equal. A tool that
mostly fails loses up to `FAILING`. One that worked after similar requests gains up to `FOLLOWED`,
but comes only close behind the best that words and meaning find, unless `SIMILAR` is enough or the
request was the same (similar from 0.9 on). One that failed after them loses up to `FAILED`. Half of
the BFCL requests of the tuning half followed by a call of the right tool, tried on the other half,
both ways round; recall@1 and @5 of requests for tools that were called, and for others:

    before                     .308   .675      .622   .856
    followed 2, similar 0.5    .359   .829      .622   .850
    followed 2, similar 1      .385   .829      .611   .850
    followed 2.5, similar 1    .385   .846      .611   .850
    followed 3, similar 1      .385   .863      .611   .844
    followed 4, similar 1      .385   .889      .611   .833
    followed 4, similar 3      .436   .889      .594   .833
"""

from __future__ import annotations

from typing import Final

from stratagem.search.embedding import Embedder, StaticEmbedder

__all__ = [
    "CANDIDATES",
    "FAILED",
    "FAILING",
    "FIELD_LENGTHS",
    "FIELD_WEIGHTS",
    "FOLLOWED",
    "SAME_MIN",
    "SATURATION",
    "SCORE_MIN",
    "SCORE_SURE",
    "SCORE_WEAK",
    "SIMILAR",
    "SIMILAR_MIN",
    "WORDS_ADDED",
    "WORDS_WEIGHT",
    "answer_score_min",
    "calibration",
]

# Name, description, names of parameters, what they are said to mean, their choices.
FIELD_WEIGHTS: Final = (2.0, 1.0, 1.0, 0.5, 1.0)
# How far a field's length counts against it; a name is short by nature.
FIELD_LENGTHS: Final = (0.5, 0.75, 0.75, 0.75, 0.75)
SATURATION: Final = 1.2
WORDS_WEIGHT: Final = 3.0
WORDS_ADDED: Final = 3.0
# Below this a tool is not named behind a better one.
SCORE_MIN: Final = 0.06
SCORE_WEAK: Final = 0.25
# From here on a tool is rather right than wrong.
SCORE_SURE: Final = 0.5
# How many tools by words and meaning are looked at closely. The right one is beyond the sixtieth
# for one request in thirty, and nothing that follows would bring it among five.
CANDIDATES: Final = 60
# What evidence is worth, in log-odds; see above.
FAILING: Final = 0.5
FAILED: Final = 4.0
FOLLOWED: Final = 2.5
SIMILAR: Final = 1.0
# Requests as alike as this ask for the same.
SAME_MIN: Final = 0.9
# Requests less alike than this are about something else.
SIMILAR_MIN: Final = 0.6

# What the best tool must have in a catalogue of so many tools, and how it grows with their number.
_ANSWER_SCORE: Final = 0.1
_ANSWER_TOOLS: Final = 200
_ANSWER_GROWTH: Final = 0.15
_ANSWER_TOOLS_MIN: Final = 20

# Slope and offset of the score: for words alone, and by embedder.
_BY_WORDS: Final = (7.5, -2.7)
_BY_STATIC: Final = (5.2, -4.8)
_BY_OTHERS: Final = (6.2, -4.4)


def calibration(embedder: Embedder | None) -> tuple[float, float]:
    """Return the slope and the offset that turn nearness into how likely a tool is right."""
    if embedder is None:
        return _BY_WORDS
    return _BY_STATIC if isinstance(embedder, StaticEmbedder) else _BY_OTHERS


def answer_score_min(tools: int) -> float:
    """Return the score below which the best of so many tools is no answer."""
    counted = max(_ANSWER_TOOLS_MIN, tools)
    return _ANSWER_SCORE * float((counted / _ANSWER_TOOLS) ** _ANSWER_GROWTH)
