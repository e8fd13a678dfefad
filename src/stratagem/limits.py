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

# Several copies of a value are in memory while it is written and indexed.
VALUE_BYTES_MAX: Final = 4 * 1024 * 1024
# Deeper than any document people write, far below the recursion limit of any parser.
VALUE_DEPTH_MAX: Final = 64
# JSON integers beyond 64 bits are read differently by every client.
INTEGER_MIN: Final = -(2**63)
INTEGER_MAX: Final = 2**64 - 1

# An export of another tool is one JSON document, and read whole; the largest seen has 200 MB.
IMPORT_BYTES_MAX: Final = 512 * 1024 * 1024
# Files of a watched folder: the time of each is read at every check.
WATCHED_FILES_MAX: Final = 50_000

# One transaction holds the write lock for all of its items.
ITEMS_MAX: Final = 1_000
KEYS_MAX: Final = 1_000
DECISIONS_MAX: Final = 10_000

# Nobody reads more hits than this, and the answer's budget would cut them anyway.
SEARCH_K_DEFAULT: Final = 10
SEARCH_K_MAX: Final = 50
# Each page is searched again from the top, and nobody reads pages this deep.
SEARCH_OFFSET_MAX: Final = 10_000
# Once so many matches were too weak to be hits, a search ends: those after them are weaker still.
SEARCH_WEAK_MAX: Final = 1_000
# A question, or a whole error message with its stack.
QUERY_CHARS_MAX: Final = 10_000
# Terms of a query that are considered; only the rarest of them are searched for.
QUERY_TERMS_MAX: Final = 256
# Enough to judge a hit by; the whole text is one recall away.
SNIPPET_CHARS: Final = 240
# Characters of the reply to a found message, or of the message that it replies to.
REPLY_CHARS: Final = 400
# Standing instructions in a status: the newest ones, and the beginning of each.
INSTRUCTIONS_MAX: Final = 10
INSTRUCTION_CHARS: Final = 200
# The searchable text of a value: all of it. Only an object that repeats long names of fields in
# every line has more, and the rest of that is stored but not searchable.
SEARCHED_CHARS_MAX: Final = VALUE_BYTES_MAX
# The parts by which a long text is found: a store numbers all passages of a log by 256 for each.
PASSAGES_MAX: Final = 256
# As much of a text is read at once: one that is not found by passage ends there for a search.
INDEXED_CHARS_MAX: Final = 100_000

# A page fits into an answer; the next one is a call away.
HISTORY_PAGE_DEFAULT: Final = 20
HISTORY_PAGE_MAX: Final = 100
LIST_PAGE_DEFAULT: Final = 50
LIST_PAGE_MAX: Final = 500

# Branches and merges that a graph of the branches can show.
MERGES_SHOWN_MAX: Final = 200
# Counting by author, kind and day, and finding conversations, looks at the newest ones: some tens
# of milliseconds, however many there are.
FACETS_ENTRIES_MAX: Final = 2_000
SESSIONS_EVENTS_MAX: Final = 2_000
# A list that is narrowed by author, kind or time is read until it is full, or so far.
FILTERED_ENTRIES_MAX: Final = 5_000
ACTIVITY_BUCKETS_DEFAULT: Final = 60
ACTIVITY_BUCKETS_MAX: Final = 500

# A list shows only the beginning of a value; the whole value is read by its key.
LIST_VALUE_CHARS: Final = 300
# Who reads a session reads what was said; of a longer message the rest is read by its sequence.
SESSION_MESSAGE_CHARS: Final = 4_000

# The size of an answer that leaves room for a conversation in a model's context.
ANSWER_CHARS_DEFAULT: Final = 20_000
ANSWER_CHARS_MIN: Final = 500
ANSWER_CHARS_MAX: Final = 1_000_000
# The same for a program: the longest page of the largest values that anybody will wait for.
ANSWER_CHARS_WHOLE: Final = 64 * 1024 * 1024

# Written by hand: longer ones are a mistake.
JSONPATH_CHARS_MAX: Final = 512
TIME_WORDS_CHARS_MAX: Final = 64
# A hundred years: anything longer is a mistake in the unit.
TTL_SECONDS_MAX: Final = 100 * 366 * 24 * 3600

# A transaction has a time limit: the longer it is open, the likelier is a conflict, and a killed
# process cannot end its own. The longest limit is for imports by hand.
TRANSACTION_SECONDS_DEFAULT: Final = 60.0
TRANSACTION_SECONDS_MAX: Final = 3_600.0

# Vectors of one's own: no model that people use makes longer ones, and a group of them is one
# request. The name of a collection is part of the name of a space.
VECTOR_DIMENSIONS_MAX: Final = 8_192
VECTORS_AT_ONCE_MAX: Final = 1_000
COLLECTION_CHARS_MAX: Final = 64
# More neighbours than this are a scan of the collection.
VECTOR_K_MAX: Final = 1_000
# A field of metadata is a row of an index, and so is each element of a list in it.
METADATA_FIELDS_MAX: Final = 64
# Numbers beyond this are compared by reading them: an index holds no longer ones exactly.
METADATA_NUMBER_MAX: Final = 2**53
# A filter is written by hand or by a model.
FILTER_CONDITIONS_MAX: Final = 32
FILTER_VALUES_MAX: Final = 1_000
# Texts that are embedded in one call while others wait.
EMBED_TEXTS_MAX: Final = 256
EMBED_CHARS_MAX: Final = 200_000
# What a model is asked at once, how long its answer may be and how long it is waited for.
PROMPT_CHARS_MAX: Final = 200_000
GENERATED_TOKENS_DEFAULT: Final = 512
GENERATED_TOKENS_MAX: Final = 32_768
GENERATION_SECONDS: Final = 120.0
# Tokens that are turned back into text at once.
TOKENS_MAX: Final = 100_000
# Erasing rebuilds the read models and holds all sequences in memory; the next call continues.
RETENTION_VERSIONS_MAX: Final = 100_000

