-- The statements of a reader that opens a file for one question (`direct_reader.py`).
--
-- {cuts} is the lineage of the branch ?1: each ancestor, the last of its sequences that may be seen,
-- and how far away it is. {visible} says that a version v can be seen there at the time ?2.

-- name: cuts
-- Fragment: the lineage of a branch.
WITH RECURSIVE cuts (branch, last, depth) AS MATERIALIZED (
    SELECT id, 9223372036854775807, 0 FROM branches WHERE name = ?1 AND deleted_seq IS NULL
    UNION ALL
    SELECT b.parent, min(c.last, b.fork_seq), c.depth + 1
    FROM cuts c JOIN branches b ON b.id = c.branch WHERE b.parent IS NOT NULL
)

-- name: visible
-- Fragment: a version is the latest of its branch, and no nearer branch has one of its subject.
v.deleted = 0 AND (v.expires_at IS NULL OR v.expires_at > ?2)
    AND v.seq <= c.last AND (v.seq_to IS NULL OR v.seq_to > c.last)
    AND (c.depth = 0 OR v.subject IS NULL OR NOT EXISTS (
        SELECT 1 FROM versions n JOIN cuts d ON d.branch = n.branch AND n.seq <= d.last
        WHERE n.subject = v.subject AND d.depth < c.depth))

-- name: format
-- The version of the log's tables and of the read models, and whose vectors there are.
SELECT (SELECT user_version FROM pragma_user_version),
    (SELECT value FROM settings WHERE name = 'read_models_version'),
    (SELECT value FROM settings WHERE name = 'embedder')

-- name: branch
-- Whether there is a branch of a name.
SELECT 1 FROM branches WHERE name = ?1 AND deleted_seq IS NULL

-- name: term_documents
-- In how many passages a term occurs.
SELECT doc FROM terms WHERE term = ?1

-- name: text_averages
-- FTS5's own record of how many passages it holds; counting them would read every one.
SELECT block FROM texts_data WHERE id = 1

-- name: matches_without
-- The best passages of entries and logged events for a match expression, without those that have
-- the facet ?5; a few of each text, or a long one would leave no room for others.
{cuts}, ranked AS MATERIALIZED (
    SELECT v.seq, texts.rowid & 255 AS passage, -bm25(texts, 3.0, 1.0, 0.5) AS score
    FROM texts CROSS JOIN versions v ON v.seq = texts.rowid >> 8 JOIN cuts c ON c.branch = v.branch
    WHERE texts MATCH ?3 AND v.space IN (SELECT id FROM spaces WHERE kind IN ('entry', 'event'))
        AND {visible} AND NOT EXISTS (SELECT 1 FROM tags t WHERE t.tag = ?5 AND t.seq = v.seq)
    ORDER BY score DESC, v.seq DESC, passage LIMIT 20 * ?4
)
SELECT seq, passage, score FROM (
    SELECT *, row_number() OVER (PARTITION BY seq ORDER BY score DESC, passage) AS place FROM ranked)
WHERE place <= 4 ORDER BY score DESC, seq DESC, passage LIMIT ?4

-- name: contents
-- What some events (a JSON array of sequences) say, with what verifies it, and their vectors.
SELECT e.seq, e.at, sp.kind, sp.namespace, s.key, e.payload, e.salt, e.content_hash, x.vector
FROM json_each(?1) w CROSS JOIN events e ON e.seq = w.value
JOIN spaces sp ON sp.id = e.space LEFT JOIN subjects s ON s.id = e.subject
LEFT JOIN vectors x ON x.seq = e.seq

-- name: newest_of_spaces
-- The newest event about records of some kinds (a JSON array), on any branch.
SELECT coalesce(max(seq), 0) FROM versions
WHERE space IN (SELECT id FROM spaces WHERE kind IN (SELECT value FROM json_each(?1)))

-- name: records_of
-- The newest versions, on each branch, of records of a kind under some keys (a JSON array).
SELECT v.seq FROM json_each(?2) w CROSS JOIN spaces sp ON sp.kind = ?1
JOIN subjects s ON s.space = sp.id AND s.key = w.value
JOIN versions v ON v.subject = s.id AND v.seq_to IS NULL AND v.deleted = 0

-- name: later_with_facets
-- The first events after a sequence that have two facets, on the branch of the event before them.
SELECT t.seq FROM tags t CROSS JOIN tags m ON m.tag = ?2 AND m.seq = t.seq
JOIN versions v ON v.seq = t.seq
WHERE t.tag = ?1 AND t.seq > ?3 AND v.branch = (SELECT branch FROM versions WHERE seq = ?3)
ORDER BY t.seq LIMIT ?4
