"""Memories of other tools, read so that they can be imported.

Each module knows the files of one tool. What a record was there (its id, its time, what else the
tool knew of it) is kept in the field `imported` of the entry or event that is made of it.
"""
