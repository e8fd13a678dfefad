"""The console: pages for people, made by the server from the operations that agents call too.

Each page has an address that is its state, and the same data as JSON: by `.json` at its end, or by
an `Accept` that asks for it. Nothing is loaded from elsewhere, and nothing that is stored ever
becomes markup. Only `application` is imported by servers, when the console is first asked for.
"""
