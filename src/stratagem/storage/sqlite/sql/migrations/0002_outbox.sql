-- The outbox: what read models outside of the database still have to be told.

CREATE TABLE projections (
    name        TEXT PRIMARY KEY,
    -- The kinds of record it wants, as a JSON array.
    kinds       TEXT NOT NULL,
    -- What it was last made from the log with.
    built       TEXT,
    processed   INTEGER NOT NULL DEFAULT 0,
    -- Whoever delivers; anybody else may when the time is over.
    lease_owner TEXT,
    lease_until INTEGER NOT NULL DEFAULT 0
) STRICT, WITHOUT ROWID;

-- One row for each event until it is delivered. It names the event and its subject and quotes
-- nothing: what is sent is read from the log.
CREATE TABLE outbox (
    projection TEXT NOT NULL,
    seq        INTEGER NOT NULL,
    subject    INTEGER NOT NULL,
    status     TEXT NOT NULL DEFAULT 'pending' CHECK (status IN ('pending', 'failed')),
    attempts   INTEGER NOT NULL DEFAULT 0,
    next_at    INTEGER NOT NULL DEFAULT 0,
    error      TEXT,
    PRIMARY KEY (projection, seq)
) STRICT, WITHOUT ROWID;

CREATE INDEX outbox_subject ON outbox (projection, subject, seq);
