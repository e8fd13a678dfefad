"""Developer mode: the granular operations of a database, beside the few that agents are shown.

Each is a view of what the other systems do (`kv` and `json` are entries, `event` the log, `space` a
namespace, `txn` the transactions of callers), or a kind of record of its own: state cells, and
vectors in collections.
"""