# Lineage deeper than this makes every read slow; a merge flattens it.
LINEAGE_DEPTH_MAX: Final = 64

# How long a write waits for another process before it fails with `storage_busy`.
LOCK_WAIT_SECONDS: Final = 30.0
# If the recorded time of the log is ahead of the clock by more than this, a warning says so:
# synchronised clocks differ by less. The SQL of both stores has the same number, in an index and in
# `sequence_ahead`.
CLOCK_AHEAD_SECONDS: Final = 1.0
# How many concurrent writes share one commit.
GROUP_COMMIT_MAX: Final = 256

# A request over HTTP or stdio: the largest value several times over, and no more memory.
REQUEST_BYTES_MAX: Final = 16 * 1024 * 1024
# Bodies up to this size are parsed on the event loop, in a millisecond or two. Larger ones are
# parsed in a thread, one at a time and callers in turn, with a pause of so many times the parsing
# time, because parsing holds the interpreter lock.
REQUEST_INLINE_BYTES: Final = 64 * 1024
LARGE_REQUEST_REST: Final = 3.0
# Each takes some kilobytes; the least recently used one is ended for a new one.
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
# Lists of the debugging memory are read a page at a time.
RECORDS_LISTED_DEFAULT: Final = 20
RECORDS_LISTED_MAX: Final = 100
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
# A walk reads the nearest so many of them, at any depth, to put them in order.
PREREQUISITES_MAX: Final = 2_000
# Concepts of one name that an error lists.
NAMESAKES_READ_MAX: Final = 50
# Names that are compared with a misspelt one, so that a miss is cheap in a graph of any size.
NAMES_COMPARED_MAX: Final = 500
# Where something was learnt fits on a few lines; types of relationship are a small vocabulary.
SOURCE_CHARS_MAX: Final = 1_000
LABELS_MAX: Final = 200
# The size of a context that is put into a prompt: the least that can be asked for, and the default.
CONTEXT_CHARS_MIN: Final = 500
CONTEXT_CHARS_DEFAULT: Final = 6_000
# Sources that are counted for and against one concept: the newest.
EVIDENCE_READ_MAX: Final = 200
# A review looks at so many concepts, compares the meaning of so many, and lists so many of a kind.
REVIEWED_MAX: Final = 20_000
COMPARED_MAX: Final = 2_000
REVIEW_ITEMS_MAX: Final = 100
# A concept that nobody has touched or confirmed for so long is worth a look.
STALE_DAYS_DEFAULT: Final = 365
STALE_DAYS_MAX: Final = 36_500
# A learner is called like a person or a group; so many concepts are marked as known together.
LEARNER_CHARS_MAX: Final = 200
KNOWN_MAX: Final = 1_000
# A list is paged through this far; a collection is exported, or searched with narrower words.
CONCEPTS_OFFSET_MAX: Final = 1_000_000
PATH_DEPTH_DEFAULT: Final = 5
# Concepts farther apart than this have nothing to do with each other.
PATH_DEPTH_MAX: Final = 10
# A cycle of prerequisites is looked for this far; a longer chain cannot be walked anyway.
CYCLE_DEPTH_MAX: Final = 10_000
# Relationships that one step of a walk reads, however well connected a concept is.
LINKS_READ_MAX: Final = 20_000
# Concepts in one picture. At the default every name is read without zooming; at the most a browser
# still draws and moves it without delay.
PICTURE_CONCEPTS_DEFAULT: Final = 200
PICTURE_CONCEPTS_MAX: Final = 1_000
# What the details of a picture show of an explanation; a thousand of them are half a megabyte.
PICTURE_EXPLANATION_CHARS: Final = 500
# When a concept is deleted, the certainty of this many neighbours is computed again.
CERTAINTY_NEIGHBOURS_MAX: Final = 1_000
# A certainty that changes with time is stored for so many changes, the latest ones; the time before
# them has the value just before the first of them. A hundred relationships with a period have two
# hundred.
CERTAINTY_MOMENTS_MAX: Final = 400
# A history with more versions begins with the newest of them.
REVISIONS_READ_MAX: Final = 1_000

# Said in a few words; free fields beyond this and longer texts are cut, never refused.
ENV_FIELDS_MAX: Final = 64
ENV_VALUE_CHARS_MAX: Final = 128
# The variables of a whole process fit; every outcome keeps one and is read with it.
ENV_BYTES_MAX: Final = 65_536

