"""Hooks: the programs that clients of coding agents call at each event, for an automatic memory.

`command` reads an event on standard input and answers in the client's form (`clients`). Two rules
hold for every event: the process ends well, with status 0 and within its time limit, whatever state
the database is in; and it starts nothing, leaves nothing running and blocks nothing.

The lean half answers prompts and failures: `prompt_recall` reads the database by plain SQL, `fixes`
a file of the best known fixes. It imports no CLI framework, no pydantic, no NumPy and no MCP, which
an import contract enforces. It writes no database either: captured events go to a spool of small
files (`session_files`), which the thorough half writes into the database in one transaction
(`capture`) at the end of a turn, or the next process that opens the database.
"""
