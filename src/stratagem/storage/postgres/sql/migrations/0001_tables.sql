-- Every key begins with the workspace: a workspace's rows lie together in each index, and a
-- distributed PostgreSQL can keep all of them on one node. Names compare by their bytes ("C"),
-- as in the other store. Only `workspaces` is about all of them: it gives each its number.

CREATE TABLE workspaces (
    id   bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text COLLATE "C" NOT NULL UNIQUE
);

-- The row that a writer locks: whoever holds it decides what comes next in the workspace's log.
CREATE TABLE heads (
    workspace bigint PRIMARY KEY
);

CREATE TABLE settings (
    workspace bigint NOT NULL,
    name      text COLLATE "C" NOT NULL,
    value     jsonb,
    PRIMARY KEY (workspace, name)
);

CREATE TABLE spaces (
    workspace bigint NOT NULL,
    id        bigint NOT NULL,
    kind      text COLLATE "C" NOT NULL,
    namespace text COLLATE "C" NOT NULL,
    PRIMARY KEY (workspace, id),
    UNIQUE (workspace, kind, namespace)
);

CREATE TABLE subjects (
    workspace bigint NOT NULL,
    id        bigint NOT NULL,
    space     bigint NOT NULL,
    key       text COLLATE "C" NOT NULL,
    PRIMARY KEY (workspace, id),
    UNIQUE (workspace, space, key)
);

CREATE TABLE events (
    workspace    bigint NOT NULL,
    -- Numbered by the appending transaction, one after another: a gap is a missing event.
    seq          bigint NOT NULL,
    -- Never backwards, one value for each transaction: it tells transactions apart.
    at           bigint NOT NULL,
    -- What the clock really said.
    wall         bigint NOT NULL,
    branch       bigint NOT NULL,
    kind         text COLLATE "C" NOT NULL,
    space        bigint,
    subject      bigint,
    actor        text COLLATE "C" NOT NULL,
    request      text COLLATE "C",
    origin       bigint,
    -- The exact bytes that were hashed.
    payload      bytea,
    salt         bytea,
    content_hash bytea NOT NULL,
    hash         bytea NOT NULL,
    PRIMARY KEY (workspace, seq)
);

CREATE INDEX events_at ON events (workspace, at, seq);
CREATE INDEX events_origin ON events (workspace, origin) WHERE origin IS NOT NULL;

-- Results of writes that carried a request id, so that a repeat returns the first one.
CREATE TABLE requests (
    workspace   bigint NOT NULL,
    actor       text COLLATE "C" NOT NULL,
    request     text COLLATE "C" NOT NULL,
    fingerprint bytea NOT NULL,
    result      bytea,
    first_seq   bigint NOT NULL,
    last_seq    bigint NOT NULL,
    PRIMARY KEY (workspace, actor, request)
);

-- From here on read models: functions of the log, written in the transaction that appends.

CREATE TABLE branches (
    workspace   bigint NOT NULL,
    id          bigint NOT NULL,
    name        text COLLATE "C" NOT NULL,
    parent      bigint,
    fork_seq    bigint,
    deleted_seq bigint,
    PRIMARY KEY (workspace, id)
);

CREATE UNIQUE INDEX branches_live ON branches (workspace, name) WHERE deleted_seq IS NULL;

-- One row for each event that changes a record or stands for itself. Narrow on purpose:
-- every search joins it. A version is the branch's own latest from seq until seq_to.
CREATE TABLE versions (
    workspace  bigint NOT NULL,
    seq        bigint NOT NULL,
    subject    bigint,
    branch     bigint NOT NULL,
    space      bigint NOT NULL,
    seq_to     bigint,
    deleted    boolean NOT NULL,
    expires_at bigint,
    PRIMARY KEY (workspace, seq)
);