# Names of tools are chosen by models: every provider takes these.
TOOL_NAME_CHARS_MAX: Final = 64
TOOL_DESCRIPTION_CHARS_MAX: Final = 4_000
TOOL_LONG_DESCRIPTION_CHARS_MAX: Final = 50_000
TOOL_LABEL_CHARS_MAX: Final = 100
TOOL_EXAMPLES_MAX: Final = 20
# A definition is read for every call and sent to every client.
TOOL_BYTES_MAX: Final = 512 * 1024
SCHEMA_BYTES_MAX: Final = 256 * 1024
TOOLS_LISTED_DEFAULT: Final = 50
TOOLS_LISTED_MAX: Final = 500
# As many as one can act upon at once.
VIOLATIONS_MAX: Final = 10
# Rules of a schema that apply to one value, with references expanded. Large schemas of public
# servers have some hundreds; each is evaluated, and an error is kept for each that fails.
SCHEMA_EXPANSION_MAX: Final = 5_000
# Schemas for one value that are reached through each other. The validator calls itself for each
# of them at each level of the arguments, so the product of both is bounded too.
SCHEMA_HEIGHT_MAX: Final = 64
VALIDATION_DEPTH_MAX: Final = 4_096
# Steps of all patterns of a schema, their repetitions written out: each takes memory once, and
# reads each character.
PATTERN_STATES_MAX: Final = 20_000
# Evaluations of one call, and characters times steps of its patterns: half a second at most.
EVALUATIONS_MAX: Final = 10_000_000
# Pairs of schema and value that are counted one by one, where a multiplication proves too much:
# a tenth of a second of Python.
EVALUATION_PAIRS_MAX: Final = 100_000
# The validator collects every error before it tells the first, each with a copy of its value.
VIOLATIONS_BYTES_MAX: Final = 32 * 1024 * 1024
# A person waits this long; longer work is a job, not a call.
EXECUTION_SECONDS_DEFAULT: Final = 30.0
EXECUTION_SECONDS_MAX: Final = 600.0
# How often a failed call is repeated at most.
RETRIES_MAX: Final = 10
# Calls that run at once, in all and of one tool; more wait in the order of their priority.
EXECUTIONS_AT_ONCE_MAX: Final = 256
TOOL_CONCURRENCY_DEFAULT: Final = 64
# Calls that wait; one more is refused, for it would only time out.
EXECUTIONS_WAITING_MAX: Final = 10_000
# Of one tool by one caller, where the tool sets no limit of its own.
CALLS_PER_MINUTE_DEFAULT: Final = 6_000
# A model reads less than this of any answer.
OUTPUT_BYTES_DEFAULT: Final = 1024 * 1024
OUTPUT_BYTES_MAX: Final = 16 * 1024 * 1024
# Of the processor. Masking is linear, so only very long texts take more; one whose time is over
# is replaced as a whole.
MASKING_SECONDS: Final = 5.0
# Larger results are kept apart from the record of their execution.
RESULT_INLINE_BYTES: Final = 16 * 1024
# An answer that is older than this may no longer be true.
CACHE_SECONDS_DEFAULT: Final = 3600.0
CACHE_BYTES_DEFAULT: Final = 100 * 1024 * 1024
CACHE_BYTES_MAX: Final = 4 * 1024 * 1024 * 1024
# Failures in a row after which the breaker of a tool opens, and for how long.
BREAKER_FAILURES: Final = 5
BREAKER_SECONDS: Final = 30.0
# For how long an open breaker of another process is shown: one that was killed never closes it.
BREAKER_NOTE_SECONDS: Final = 3600.0
# Breakers at a time, with names of hosts that callers choose; the oldest that is closed goes first.
BREAKERS_MAX: Final = 1_000
CIRCUIT_CHARS_MAX: Final = 320
# How many executions wait at most, and how long, before they are written together.
RECORDS_TOGETHER_MAX: Final = 500
RECORD_SECONDS: Final = 0.1
# Work that takes longer is noted in the database, where every process finds it, and looked after as
# often: whether another process has asked to cancel it.
WORK_LOOK_SECONDS: Final = 0.5
# A process says this often that it goes on with its work; one that was silent for long is gone.
WORK_SEEN_SECONDS: Final = 60.0
WORK_LOST_SECONDS: Final = 150.0
# A named set of tools: how many patterns it has, and how many sets there are.
TOOL_SET_PATTERNS_MAX: Final = 500
TOOL_SETS_MAX: Final = 200
# How long a person's approval of a call can be used.
APPROVAL_SECONDS: Final = 24 * 3600.0
# Calls that wait for a person; more of one caller are refused without being noted.
APPROVALS_WAITING_MAX: Final = 50
# More work than this is not listed at once.
WORK_LISTED_MAX: Final = 500
EXECUTIONS_LISTED_DEFAULT: Final = 20
EXECUTIONS_LISTED_MAX: Final = 500
# The newest executions of a tool, from which its speed is computed.
EXECUTIONS_MEASURED: Final = 1_000
# Arguments and results of calls are kept for this long; the fact of a call is kept for good.
EXECUTION_DAYS_KEPT: Final = 90
# A hundred years: in practice, all of them.
EXECUTION_DAYS_KEPT_MAX: Final = 36_500
# Of one pass: each is looked up with its copies, and all of them are erased in one transaction.
EXECUTIONS_ERASED_MAX: Final = 20_000
# How often old executions are erased.
RETENTION_SECONDS: Final = 24 * 3600.0
# Tools with figures of their own on the page that Prometheus reads; the rest are counted as one.
METRIC_TOOLS_MAX: Final = 1_000
# A value that meets a pattern with look-around: a tenth of a second at most.
LOOK_AROUND_BYTES_MAX: Final = 16_384
BATCH_MAX: Final = 100
RESOURCE_CHARS_MAX: Final = 1_000_000
VARIABLES_MAX: Final = 200

