-- Vectors that callers wrote themselves: a read model, made from their events.

CREATE TABLE own_vectors (
    workspace bigint NOT NULL,
    seq       bigint NOT NULL,
    vector    vector NOT NULL,
    PRIMARY KEY (workspace, seq)
);
