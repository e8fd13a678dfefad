"""Pipelines: tools called one after another, each with the results of the ones before it.

`definition` parses and checks a pipeline, `machine` computes the next calls from the events so
far, `runner` makes those calls, and `preview` is the dry run. `expressions` and `templates` are
the language in which arguments refer to earlier results.
"""