# Upstream servers. Connections and processes live as long as the gateway: each costs memory.
UPSTREAM_SERVERS_MAX: Final = 200
# What is typed on one line, and what an operating system takes without complaint.
UPSTREAM_ARGS_MAX: Final = 256
UPSTREAM_TEXT_CHARS_MAX: Final = 32_768
# A list of thousands of tools in one message; a longer one ends the connection.
UPSTREAM_MESSAGE_BYTES_MAX: Final = 32 * 1024 * 1024
# A server with more tools or pages than this is faulty.
UPSTREAM_TOOLS_MAX: Final = 5_000
UPSTREAM_PAGES_MAX: Final = 500
# What MCP allows; a name in our registry is shorter.
UPSTREAM_NAME_CHARS_MAX: Final = 128
UPSTREAM_TITLE_CHARS_MAX: Final = 200
# Pictures of a tool, each mostly an address; they are sent with every list of tools.
UPSTREAM_ICONS_MAX: Final = 4
UPSTREAM_ICON_CHARS_MAX: Final = 8_192
# Prompts, resources or templates of a server: what a client can list at once.
UPSTREAM_PRIMITIVES_MAX: Final = 2_000
UPSTREAM_URI_CHARS_MAX: Final = 2_048
# Templates that are kept as parsed; a long one takes much memory so, and is parsed at each use.
UPSTREAM_TEMPLATES_PARSED: Final = 4_000
UPSTREAM_TEMPLATE_PARSED_CHARS: Final = 200
# What a prompt or a resource says, with pictures in it.
UPSTREAM_CONTENT_BYTES_MAX: Final = 8 * 1024 * 1024
# How long a list waits for servers that are not connected yet; they are listed when they are.
UPSTREAM_PRIMITIVES_SECONDS: Final = 2.0
# Resources that the clients of a gateway follow, at each server.
UPSTREAM_SUBSCRIPTIONS_MAX: Final = 1_000
# How soon MCP clients are told of what another process did to the registry.
CHANGES_LOOK_SECONDS: Final = 1.0
# A call of an MCP client that knows tasks is answered with a handle if it takes longer: most calls
# end sooner, and a handle costs the client a request more.
TASK_AFTER_SECONDS: Final = 2.0
# How often such a client should ask, how long it may at least ask what came of the call, and how
# many such calls a process runs at most; others are waited for.
TASK_POLL_SECONDS: Final = 1.0
TASK_SECONDS: Final = 24 * 3600.0
TASKS_MAX: Final = 1_000
# How long a person may take to answer a question during a call.
QUESTION_SECONDS_MAX: Final = 300.0
# How often a server may ask during one call, and calls that wait for an answer.
QUESTION_ROUNDS_MAX: Final = 10
QUESTIONS_OPEN_MAX: Final = 200
# A process that has to be fetched first (npx) starts slowly.
UPSTREAM_CONNECT_SECONDS: Final = 60.0
UPSTREAM_LIST_SECONDS: Final = 60.0
# After a failed start: the first wait, doubled each time, and the longest one.
UPSTREAM_BACKOFF_SECONDS_MIN: Final = 0.5
UPSTREAM_BACKOFF_SECONDS_MAX: Final = 30.0
# Not every server tells of changes: a list older than this is read again beside the next call.
UPSTREAM_LIST_AGE_SECONDS: Final = 300.0
# The list of a server that constantly reports changes is read again at this interval.
UPSTREAM_RELIST_SECONDS: Final = 0.5
# The last output of a process, enough to see why it ended.
UPSTREAM_STDERR_LINES: Final = 20
UPSTREAM_STDERR_LINE_CHARS: Final = 500
# How long a process may take to end by itself, and then after being told to.
UPSTREAM_END_SECONDS: Final = 2.0
# The message of a failed tool, as much as anybody reads.
UPSTREAM_ERROR_CHARS_MAX: Final = 4_000

# An expression is written by hand, and says in a line what it picks.
EXPRESSION_CHARS_MAX: Final = 2_000
# What evaluating one expression may cost, in nodes looked at: about a second.
EXPRESSION_WORK_MAX: Final = 1_000_000
# A pipeline is read and written as a whole; more steps are two pipelines.
PIPELINE_STEPS_MAX: Final = 100
# Each item is a call of its own, with an event of its own.
PIPELINE_ITEMS_MAX: Final = 1_000
# Items of one step that run at once.
PIPELINE_PARALLEL_DEFAULT: Final = 4
PIPELINE_PARALLEL_MAX: Final = 16
PIPELINE_ATTEMPTS_MAX: Final = 10
PIPELINE_BACKOFF_SECONDS_DEFAULT: Final = 1.0
# A longer wait between two attempts is a schedule, not a retry.
PIPELINE_BACKOFF_SECONDS_MAX: Final = 300.0
PIPELINE_STEP_SECONDS_MAX: Final = 3_600.0
# The definition is kept with each run of it.
PIPELINE_BYTES_MAX: Final = 256 * 1024

# Python functions that are no coroutines run in threads of their own.
TOOL_THREADS_MAX: Final = 32
# A thread that cannot be stopped is abandoned; with so many of them no new call is accepted.
TOOL_THREADS_ABANDONED_MAX: Final = 16
# How long a stopped function has to let go before its thread is left behind.
TOOL_THREAD_GRACE_SECONDS: Final = 1.0
# What is shown of an exception, or of what a program wrote before it failed.
FAILURE_CHARS_MAX: Final = 2_000

# A formula, not a program.
CALCULATION_CHARS_MAX: Final = 2_000
CALCULATION_DEPTH_MAX: Final = 50
# Python writes integers of up to 4,300 digits; so does this leave room for a fraction's halves.
CALCULATION_BITS_MAX: Final = 13_000
CALCULATION_PLACES_MAX: Final = 1_000
# Its factorial has 2,568 digits.
FACTORIAL_MAX: Final = 1_000
# Days counted one by one: over a hundred years.
BUSINESS_DAYS_MAX: Final = 40_000
HOLIDAYS_MAX: Final = 1_000
# Text that is parsed in Python, several times its size in memory.
CONVERTED_CHARS_MAX: Final = 1_000_000
# Steps of one transformation.
TRANSFORMATIONS_MAX: Final = 50

