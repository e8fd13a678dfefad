"""Pipelines: tools called one after another, each with what the ones before it found.

`definition` reads and checks one, `machine` says what is to be done next and can begin anywhere,
`running` does it, `preview` tells it beforehand. `expressions` and `templates` are the language.
"""
