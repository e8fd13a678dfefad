-- The outbox: what read models outside of the database still have to be told.

CREATE TABLE projections (
    workspace   bigint NOT NULL,
    name        text COLLATE "C" NOT NULL,
    -- The kinds of record it wants, as a JSON array.
    kinds       text NOT NULL,
    -- What it was last made from the log with.
    built       text,
    processed   bigint NOT NULL DEFAULT 0,
    -- Whoever delivers; anybody else may when the time is over.
    lease_owner text,
    lease_until bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (workspace, name)
);

-- One row for each event until it is delivered. It names the event and its subject and quotes
-- nothing: what is sent is read from the log.
CREATE TABLE outbox (
    workspace  bigint NOT NULL,
    projection text COLLATE "C" NOT NULL,
    seq        bigint NOT NULL,
    subject    bigint NOT NULL,
    status     text NOT NULL DEFAULT 'pending' CHECK (status IN ('pending', 'failed')),
    attempts   bigint NOT NULL DEFAULT 0,
    next_at    bigint NOT NULL DEFAULT 0,
    error      text,
    PRIMARY KEY (workspace, projection, seq)
);

CREATE INDEX outbox_subject ON outbox (workspace, projection, subject, seq);