# Processes that parse untrusted files. Libraries for documents and code take some 300 MB of address
# space at their start.
CHILD_MEMORY_BYTES_MAX: Final = 2 * 1024 * 1024 * 1024
CHILD_OUTPUT_BYTES_MAX: Final = 16 * 1024 * 1024
# A file that is given as base64 within the arguments of a call, and what it may unpack to.
DOCUMENT_BASE64_CHARS_MAX: Final = 8_000_000
DOCUMENT_EXPANDED_BYTES_MAX: Final = 64 * 1024 * 1024
DOCUMENT_ROWS_MAX: Final = 100_000
DOCUMENT_SECONDS_MAX: Final = 20.0
# Search providers give at most 20 to 50 results a page; a query of more words finds nothing.
SEARCH_QUERY_CHARS_MAX: Final = 400
SEARCH_RESULTS_MAX: Final = 50
SEARCH_SNIPPET_CHARS_MAX: Final = 2_000
# A page is parsed in memory at ten times its size; its text is read by a model.
PAGE_BYTES_MAX: Final = 4 * 1024 * 1024
PAGE_CHARS_MAX: Final = 200_000
PAGE_EXCERPT_CHARS_MAX: Final = 10_000
PAGE_LINKS_MAX: Final = 200
# A page that is larger is read in a process that can be killed: the time it takes may grow with the
# square of its size, and reaches half a second here.
PAGE_INLINE_BYTES: Final = 64 * 1024
# Texts that are analysed sentence by sentence, in Python; a summary compares each with each.
ANALYSED_CHARS_MAX: Final = 200_000
SENTENCE_CHARS_MAX: Final = 5_000
SUMMARY_CHARS_READ_MAX: Final = 500_000
SUMMARY_SENTENCES_READ_MAX: Final = 3_000
ENTITIES_MAX: Final = 2_000
# Code that is read at once: about ten thousand lines, or a small repository.
CODE_CHARS_MAX: Final = 1_000_000
CODE_FILES_MAX: Final = 500
CODE_ISSUES_MAX: Final = 1_000
CODE_SECONDS_MAX: Final = 50.0
CODE_RESULT_BYTES_MAX: Final = 8 * 1024 * 1024
REPOSITORY_BYTES_MAX: Final = 16 * 1024 * 1024
# What is sent to a model; longer than the context of most.
MODEL_PROMPT_CHARS_MAX: Final = 400_000
# Made-up rows, and rows that are analysed in Python.
SYNTHETIC_ROWS_MAX: Final = 10_000
ANALYSED_ROWS_MAX: Final = 100_000
ANALYSED_COLUMNS_MAX: Final = 200
# A query for a model to read; what a writable database may grow to in one statement.
SQL_CHARS_MAX: Final = 50_000
QUERY_ROWS_MAX: Final = 5_000
QUERY_FILE_BYTES_MAX: Final = 4 * 1024 * 1024 * 1024
# Most services take events of up to a megabyte, and most mail servers ten.
WEBHOOK_BYTES_MAX: Final = 1024 * 1024
WEBHOOK_ANSWER_BYTES_MAX: Final = 64 * 1024
MAIL_BYTES_MAX: Final = 10 * 1024 * 1024
MAIL_SECONDS_MAX: Final = 30.0
# Files of granted folders are read and written as a whole, and shown to a model by lines.
FILE_BYTES_MAX: Final = 5 * 1024 * 1024
FILE_LINES_SHOWN_MAX: Final = 2_000
FILE_PATH_CHARS_MAX: Final = 1_000
FOLDER_ENTRIES_MAX: Final = 2_000
FOLDER_FILES_MAX: Final = 20_000
# Connections are all read whenever one of them changes.
NAMED_CONNECTIONS_MAX: Final = 200

# Outbound HTTP: an answer is held in memory, parsed and recorded.
OUTBOUND_BYTES_DEFAULT: Final = 4 * 1024 * 1024
OUTBOUND_BYTES_MAX: Final = 32 * 1024 * 1024
OUTBOUND_SECONDS_DEFAULT: Final = 30.0
OUTBOUND_SECONDS_MAX: Final = 600.0
# A service that has not taken the connection by then will not; other addresses are tried instead.
OUTBOUND_CONNECT_SECONDS: Final = 10.0
# Real services need one or two hops; a longer chain is a loop.
OUTBOUND_REDIRECTS_MAX: Final = 5
# Longer ones are refused by most servers.
OUTBOUND_URL_CHARS_MAX: Final = 8_192
OUTBOUND_HEADERS_MAX: Final = 100
OUTBOUND_HEADER_CHARS_MAX: Final = 8_192
# Open files; a waiting call gets its turn when another one ends.
OUTBOUND_CONNECTIONS_MAX: Final = 256
OUTBOUND_IDLE_CONNECTIONS_MAX: Final = 64
OUTBOUND_IDLE_SECONDS: Final = 60.0
# A name with more addresses than this is not the name of a service.
OUTBOUND_ADDRESSES_MAX: Final = 32
# Parts of one compressed answer; each costs a copy of what follows it.
OUTBOUND_GZIP_PARTS_MAX: Final = 256
# The body of a failing service, as much as helps to understand the failure.
OUTBOUND_EXCERPT_CHARS: Final = 2_000
# Hosts that an operator allows outbound requests to.
ALLOWED_HOSTS_MAX: Final = 1_000

# The largest public OpenAPI documents have 10 MB and some 2,000 operations.
OPENAPI_BYTES_MAX: Final = 16 * 1024 * 1024
OPENAPI_NODES_MAX: Final = 1_000_000
OPENAPI_DEPTH_MAX: Final = 200
OPENAPI_OPERATIONS_MAX: Final = 5_000
# Nodes of one tool's schema; what lies beyond takes any value. A model reads no more either.
OPENAPI_SCHEMA_NODES_MAX: Final = 1_000
OPENAPI_SCHEMA_DEPTH_MAX: Final = 24
OPENAPI_DESCRIPTION_CHARS_MAX: Final = 2_000
OPENAPI_WARNINGS_MAX: Final = 100

# What code in the sandbox gets when nobody says, and what may be asked for. Below the least
# memory no interpreter does anything useful; the most leaves room for the server beside it.
SANDBOX_MEMORY_BYTES_DEFAULT: Final = 256 * 1024 * 1024
SANDBOX_MEMORY_BYTES_MIN: Final = 16 * 1024 * 1024
SANDBOX_MEMORY_BYTES_MAX: Final = 4 * 1024 * 1024 * 1024
SANDBOX_SECONDS_DEFAULT: Final = 30.0
SANDBOX_SECONDS_MIN: Final = 0.001
SANDBOX_SECONDS_MAX: Final = 600.0
# Code that is longer is a program, and belongs into a file of the working directory.
SANDBOX_CODE_BYTES_MAX: Final = 256 * 1024
# Inputs, standard input and environment are held in memory by the server.
SANDBOX_INPUT_BYTES_MAX: Final = 4 * 1024 * 1024
# For each of standard output, standard error and the result; a run that gives more is ended.
SANDBOX_OUTPUT_BYTES_MAX: Final = 1024 * 1024
# The private /tmp lies in memory; a larger file anywhere is refused to the code.
SANDBOX_FILE_BYTES_MAX: Final = 64 * 1024 * 1024
SANDBOX_OPEN_FILES_MAX: Final = 256
# Processes and threads together: Node alone starts eleven threads.
SANDBOX_PROCESSES_MAX: Final = 64
# From starting the sandbox until the code begins; the code's own time is counted from there.
SANDBOX_START_SECONDS_MAX: Final = 10.0

