-- The log: what cannot be made again from anything else.

CREATE TABLE settings (
    name  TEXT PRIMARY KEY,
    value ANY
) STRICT, WITHOUT ROWID;

-- Names are kept once and referred to by number: they recur in every event and version.
CREATE TABLE spaces (
    id        INTEGER PRIMARY KEY,
    kind      TEXT NOT NULL,
    namespace TEXT NOT NULL,
    UNIQUE (kind, namespace)
) STRICT;

CREATE TABLE subjects (
    id    INTEGER PRIMARY KEY,
    space INTEGER NOT NULL,
    key   TEXT NOT NULL,
    UNIQUE (space, key)
) STRICT;

CREATE TABLE events (
    -- Numbered by the appending transaction, one after another: a gap is a missing event.
    seq          INTEGER PRIMARY KEY,
    -- Never backwards, one value for each transaction: it tells transactions apart.
    at           INTEGER NOT NULL,
    -- What the clock really said.
    wall         INTEGER NOT NULL,
    branch       INTEGER NOT NULL,
    kind         TEXT NOT NULL,
    space        INTEGER,
    subject      INTEGER,
    actor        TEXT NOT NULL,
    request      TEXT,
    origin       INTEGER,
    -- The exact bytes that were hashed.
    payload      BLOB,
    salt         BLOB,
    content_hash BLOB NOT NULL,
    hash         BLOB NOT NULL
) STRICT;

CREATE INDEX events_at ON events (at);
CREATE INDEX events_origin ON events (origin) WHERE origin IS NOT NULL;

-- Results of writes that carried a request id, so that a repeat returns the first one.
CREATE TABLE requests (
    actor       TEXT NOT NULL,
    request     TEXT NOT NULL,
    fingerprint BLOB NOT NULL,
    result      BLOB,
    first_seq   INTEGER NOT NULL,
    last_seq    INTEGER NOT NULL,
    PRIMARY KEY (actor, request)
) STRICT, WITHOUT ROWID;