CREATE INDEX versions_subject ON versions (workspace, subject, branch, seq)
WHERE subject IS NOT NULL;
CREATE INDEX versions_branch ON versions (workspace, branch, seq);
CREATE INDEX versions_superseded ON versions (workspace, seq_to) WHERE seq_to IS NOT NULL;
CREATE INDEX versions_expiring ON versions (workspace, expires_at) WHERE expires_at IS NOT NULL;

-- How many live records of a kind a branch shows, after each transaction that changed it; also
-- of each group of a kind.
CREATE TABLE tallies (
    workspace bigint NOT NULL,
    branch    bigint NOT NULL,
    kind      text COLLATE "C" NOT NULL,
    seq       bigint NOT NULL,
    live      bigint NOT NULL,
    PRIMARY KEY (workspace, branch, kind, seq)
);

-- What a branch knew of the others after each of its merges, cumulative.
CREATE TABLE knows (
    workspace bigint NOT NULL,
    branch    bigint NOT NULL,
    seq       bigint NOT NULL,
    vector    text NOT NULL,
    PRIMARY KEY (workspace, branch, seq)
);

CREATE TABLE tags (
    workspace bigint NOT NULL,
    tag       text COLLATE "C" NOT NULL,
    seq       bigint NOT NULL,
    PRIMARY KEY (workspace, tag, seq)
);

-- What records say about two others, once from either end: `other` can be reached from `node`.
CREATE TABLE links (
    workspace bigint NOT NULL,
    node      bigint NOT NULL,
    outgoing  boolean NOT NULL,
    label     text COLLATE "C" NOT NULL,
    weight    double precision NOT NULL,
    seq       bigint NOT NULL,
    other     bigint NOT NULL
);

-- The strongest come first, so that a few of many are found without reading the rest.
CREATE UNIQUE INDEX links_strongest ON links
(workspace, node, outgoing, label, weight DESC, seq);

-- Numbers that records are listed in the order of.
CREATE TABLE numbers (
    workspace bigint NOT NULL,
    space     bigint NOT NULL,
    name      text COLLATE "C" NOT NULL,
    value     double precision NOT NULL,
    seq       bigint NOT NULL,
    PRIMARY KEY (workspace, space, name, value, seq)
);

-- The messages of a session that give later ones their context.
CREATE TABLE turns (
    workspace bigint NOT NULL,
    space     bigint NOT NULL,
    session   text COLLATE "C" NOT NULL,
    branch    bigint NOT NULL,
    seq       bigint NOT NULL,
    PRIMARY KEY (workspace, space, session, branch, seq)
);

-- Terms come analysed. Each begins with its workspace's number, because a GIN index has no
-- leading column: a word that is common elsewhere costs nothing here. `frequencies` says how
-- often each occurs in title, body and context (`postgres.texts`): `terms` finds, it ranks.
CREATE TABLE texts (
    workspace   bigint NOT NULL,
    seq         bigint NOT NULL,
    tokens      integer NOT NULL,
    terms       tsvector NOT NULL,
    frequencies jsonb NOT NULL,
    PRIMARY KEY (workspace, seq)
);

-- Without a list of pending entries: a search would have to read all of it.
CREATE INDEX texts_terms ON texts USING gin (terms) WITH (fastupdate = off);

-- How many texts there are, and how long all of them are together.
CREATE TABLE text_totals (
    workspace bigint PRIMARY KEY,
    texts     bigint NOT NULL,
    tokens    bigint NOT NULL
);

-- `id` follows the order of commits even where a vector is made long after its text.
CREATE TABLE vectors (
    workspace bigint NOT NULL,
    id        bigint NOT NULL,
    seq       bigint NOT NULL,
    vector    vector NOT NULL,
    PRIMARY KEY (workspace, id),
    UNIQUE (workspace, seq)
);

-- Texts that still wait for their vector.
CREATE TABLE unembedded (
    workspace bigint NOT NULL,
    seq       bigint NOT NULL,
    PRIMARY KEY (workspace, seq)
);