# A correction looks at each place a few times; beyond this the call is refused, not searched.
CORRECTION_STEPS_MAX: Final = 20_000
# Of the processor. Nearly all corrections take a millisecond; one that takes longer goes on in a
# thread, and is given up when its time is over.
CORRECTION_INLINE_SECONDS: Final = 0.02
# Longer arguments are corrected in a thread from the start.
CORRECTION_INLINE_BYTES_MAX: Final = 1024
CORRECTION_SECONDS: Final = 2.0
# Arguments are small; text that is repaired is read by Python, character by character.
CORRECTION_BYTES_MAX: Final = 4 * 1024 * 1024
CORRECTION_REPAIRED_CHARS_MAX: Final = 256 * 1024
# Conversions that are tried one after the other at one place: JSON in text in a list, and more.
CORRECTION_CHAIN_MAX: Final = 5
# Evaluations that a call may take once to be corrected: correcting holds it against the schema
# many times over.
CORRECTION_EVALUATIONS_MAX: Final = 2_000_000
# Objects and lists in arguments of a schema that contains itself in several ways at one place.
CORRECTION_LEVELS_MAX: Final = 8
# As many as a caller would look at.
CORRECTION_CANDIDATES_MAX: Final = 8
CORRECTION_FAULTS_MAX: Final = 32
# More parameters than this are compared by their style only, not letter by letter.
CORRECTION_SPELLED_MAX: Final = 500
# A schema of a few kilobytes each, kept ready; the one used longest ago goes first.
CORRECTION_SCHEMAS_KEPT: Final = 512
# The document's presets go up to 10.
CORRECTION_RETRIES_MAX: Final = 10

# Corrections on the path. A tool whose corrections failed so often in a row is left uncorrected
# for the document's five minutes; as long are the attempts of one caller taken together.
CORRECTION_BREAKER_FAILURES: Final = 3
CORRECTION_BREAKER_SECONDS: Final = 300.0
# The document's cache of corrections.
CORRECTION_CACHE_MAX: Final = 1_000
CORRECTION_CACHE_SECONDS: Final = 3600.0
# Arguments longer than this are not kept in memory: thousands are, of whoever calls.
CORRECTION_KEPT_BYTES_MAX: Final = 16 * 1024
# The settings of a policy, with its lists of tools; it is read for each correction.
CORRECTION_SETTINGS_BYTES_MAX: Final = 64 * 1024
# As many as a caller would choose from.
CORRECTIONS_OFFERED_MAX: Final = 5
# How a pattern does now shows in its newest outcomes; older ones are history.
CORRECTION_OUTCOMES_RECENT: Final = 10
CORRECTION_OUTCOMES_DAYS: Final = 7
# Figures of a time with more corrections than this are of the newest ones, and say so.
CORRECTIONS_READ_MAX: Final = 20_000
# What a tool is usually called with shows in this many calls.
PROFILE_CALLS_MAX: Final = 500
PROFILE_PATHS_MAX: Final = 200
# Of one set of test cases, or one backup of patterns.
CORRECTION_TESTS_MAX: Final = 200
PATTERNS_RESTORED_MAX: Final = 5_000
# Evidence beyond this changes a belief by less than a hundredth.
PATTERN_EVIDENCE_RESTORED_MAX: Final = 100
# One or two failures may be chance; the third of a kind is drafted as an incident.
FAILURES_NOTED: Final = 3
# Records of a tool that are looked through for what another process saw of the same.
EXECUTIONS_RECALLED_MAX: Final = 200
# A success later than this is not credited to the fix that was given.
FIX_CREDITED_HOURS: Final = 24
# The lookup of a known fix delays an error by no more than this.
ADVICE_SECONDS: Final = 2.0

# How often an item that an external read model refuses is tried, over some minutes.
OUTBOX_ATTEMPTS_MAX: Final = 8
# The first wait, which then doubles; and the longest.
OUTBOX_DELAY_SECONDS: Final = 0.5
OUTBOX_DELAY_SECONDS_MAX: Final = 120.0
# One request holds so many items: large enough to be quick, small enough to be sent again.
OUTBOX_BATCH: Final = 200
# An item that waits for another one is checked again after this.
OUTBOX_BLOCKED_SECONDS: Final = 2.0
# Longer than one batch takes with its time-outs; a process that died is replaced after it.
OUTBOX_LEASE_SECONDS: Final = 30.0
# How soon a process sees what another one wrote; its own writes wake it at once.
OUTBOX_POLL_SECONDS: Final = 1.0
# Of an error that much is kept with its row.
OUTBOX_ERROR_CHARS: Final = 500
# Rows and differences that a command shows; the numbers are of all of them.
OUTBOX_SHOWN_MAX: Final = 100
# A service that has not answered by then is taken to be down.
SERVICE_TIMEOUT_SECONDS: Final = 10.0
SERVICE_CONNECT_SECONDS: Final = 3.0

# PostgreSQL. How long a server may take to answer before it counts as away.
SERVER_WAIT_SECONDS: Final = 10
# For readers, and again for writers, of all workspaces of a process: one for each call at once, and
# some for what goes on in the background.
SERVER_CONNECTIONS_MAX: Final = 20
# Connections that nobody used for so long are closed; a server has few to give.
SERVER_IDLE_SECONDS: Final = 60.0
# More subtransactions than this spill out of shared memory and slow every reader down.
SERVER_GROUP_MAX: Final = 60
# Fewer vectors than this are all compared: an index would more than double the server's work for a
# write, and searches would take no less time.
SERVER_EXACT_VECTORS_MAX: Final = 20_000
# Typed, and part of every address.
WORKSPACE_NAME_CHARS_MAX: Final = 64

