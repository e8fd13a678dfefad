-- Read models: functions of the log, written in the transaction that appends.
-- `stratagem rebuild` drops and recreates all of them.

CREATE TABLE branches (
    id          INTEGER PRIMARY KEY,
    name        TEXT NOT NULL,
    parent      INTEGER,
    fork_seq    INTEGER,
    deleted_seq INTEGER
) STRICT;

CREATE UNIQUE INDEX branches_live ON branches (name) WHERE deleted_seq IS NULL;

-- One row for each event that changes a record or stands for itself. Narrow on purpose:
-- every search joins it. A version is the branch's own latest from seq until seq_to. `chars` is how
-- long its searchable text is.
CREATE TABLE versions (
    seq        INTEGER PRIMARY KEY,
    subject    INTEGER,
    branch     INTEGER NOT NULL,
    space      INTEGER NOT NULL,
    seq_to     INTEGER,
    deleted    INTEGER NOT NULL,
    expires_at INTEGER,
    chars      INTEGER
) STRICT;

CREATE INDEX versions_subject ON versions (subject, branch) WHERE subject IS NOT NULL;
CREATE INDEX versions_branch ON versions (branch);
CREATE INDEX versions_superseded ON versions (seq_to) WHERE seq_to IS NOT NULL;
CREATE INDEX versions_expiring ON versions (expires_at) WHERE expires_at IS NOT NULL;

-- How many live records of a kind a branch shows, after each transaction that changed it; also
-- of each group of a kind.
CREATE TABLE tallies (
    branch INTEGER NOT NULL,
    kind   TEXT NOT NULL,
    seq    INTEGER NOT NULL,
    live   INTEGER NOT NULL,
    PRIMARY KEY (branch, kind, seq)
) STRICT, WITHOUT ROWID;

-- What a branch knew of the others after each of its merges, cumulative.
CREATE TABLE knows (
    branch INTEGER NOT NULL,
    seq    INTEGER NOT NULL,
    vector TEXT NOT NULL,
    PRIMARY KEY (branch, seq)
) STRICT, WITHOUT ROWID;

CREATE TABLE tags (
    tag TEXT NOT NULL,
    seq INTEGER NOT NULL,
    PRIMARY KEY (tag, seq)
) STRICT, WITHOUT ROWID;

-- What records say about two others, once from either end: `other` can be reached from `node`.
-- The strongest come first, so that a few of many are found without reading the rest.
CREATE TABLE links (
    node     INTEGER NOT NULL,
    outgoing INTEGER NOT NULL,
    label    TEXT NOT NULL,
    weight   REAL NOT NULL,
    seq      INTEGER NOT NULL,
    other    INTEGER NOT NULL,
    PRIMARY KEY (node, outgoing, label, weight DESC, seq)
) STRICT, WITHOUT ROWID;

-- Numbers that records are listed in the order of.
CREATE TABLE numbers (
    space INTEGER NOT NULL,
    name  TEXT NOT NULL,
    value REAL NOT NULL,
    seq   INTEGER NOT NULL,
    PRIMARY KEY (space, name, value, seq)
) STRICT, WITHOUT ROWID;

-- The messages of a session that give later ones their context.
CREATE TABLE turns (
    space   INTEGER NOT NULL,
    session TEXT NOT NULL,
    branch  INTEGER NOT NULL,
    seq     INTEGER NOT NULL,
    PRIMARY KEY (space, session, branch, seq)
) STRICT, WITHOUT ROWID;

-- A row for each passage: its number is that of the version, times 256, and of the passage. So rows
-- are numbered in the order in which they come, which FTS5 needs to be fast.
-- Terms come analysed, joined by spaces: every code point above ASCII is part of a term.
CREATE VIRTUAL TABLE texts USING fts5 (
    title, body, context,
    content = '', contentless_delete = 1,
    tokenize = "ascii tokenchars '!#$%&()*+,-./:;<=>?@[]^_{|}~'"
);

CREATE VIRTUAL TABLE terms USING fts5vocab (texts, row);

-- `id` follows the order of commits even where a vector is made long after its text. A vector costs
-- too much to be made again for a comparison: `checksum` tells whether it is the one that was made.
CREATE TABLE vectors (
    id       INTEGER PRIMARY KEY,
    seq      INTEGER NOT NULL UNIQUE,
    vector   BLOB NOT NULL,
    checksum INTEGER
) STRICT;

-- Texts of the last commits that are not in the index yet; they get their vectors with it.
CREATE TABLE unindexed (
    seq INTEGER PRIMARY KEY
) STRICT;

-- Texts that still wait for their vector.
CREATE TABLE unembedded (
    seq INTEGER PRIMARY KEY
) STRICT;
