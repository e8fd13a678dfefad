"""Every bound in the system, each with its reason."""

from __future__ import annotations

from typing import Final

# Keys, names and labels are typed, shown in tables and put into URIs.
KEY_CHARS_MAX: Final = 512
NAMESPACE_CHARS_MAX: Final = 128
BRANCH_NAME_CHARS_MAX: Final = 128
EVENT_LABEL_CHARS_MAX: Final = 128
SESSION_CHARS_MAX: Final = 256
TAG_CHARS_MAX: Final = 128
TAGS_MAX: Final = 64
REQUEST_ID_CHARS_MAX: Final = 128
ACTOR_CHARS_MAX: Final = 128

# A value is held in memory several times while it is written and indexed.
VALUE_BYTES_MAX: Final = 4 * 1024 * 1024
# Deeper than any document people write, far below the recursion limit of any parser.
VALUE_DEPTH_MAX: Final = 64
# JSON integers beyond 64 bits are read differently by every client.
INTEGER_MIN: Final = -(2**63)
INTEGER_MAX: Final = 2**64 - 1

# One transaction holds the write lock for all of its items.
ITEMS_MAX: Final = 1_000
KEYS_MAX: Final = 1_000
DECISIONS_MAX: Final = 10_000

# More hits than this are read by nobody; the answer's budget would cut them anyway.
SEARCH_K_DEFAULT: Final = 10
SEARCH_K_MAX: Final = 50
# A question, or a whole error message with its stack.
QUERY_CHARS_MAX: Final = 10_000
# Terms of a query that are looked at; the rarest of them are asked for.
QUERY_TERMS_MAX: Final = 256
# Enough to judge a hit by; the whole text is one recall away.
SNIPPET_CHARS: Final = 240
# The index holds this much of a text; what lies beyond is stored but not searchable.
INDEXED_CHARS_MAX: Final = 100_000

# A page fits into an answer; the next one is a call away.
HISTORY_PAGE_DEFAULT: Final = 20
HISTORY_PAGE_MAX: Final = 100

# An answer that fits beside a conversation in a model's context.
ANSWER_CHARS_DEFAULT: Final = 20_000
ANSWER_CHARS_MIN: Final = 500
ANSWER_CHARS_MAX: Final = 1_000_000

# Written by hand: longer ones are a mistake.
JSONPATH_CHARS_MAX: Final = 512
TIME_WORDS_CHARS_MAX: Final = 64
# A hundred years: anything longer is a mistake in the unit.
TTL_SECONDS_MAX: Final = 100 * 366 * 24 * 3600

# Lineage deeper than this makes every read slow; a merge flattens it.
LINEAGE_DEPTH_MAX: Final = 64

# How long a write waits for another process before it says that the store is busy.
LOCK_WAIT_SECONDS: Final = 30.0
# How many concurrent writes share one commit.
GROUP_COMMIT_MAX: Final = 256

# A request over HTTP or stdio: the largest value several times over, and no more memory.
REQUEST_BYTES_MAX: Final = 16 * 1024 * 1024
# Each is some kilobytes; the one used longest ago ends when another begins.
SESSIONS_MAX: Final = 1_000
# Each call of a server in a thread of its own, with a connection of its own.
CALLS_AT_ONCE_MAX: Final = 16

# More fixes than one would ever try.
SOLUTIONS_DEFAULT: Final = 5
SOLUTIONS_MAX: Final = 20
# How many incidents like a problem are looked at, at least.
INCIDENTS_LISTED: Final = 10
# A line; longer ones are summaries.
TITLE_CHARS_MAX: Final = 500
# A long stack trace.
SIGNATURE_CHARS_MAX: Final = 100_000
SUMMARY_CHARS_MAX: Final = 20_000
NOTES_CHARS_MAX: Final = 4_000
# A fix is tried by a person or an agent, one step after the other.
STEPS_MAX: Final = 100
STEP_CHARS_MAX: Final = 10_000
# A log as it is pasted: the error is found in it.
LOG_CHARS_MAX: Final = 10_000_000
# Older outcomes weigh little; reading more of one fix would only cost time.
OUTCOMES_READ_MAX: Final = 2_000

# What a concept is called fits on a line; what it means fits into the index.
CONCEPT_NAME_CHARS_MAX: Final = 200
EXPLANATION_CHARS_MAX: Final = 100_000
# Areas, topics and subtopics are headings.
PLACE_CHARS_MAX: Final = 100
CONCEPTS_DEFAULT: Final = 20
# More rows than this are read by nobody.
CONCEPTS_MAX: Final = 100
RELATED_MAX: Final = 50
# A learning path longer than this is a curriculum.
PREREQUISITE_DEPTH_DEFAULT: Final = 3
PREREQUISITE_DEPTH_MAX: Final = 5
# The nearest of them; an answer with more would not fit into a conversation.
PREREQUISITES_MAX: Final = 1_000
PATH_DEPTH_DEFAULT: Final = 5
# Concepts farther apart than this have nothing to do with each other.
PATH_DEPTH_MAX: Final = 10
# A cycle of prerequisites is looked for this far; a longer chain cannot be walked anyway.
CYCLE_DEPTH_MAX: Final = 10_000
# Relationships that one step of a walk reads, however well connected a concept is.
LINKS_READ_MAX: Final = 20_000
# When a concept is deleted, so many of its neighbours have their certainty computed anew.
CERTAINTY_NEIGHBOURS_MAX: Final = 1_000
# A history with more versions begins with the newest of them.
REVISIONS_READ_MAX: Final = 1_000

# Said in a few words; free fields beyond this and longer texts are cut, never refused.
ENV_FIELDS_MAX: Final = 64
ENV_VALUE_CHARS_MAX: Final = 128
