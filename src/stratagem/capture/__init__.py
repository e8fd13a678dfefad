"""Captured memory: taken from the hooks' spool into the log, and reviewed by people.

Hooks leave what a session said and did in small files beside the database (`spool_files`); `intake`
writes them into the log, in one transaction, before anybody reads. `review` lists what came in that
way and takes what a person decides about it.
"""