# Providers' formats. What all of them take as the name of a tool.
PROVIDER_NAME_CHARS_MAX: Final = 64
# More is refused by OpenAI; the others take it, and a model reads no more of it.
PROVIDER_DESCRIPTION_CHARS_MAX: Final = 1_024
# More tools than this are refused by OpenAI, xAI and Gemini; Anthropic names no number.
PROVIDER_TOOLS_MAX: Final = 128
PROVIDER_TOOLS_ANTHROPIC_MAX: Final = 10_000
# One answer of a model calls a handful; a longer list is not the answer of a model.
PROVIDER_CALLS_MAX: Final = 1_000
# References of a schema are put in place for Gemini up to this depth, and this many in all.
PROVIDER_SCHEMA_DEPTH_MAX: Final = 12
PROVIDER_SCHEMA_PARTS_MAX: Final = 5_000

# The name of a token is shown in tables and is part of the actor of events.
TOKEN_NAME_CHARS_MAX: Final = 64
# A revoked token is refused by every process after this: half of the second that is promised.
TOKEN_CHECK_SECONDS: Final = 0.5
# The default rate of a token: more than an agent needs, less than a server can handle.
TOKEN_REQUESTS_PER_MINUTE: Final = 6_000
# The burst of a token, so that a short peak of work is not delayed.
TOKEN_REQUESTS_BURST: Final = 200
# A token's requests that are under way together, and its streams and sockets that stay open. Calls
# of tools mostly wait, and an agent makes dozens at once; whose work runs next is decided apart.
TOKEN_REQUESTS_AT_ONCE: Final = 64
TOKEN_STREAMS_MAX: Final = 64
# Open requests, streams and sockets of all callers together; each holds memory and a file.
SERVER_REQUESTS_MAX: Final = 1_000
# Sockets that have not said who they are, and how long they have to: a browser takes a fraction
# of a second. One more ends the oldest of the address that has most of them.
UNKNOWN_SOCKETS_MAX: Final = 64
UNKNOWN_SOCKET_SECONDS: Final = 5.0
# The size of a message before authentication: a token, even one of an OAuth issuer, and the name of
# a workspace.
UNKNOWN_SOCKET_BYTES_MAX: Final = 32 * 1024
# A refusal to a client that has to wait is delayed a little, since it would only ask again.
REFUSAL_PAUSE_SECONDS: Final = 0.25
REFUSALS_PAUSED_MAX: Final = 256
# Wrong tokens from one address within a minute, before it is told to wait.
WRONG_TOKENS_PER_MINUTE: Final = 60
# Refusals are written together after this time; beyond so many kinds they are only counted.
REFUSALS_WRITTEN_SECONDS: Final = 0.5
REFUSALS_WAITING_MAX: Final = 100
# Databases of workspaces that one server holds open.
WORKSPACES_OPEN_MAX: Final = 256
# A working day: people sign in again the next morning.
CONSOLE_SESSION_SECONDS: Final = 12 * 3600
# The address that opens the console without a token stands in a terminal, and perhaps in a log.
CONSOLE_CODE_SECONDS: Final = 30 * 60
# A form of the console: the largest value that is edited there, spelled as a form spells it.
CONSOLE_FORM_BYTES_MAX: Final = 4 * 1024 * 1024
# What a page of the console may spend on Markdown and on comparing words, in steps of about 50 ns;
# what would take longer is shown as plain text.
CONSOLE_PAGE_STEPS: Final = 10_000_000
# How soon a page shows what agents do; asking costs one look at the end of the log.
CONSOLE_LIVE_SECONDS: Final = 0.4
# Often enough that a proxy does not take a quiet stream for a dead one.
CONSOLE_SILENCE_SECONDS: Final = 15.0
# Counts over everything, as the console shows them: a page that is loaded again and again while
# nothing is written counts once.
CONSOLE_COUNTS_MAX: Final = 500
CONSOLE_COUNTS_SECONDS: Final = 5.0
# Branches that holders of tokens switched to, as far as they are remembered.
SWITCHED_KEPT_MAX: Final = 10_000

