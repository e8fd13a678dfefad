"""Every tuned number of recommendation, and how it was chosen.

Three judges see each tool, as in search:

* *words*: BM25 over five fields, as one text whose fields count differently (BM25F). A word that
  stands in the name counts twice, what parameters are said to mean counts half.
* *meaning*: the cosine with a tool's purpose (name, description, names of parameters) and with
  everything it says, half each.
* *fit*: whether the values in a request are values that the tool takes. Lookalikes say the same of
  themselves; what they take differs. Numbers, dates and choices can be told in any language
  that writes them; of everything a request holds (v) and a tool requires (r), what matches
  (m) counts for it, what is left over against it: (m − (v − m) − (r − m)) / (all + 1).

    score = words / best + 0.75 · meaning / best + 0.3 · fit

All of it counts by how near the best tools are at all: their cosine, from 0.2 (nothing to do with
each other) to 0.5 (the same). It is at least 0.5 for 95 % of the requests below, and less for 14 of
16 that were made up to have no tool in the catalogue.

Trials on 683 requests for one of 3,415 tools (recall of the right one among five; then the same on
the `live_*` requests, which people wrote):

    words, one field                              .691   .571
    words, five fields                            .710   .584
    and meaning (everything said)                 .723   .608
    and meaning (purpose and everything)          .720   .600
    and fit                                       .741   .631
    words and fit, without meaning                .734   .622

    meaning 0.5, 0.75, 1, 1.5 (fit 0.3)           .736   .739   .739   .739
    fit 0, 0.2, 0.3, 0.4 (meaning 0.75)           .720   .734   .739   .736

Fitted five times, each time on the requests for four fifths of the tool names, the weights were
0.6 for meaning and 0.24 for fit, within 0.03; tried on the rest they give .741 and .631. With fit,
purpose and everything together do better than everything alone (.741 against .726).

With two of five longer words of each request misspelled: .732 and .622, without `spelling` .663 and
.542.

Tried and left out: fields scored apart and summed (.695, against .723 as one text), rarity counted
by groups of lookalikes and fewer words of long requests (both no better than that), sharing places
among groups (.716), how many of the request's words a tool covers (.738), a name that counts once
or one and a half times (.745, .744). Tools with many
lookalikes could be preferred (.732 without fit), but that is how this set was gathered: there are
as many requests as lookalikes. A difference of less than 1.5 points is noise, so nothing finer was
tuned.

Evidence moves what is nearly equal. A tool that mostly fails loses up to a tenth of its score. One
that worked after similar requests comes close behind the best that words and meaning find, and
before it only when a quarter more of its own score is enough, or when the request was the same
(similar from 0.9 on). What failed after similar requests falls by as much.

Half of the requests followed by a call of the right tool, tried on the other half, both ways round;
recall@1 and @5 of requests for tools that were called, and for tools that were not:

    before                                          .291   .603      .623   .863
    added in full (0.5, similar from 0.6 on)        .482   .826      .574   .850
    in full from 0.8 on                             .319   .805      .613   .853
    a quarter more of the own score                 .411   .734      .616   .858
    and close behind the best: 0.3                  .411   .777      .616   .855
                               0.4                  .411   .791      .616   .855
                               0.5                  .411   .801      .616   .853

Evidence for one lookalike is evidence against the others, so the second row gains most and takes it
from tools that nobody tried yet. The one before the last takes three of 401.
"""

from __future__ import annotations

from typing import Final

__all__ = [
    "CANDIDATES",
    "COVERED_ENOUGH",
    "FIELD_LENGTHS",
    "FIELD_WEIGHTS",
    "FIT_WEIGHT",
    "INTENT_SHARE",
    "INTENT_WEIGHT",
    "MEANING_WEIGHT",
    "RELIABILITY_WEIGHT",
    "SAME_MIN",
    "SATURATION",
    "SIMILAR_MIN",
    "UNKNOWN_RARITY",
]

# Name, description, names of parameters, what they are said to mean, their choices.
FIELD_WEIGHTS: Final = (2.0, 1.0, 1.0, 0.5, 1.0)
# How far a field's length counts against it; a name is short by nature.
FIELD_LENGTHS: Final = (0.5, 0.75, 0.75, 0.75, 0.75)
SATURATION: Final = 1.2
MEANING_WEIGHT: Final = 0.75
FIT_WEIGHT: Final = 0.3
# How many tools by words and meaning are looked at closely. The right one is beyond the sixtieth
# for one request in thirty, and nothing that follows would bring it among five.
CANDIDATES: Final = 60
# What evidence is worth; see above.
RELIABILITY_WEIGHT: Final = 0.1
INTENT_WEIGHT: Final = 0.4
INTENT_SHARE: Final = 0.25
# Requests as alike as this ask for the same.
SAME_MIN: Final = 0.9
# Requests less alike than this are about something else.
SIMILAR_MIN: Final = 0.6
# What a word that no tool uses counts among those of a request.
UNKNOWN_RARITY: Final = 2.0
# Where meaning cannot be compared: the share of a request's words that a good tool uses. Three of
# four requests have a tool that uses as many.
COVERED_ENOUGH: Final = 0.35