# While other callers are active, so many calls of one caller run at once.
CALLS_BESIDE_OTHERS_MAX: Final = 2
# A call that runs longer is taken to wait for something outside, and is not counted.
CALL_TURN_SECONDS: Final = 0.05
# A caller whose calls queue up while others are active pauses this many times as long as each call
# took.
CALL_REST: Final = 2.0
# A caller is active if it called within this time.
CALLER_ABOUT_SECONDS: Final = 1.0
# Beyond that many only how many there are at least is known, which is all that is asked.
CALLERS_ABOUT_MAX: Final = 10_000
# Connections of one process when nobody says, whether or not they ask for anything: each holds a
# file and some kilobytes. Where all are taken, one that waits for its client makes room.
CONNECTIONS_MAX: Final = 2_000
CONNECTIONS_MAX_MAX: Final = 100_000
# One address holds at most this share of them; a company behind one address fits.
CONNECTIONS_ADDRESS_SHARE: Final = 0.5
# Of the files that a process may open, this share and at least so many are not for connections:
# databases, processes of tools, outbound connections and the log need some.
FILES_RESERVED_SHARE: Final = 0.25
FILES_RESERVED_MIN: Final = 128
# Connections that the kernel holds until they are taken, and how many are taken at a time: what
# was taken before gets its turn in between.
CONNECTIONS_BACKLOG: Final = 1_024
CONNECTIONS_ACCEPTED_AT_ONCE: Final = 16
# When the system has no file left for a connection, the next attempt waits for this long.
ACCEPT_PAUSE_SECONDS: Final = 0.2
# From the connection to its first whole head of a request: a slow line takes a second or two.
HEAD_SECONDS: Final = 10.0
# Heads have one or two kilobytes; a token of an issuer adds up to 16.
HEAD_BYTES_MAX: Final = 64 * 1024
# Requests that are sent ahead are parsed out of so many bytes at a time. The shortest have 18
# bytes, and parsing one takes 20 microseconds, so that others wait for 5 milliseconds at most.
PARSED_AT_ONCE_BYTES: Final = 4 * 1024
# After so long others have their turn, however much has come.
PARSED_AT_ONCE_SECONDS: Final = 0.005
# A connection whose last request was answered is kept open for the next one.
KEEP_ALIVE_SECONDS: Final = 5
# A client that does not read its answer for this long is gone or malicious.
UNREAD_SECONDS: Final = 20.0
# A body has this long, and a second more for each so many bytes that have come: a modem is faster.
BODY_SECONDS: Final = 10.0
BODY_BYTES_PER_SECOND: Final = 8 * 1024
# The rest of a body whose request was answered already is discarded at this rate: the largest body
# of a single client takes a second, and many clients together take no more of the server's time.
UNWANTED_BYTES_PER_SECOND: Final = 16 * 1024 * 1024
# Requests whose bodies have not come yet; one more ends the oldest. Half of the places, so that
# the other half is left for those who say what they want.
BODIES_AWAITED_MAX: Final = 500
# A websocket that was told to close has this long to say that it does.
WEBSOCKET_CLOSE_SECONDS: Final = 2.0
# How often connections are looked at for what takes too long.
CONNECTIONS_CHECK_SECONDS: Final = 0.5
# The same warning is written so often within so many seconds; then it is only counted.
WARNINGS_ALIKE_MAX: Final = 5
WARNINGS_ALIKE_SECONDS: Final = 30.0
# A signal ends a server within the second time. Calls under way have the first to be answered.
STOPPING_CALL_SECONDS: Final = 2.0
STOPPING_SECONDS: Final = 3.0

# OAuth. Issuers' tokens have one or two kilobytes; headers of servers end at 16.
OAUTH_TOKEN_CHARS_MAX: Final = 16_384
# Clocks of two machines differ by less.
OAUTH_LEEWAY_SECONDS: Final = 30
# Keys are fetched again after this, and at the earliest after that when one is missing.
OAUTH_KEYS_SECONDS: Final = 600.0
OAUTH_KEYS_RETRY_SECONDS: Final = 10.0
OAUTH_KEYS_MAX: Final = 100
OAUTH_KEYS_BYTES_MAX: Final = 1024 * 1024
OAUTH_FETCH_SECONDS: Final = 10.0
# A checked token is taken again without checking for this long.
OAUTH_KEPT_SECONDS: Final = 60.0
OAUTH_KEPT_MAX: Final = 10_000

# A repeat of a call that is still under way elsewhere waits this long for its end: clients
# give up on an answer after about half a minute.
REPEAT_SECONDS_MAX: Final = 20.0

# Recommendation of tools. A call this long after a recommendation no longer follows from it.
RECOMMENDATION_FOLLOWED_SECONDS: Final = 600
# The newest recommendations whose outcomes are learned from; reading them takes a second.
RECOMMENDATIONS_LEARNED_MAX: Final = 5_000
# Nobody reads a longer list; five is what a model compares well.
RECOMMENDED_MAX: Final = 50
RECOMMENDED_DEFAULT: Final = 5
# As much of a request as is searched for.
INTENT_CHARS_MAX: Final = 10_000
# Tools that are looked at together.
TOOLS_CHECKED_MAX: Final = 200
TOOLS_COMPARED_MAX: Final = 20
# The newest executions that chains, examples and common errors are gathered from.
EXECUTIONS_STUDIED_MAX: Final = 2_000
# Steps of a workflow that is planned.
PLAN_STEPS_MAX: Final = 20
# Parts of a goal that tools are looked for, for each step there may be.
PLAN_PARTS_PER_STEP: Final = 3

# Read and written at once while a backup is unpacked: enough to be quick, little to hold.
BACKUP_CHUNK_BYTES: Final = 1024 * 1024
# The list of a backup's workspaces, which is read at once: some 100,000 of them.
BACKUP_LIST_BYTES_MAX: Final = 32 * 1024 * 1024
# What a process keeps to tell the others of its server: a burst of events, not a backlog.
CHANNEL_WAITING_MAX: Final = 10_000

# Each is looked at before every call.
GUARDRAILS_MAX: Final = 100
# What a guardrail may take: a caller waits for it, twice at worst.
GUARDRAIL_SECONDS_DEFAULT: Final = 5.0
GUARDRAIL_SECONDS_MAX: Final = 30.0
# The reason of a guardrail, in the error.
GUARDRAIL_REASON_CHARS_MAX: Final = 500

# What a span says of a tool, and of contents where somebody asks for them.
SPAN_DESCRIPTION_CHARS_MAX: Final = 500
SPAN_CONTENT_CHARS_MAX: Final = 8_000

# A secret is a key, a token or a certificate; what is longer is a file of something else.
SECRET_BYTES_MAX: Final = 64 * 1024
SECRETS_MAX: Final = 500
# A password manager may ask its server; a call waits for it.
SECRET_COMMAND_SECONDS: Final = 10.0
# Within this time a rotated secret is noticed, and a burst of calls asks the command once.
SECRET_COMMAND_KEPT_SECONDS: Final = 60.0
# A person signs in within this time; after it the address is worthless to anybody who finds it.
SIGN_IN_SECONDS: Final = 600
# Each step of a sign-in asks one or two documents of an authorization server.
SIGN_IN_REQUEST_SECONDS: Final = 15.0
# Users of upstream servers who have a connection, or a process, of their own at the same time.
UPSTREAM_USER_CONNECTIONS_MAX: Final = 100
