-- Every statement the SQLite store runs, by name.
--
-- {probes}, {visible}, {spaces}, {tags} are fragments that `statements.py` expands for the depth of
-- a lineage. Parameters are numbered; a lineage's cuts (branch, limit) come last.

-- name: probe
-- Fragment: the latest version of a subject on one branch of a lineage.
(SELECT max(seq) FROM versions WHERE subject = {subject} AND branch = {branch} AND seq <= {limit})

-- name: own
-- Fragment: a version is the latest of its own branch at the branch's limit.
WHEN {branch} THEN v.seq <= {limit} AND (v.seq_to IS NULL OR v.seq_to > {limit})

-- name: borrowed
-- Fragment: the same for an ancestor, unless a nearer branch has a version of the subject.
WHEN {branch} THEN v.seq <= {limit} AND (v.seq_to IS NULL OR v.seq_to > {limit})
    AND (v.subject IS NULL OR v.seq = coalesce(NULL, {probes}))

-- name: visible
-- Fragment: a version can be seen in a view; ?1 is the view's time.
v.deleted = 0 AND (v.expires_at IS NULL OR v.expires_at > ?1) AND CASE v.branch {arms} ELSE 0 END

-- name: head
-- The newest event.
SELECT seq, at, hash FROM events ORDER BY seq DESC LIMIT 1

-- name: formats
-- The version of the log's tables, and that of the read models.
SELECT (SELECT user_version FROM pragma_user_version),
    (SELECT value FROM settings WHERE name = 'read_models_version')

-- name: head_to_write_after
-- The newest event, the versions of the file, and the mark of a copy that is not finished.
SELECT seq, at, hash, (SELECT user_version FROM pragma_user_version),
    (SELECT value FROM settings WHERE name = 'read_models_version'),
    (SELECT value FROM settings WHERE name = 'unfinished_copy')
FROM events ORDER BY seq DESC LIMIT 1

-- name: branch_by_name
-- The live branch of a name.
SELECT id, name, parent, fork_seq, deleted_seq FROM branches
WHERE name = ?1 AND deleted_seq IS NULL

-- name: branch_by_id
-- A branch, deleted or not.
SELECT id, name, parent, fork_seq, deleted_seq FROM branches WHERE id = ?1

-- name: branch_deleted
-- The branch of a name that was deleted last.
SELECT id, name, parent, fork_seq, deleted_seq FROM branches
WHERE name = ?1 AND deleted_seq IS NOT NULL ORDER BY deleted_seq DESC LIMIT 1

-- name: branches
-- All branches but those of transactions, oldest first.
SELECT id, name, parent, fork_seq, deleted_seq FROM branches WHERE name NOT BETWEEN char(2) AND char(3) ORDER BY id

-- name: branch_transactions
-- The branches of open transactions: their names begin with a character no caller can write.
SELECT id, name, parent, fork_seq, deleted_seq FROM branches
WHERE deleted_seq IS NULL AND name BETWEEN char(2) AND char(3) ORDER BY id

-- name: transaction_versions
-- What was written in transactions that are over, and what ended each.
SELECT v.seq, b.deleted_seq FROM branches b JOIN versions v ON v.branch = b.id
WHERE b.deleted_seq IS NOT NULL AND b.name BETWEEN char(2) AND char(3)

-- name: branch_count
-- How many branches are live, those of transactions left out.
SELECT count(*) FROM branches WHERE deleted_seq IS NULL AND name NOT BETWEEN char(2) AND char(3)

-- name: sequence_at
-- The last event at or before a time. Times never go backwards: it lies behind `low` or at it, and not
-- behind `high`, and each step halves what is between them. A damaged log may lack events.
WITH RECURSIVE halves (low, high) AS (
    SELECT 0, coalesce(max(seq), 0) FROM events
    UNION ALL
    SELECT CASE WHEN e.at > ?1 THEN low ELSE (low + high + 1) / 2 END,
        CASE WHEN e.at > ?1 THEN (low + high + 1) / 2 - 1 ELSE high END
    FROM halves LEFT JOIN events e
        ON e.seq = (SELECT max(seq) FROM events WHERE seq <= (low + high + 1) / 2)
    WHERE low < high
)
SELECT (SELECT max(seq) FROM events WHERE seq <= low) FROM halves WHERE low = high

-- name: time_of
-- The recorded time of an event.
SELECT at FROM events WHERE seq = ?1

-- name: wall_of
-- What the clock said when an event was written.
SELECT wall FROM events WHERE seq = ?1

-- name: sequence_ahead
-- The last event up to a time of the clock, among those that were recorded ahead of it.
SELECT seq FROM events WHERE at - wall > 1000000 AND wall <= ?1 AND at > ?1
ORDER BY wall DESC, seq DESC LIMIT 1

-- name: hash_of
-- The hash of an event.
SELECT hash FROM events WHERE seq = ?1

-- name: event_space
-- The number of a space.
SELECT id FROM spaces WHERE kind = ?1 AND namespace = ?2

-- name: spaces
-- All spaces.
SELECT id, kind, namespace FROM spaces ORDER BY id

-- name: recall
-- The newest version of a record in a view. It gives no row when the branch is not live.
SELECT e.seq, e.at, e.kind, e.payload, e.actor, e.salt, e.content_hash
FROM subjects s CROSS JOIN events e
WHERE (SELECT deleted_seq FROM branches WHERE id = ?3) IS NULL AND s.space = ?1 AND s.key = ?2
    AND e.seq = coalesce(NULL, {probes})

-- name: current_many
-- The newest versions of some subjects (a JSON array of their numbers) in a view.
SELECT s.id, sp.kind, sp.namespace, s.key, e.seq, e.at, e.kind, e.payload, e.actor, e.salt,
    e.content_hash
FROM json_each(?1) wanted
CROSS JOIN subjects s ON s.id = wanted.value
CROSS JOIN spaces sp ON sp.id = s.space
CROSS JOIN events e ON e.seq = coalesce(NULL, {probes})

-- name: subject_names
-- The names of some subjects (a JSON array of their numbers).
SELECT s.id, sp.kind, sp.namespace, s.key
FROM json_each(?1) wanted CROSS JOIN subjects s ON s.id = wanted.value
CROSS JOIN spaces sp ON sp.id = s.space

-- name: subject_keys
-- The keys of some subjects (a JSON array of their numbers).
SELECT s.id, s.key FROM json_each(?1) wanted CROSS JOIN subjects s ON s.id = wanted.value

-- name: newest_version
-- Which version of a subject a view shows, whether it is a deletion, and when it expires.
SELECT v.seq, v.branch, v.deleted, v.expires_at FROM versions v WHERE v.seq = coalesce(NULL, {probes})

-- name: newest_versions
-- The same for some subjects (a JSON array of their numbers).
SELECT w.value, v.seq, v.branch, v.deleted, v.expires_at
FROM json_each(?1) w CROSS JOIN versions v ON v.seq = coalesce(NULL, {probes})

-- name: history
-- The versions of a record on one branch of a lineage, newest first.
SELECT e.seq, e.at, e.kind, e.payload, e.actor, e.salt, e.content_hash
FROM subjects s
CROSS JOIN versions v ON v.subject = s.id AND v.branch = ?3 AND v.seq <= ?4
CROSS JOIN events e ON e.seq = v.seq
WHERE s.space = ?1 AND s.key = ?2
ORDER BY v.seq DESC LIMIT ?5

-- name: versions_in
-- The versions of all records of a space on one branch of a lineage, newest first.
SELECT s.key, e.seq, e.at, e.kind, e.payload, e.actor, e.salt, e.content_hash
FROM subjects s
CROSS JOIN versions v ON v.subject = s.id AND v.branch = ?2 AND v.seq <= ?3
CROSS JOIN events e ON e.seq = v.seq
WHERE s.space = ?1
ORDER BY v.seq DESC LIMIT ?4

-- name: records
-- A page of the records of a space, by key, each at its newest version in a view.
SELECT s.key, e.seq, e.at, e.kind, e.payload, e.actor, e.salt, e.content_hash
FROM subjects s CROSS JOIN events e ON e.seq = coalesce(NULL, {probes})
WHERE s.space = ?1 AND s.key > ?2 ORDER BY s.key LIMIT ?3

-- name: stream
-- A page of the events of a space that stand for themselves, oldest first.
SELECT e.seq, e.at, e.kind, e.payload, e.actor, e.salt, e.content_hash FROM versions v CROSS JOIN events e ON e.seq = v.seq
WHERE v.branch = ?1 AND v.seq > ?2 AND v.seq <= ?3 AND v.space = ?4 AND v.subject IS NULL
    AND v.deleted = 0
ORDER BY v.seq LIMIT ?5

-- name: first_event
-- The first event that changed anything on a branch up to a sequence, in some spaces (a JSON array,
-- or null for all of them).
SELECT e.seq, e.at FROM versions v CROSS JOIN events e ON e.seq = v.seq
WHERE v.branch = ?1 AND v.seq <= ?2
    AND (?3 IS NULL OR v.space IN (SELECT value FROM json_each(?3)))
ORDER BY v.seq LIMIT 1

-- name: last_event
-- The last event that changed anything on a branch up to a sequence, in some spaces.
SELECT e.seq, e.at FROM versions v CROSS JOIN events e ON e.seq = v.seq
WHERE v.branch = ?1 AND v.seq <= ?2
    AND (?3 IS NULL OR v.space IN (SELECT value FROM json_each(?3)))
ORDER BY v.seq DESC LIMIT 1

-- name: tally
-- How many live records of a kind a branch showed after a sequence.
SELECT live FROM tallies WHERE branch = ?1 AND kind = ?2 AND seq <= ?3 ORDER BY seq DESC LIMIT 1

-- name: expired
-- How many records of a kind would be visible in a view had they not expired by ?1.
SELECT count(*) FROM versions v CROSS JOIN spaces sp ON sp.id = v.space AND sp.kind = ?2
WHERE v.expires_at <= ?1 AND v.deleted = 0 AND CASE v.branch {arms} ELSE 0 END

-- name: compared_subjects
-- The subjects a branch changed after one sequence and up to another: the latest version of each
-- there, and the one that a view shows.
SELECT v.subject, v.space, v.seq, v.deleted, v.expires_at, o.seq, o.deleted, o.expires_at
FROM versions v LEFT JOIN versions o ON o.seq = coalesce(NULL, {probes})
WHERE v.branch = ?1 AND v.seq > ?2 AND v.seq <= ?3 AND v.subject IS NOT NULL
    AND (v.seq_to IS NULL OR v.seq_to > ?3)

-- name: shown_versions
-- Which versions a view shows of some subjects (a JSON array of their numbers).
SELECT w.value, v.space, v.seq, v.deleted, v.expires_at
FROM json_each(?1) w CROSS JOIN versions v ON v.seq = coalesce(NULL, {probes})

-- name: expired_subjects
-- The subjects of which a version expires after one time and up to another.
SELECT DISTINCT subject FROM versions
WHERE expires_at > ?1 AND expires_at <= ?2 AND subject IS NOT NULL

-- name: last_expiry
-- When the version that expired last before a time, or at it, did so.
SELECT max(expires_at) FROM versions WHERE expires_at <= ?1

-- name: changed_subjects
-- The subjects a branch changed after one sequence and up to another.
SELECT DISTINCT subject FROM versions
WHERE branch = ?1 AND seq > ?2 AND seq <= ?3 AND subject IS NOT NULL

-- name: changed_stream
-- The events standing for themselves that a branch gained between two sequences.
SELECT e.branch, e.origin, sp.kind, sp.namespace, e.seq, e.at, e.kind, e.payload, e.actor, e.salt, e.content_hash
FROM versions v CROSS JOIN events e ON e.seq = v.seq CROSS JOIN spaces sp ON sp.id = v.space
WHERE v.branch = ?1 AND v.seq > ?2 AND v.seq <= ?3 AND v.subject IS NULL AND v.deleted = 0
ORDER BY v.seq

-- name: branch_of
-- The branch an event was written to.
SELECT branch FROM events WHERE seq = ?1

-- name: known_versions
-- For each subject of a JSON array, its newest version on each branch that a vector knows.
WITH known AS MATERIALIZED (
    SELECT CAST(key AS INTEGER) AS branch, value AS upto FROM json_each(?2)
)
SELECT w.value, v.branch, max(v.seq)
FROM json_each(?1) w
CROSS JOIN versions v ON v.subject = w.value
CROSS JOIN known ON v.branch = known.branch AND v.seq <= known.upto
GROUP BY w.value, v.branch

-- name: doubtful_versions
-- Those of some versions (a JSON array of sequences) that are not within a vector (?3), or have a
-- later one of their subject within another (?2).
WITH known AS MATERIALIZED (
    SELECT CAST(key AS INTEGER) AS branch, value AS upto FROM json_each(?2)
), covering AS MATERIALIZED (
    SELECT CAST(key AS INTEGER) AS branch, value AS upto FROM json_each(?3)
)
SELECT v.seq FROM json_each(?1) w CROSS JOIN versions v ON v.seq = w.value
WHERE NOT EXISTS (SELECT 1 FROM covering WHERE v.branch = covering.branch AND v.seq <= covering.upto)
    OR EXISTS (
        SELECT 1 FROM versions n CROSS JOIN known
        WHERE n.subject = v.subject AND n.seq > v.seq AND n.branch = known.branch AND n.seq <= known.upto)

-- name: versions_of
-- All versions of a subject: where each was written, when it expires, and what it was made from.
SELECT v.seq, v.branch, v.expires_at, e.origin
FROM versions v CROSS JOIN events e ON e.seq = v.seq WHERE v.subject = ?1 ORDER BY v.seq

-- name: knows
-- What a branch knew of others after its latest merge up to a sequence.
SELECT vector FROM knows WHERE branch = ?1 AND seq <= ?2 ORDER BY seq DESC LIMIT 1

-- name: merges
-- The latest merges: into which branch, and by which event.
SELECT branch, seq FROM knows ORDER BY seq DESC LIMIT ?1

-- name: payloads
-- The payloads of some events (a JSON array of sequences).
SELECT sp.kind, sp.namespace, s.key, e.seq, e.at, e.kind, e.payload, e.actor, e.salt, e.content_hash
FROM json_each(?1) w CROSS JOIN events e ON e.seq = w.value
LEFT JOIN spaces sp ON sp.id = e.space LEFT JOIN subjects s ON s.id = e.subject

-- name: record_payloads
-- The payloads of some events (a JSON array of sequences), and what they are checked with.
SELECT e.seq, e.payload, e.salt, e.content_hash
FROM json_each(?1) w CROSS JOIN events e ON e.seq = w.value

-- name: hits
-- All that a search result shows of some events (a JSON array of sequences).
SELECT sp.kind, sp.namespace, s.key, e.seq, e.at, e.kind, e.payload, e.actor, e.salt, e.content_hash
FROM json_each(?1) w CROSS JOIN events e ON e.seq = w.value
JOIN spaces sp ON sp.id = e.space LEFT JOIN subjects s ON s.id = e.subject

-- name: matches
-- The best passages for a match expression in a view; FTS5's own ranks are negative.
SELECT v.seq, texts.rowid & 255, -bm25(texts, ?4, ?5, ?6) AS score
FROM texts CROSS JOIN versions v ON v.seq = texts.rowid >> 8
WHERE texts MATCH ?2 AND {visible} {spaces} {tags}
ORDER BY score DESC, v.seq DESC, texts.rowid LIMIT ?3

-- name: all_matches
-- All passages for a match expression in a view, in no order: of a few thousand, sorting here costs a
-- third of the search.
SELECT v.seq, texts.rowid & 255, -bm25(texts, ?4, ?5, ?6)
FROM texts CROSS JOIN versions v ON v.seq = texts.rowid >> 8
WHERE texts MATCH ?2 AND {visible} {spaces} {tags}

-- name: passages
-- The best passages for a match expression, whichever view shows them; ?2 is how they are ranked. As
-- a function of each row, whose weights are looked at each time, ranking takes a sixth longer.
SELECT texts.rowid >> 8, texts.rowid & 255, -rank AS score
FROM texts WHERE texts MATCH ?1 AND rank MATCH ?2
ORDER BY score DESC, texts.rowid >> 8 DESC, texts.rowid LIMIT ?3

-- name: all_passages
-- All passages for a match expression, whichever view shows them, in no order.
SELECT texts.rowid >> 8, texts.rowid & 255, -rank FROM texts WHERE texts MATCH ?1 AND rank MATCH ?2

-- name: occurrences_table
-- Every occurrence of every term.
CREATE VIRTUAL TABLE IF NOT EXISTS temp.occurrences USING fts5vocab (main, texts, instance)

-- name: occurrences
-- Where each of some terms (a JSON array) occurs: passages in order, with the number of the column.
-- One list for each: as rows they take twice as long to read.
SELECT w.value, (
    SELECT group_concat(
        o.doc << 2 | CASE o.col WHEN 'body' THEN 1 WHEN 'title' THEN 0 ELSE 2 END)
    FROM occurrences o WHERE o.term = w.value)
FROM json_each(?1) w

-- name: first_occurrences
-- The same, but of each term at most so many; it takes half as long again.
SELECT w.value, (
    SELECT group_concat(place) FROM (
        SELECT o.doc << 2 | CASE o.col WHEN 'body' THEN 1 WHEN 'title' THEN 0 ELSE 2 END AS place
        FROM occurrences o WHERE o.term = w.value LIMIT ?2))
FROM json_each(?1) w

-- name: passage_lengths
-- How many terms the columns of passages have, after one of them, as FTS5 keeps it.
SELECT id, sz FROM texts_docsize WHERE id > ?1 ORDER BY id LIMIT ?2

-- name: shown_traits
-- Which of some texts (a JSON array of sequences) a search in a view may find: how many characters
-- they have, and whether they have a facet.
SELECT v.seq, v.chars, EXISTS (SELECT 1 FROM tags t WHERE t.tag = ?3 AND t.seq = v.seq)
FROM json_each(?2) w CROSS JOIN versions v ON v.seq = w.value
WHERE {visible} {spaces} {tags}

-- name: versions_with_tag
-- Some versions that have a tag, whichever view shows them.
SELECT seq FROM tags WHERE tag = ?1 LIMIT ?2

-- name: spaces_filter
-- Fragment: only these spaces (a JSON array of their numbers).
AND v.space IN (SELECT value FROM json_each(?7))

-- name: tags_filter
-- Fragment: only versions that carry every one of these tags (a JSON array).
AND v.seq IN (
    SELECT seq FROM tags WHERE tag IN (SELECT value FROM json_each(?8))
    GROUP BY seq HAVING count(*) = ?9
)

-- name: visible_among
-- Which of some versions (a JSON array of sequences) a view shows.
SELECT v.seq FROM json_each(?2) w CROSS JOIN versions v ON v.seq = w.value
WHERE {visible}

-- name: any_expires
-- Whether any version expires.
SELECT EXISTS (SELECT 1 FROM versions WHERE expires_at IS NOT NULL)

-- name: faceted
-- The newest versions with a facet that a view shows, older than one of them.
SELECT v.seq FROM tags t CROSS JOIN versions v ON v.seq = t.seq
WHERE t.tag = ?2 AND t.seq < ?4 AND {visible} ORDER BY t.seq DESC LIMIT ?3

-- name: facets_containing
-- The versions that a view shows with a facet between two, in which a text occurs.
SELECT v.seq FROM tags t CROSS JOIN versions v ON v.seq = t.seq
WHERE t.tag >= ?2 AND t.tag < ?3 AND instr(substr(t.tag, length(?2) + 1), ?4) AND {visible} LIMIT ?5

-- name: key_count
-- How many keys a space has between two, up to a number.
SELECT count(*) FROM (
    SELECT 1 FROM subjects WHERE space = ?1 AND key >= ?2 AND key < ?3 LIMIT ?4)

-- name: tag_count
-- How many versions ever had a tag, up to a number.
SELECT count(*) FROM (SELECT 1 FROM tags WHERE tag = ?1 LIMIT ?2)

-- name: listed_by_key
-- The records of a space that a view shows, by key, between two keys, with every one of some tags.
SELECT s.key, v.seq FROM subjects s CROSS JOIN versions v ON v.seq = coalesce(NULL, {probes})
WHERE s.space = ?2 AND s.key >= ?3 AND s.key < ?4
    AND v.deleted = 0 AND (v.expires_at IS NULL OR v.expires_at > ?1)
    AND NOT EXISTS (SELECT 1 FROM json_each(?5) w
        WHERE NOT EXISTS (SELECT 1 FROM tags t WHERE t.tag = w.value AND t.seq = v.seq))
ORDER BY s.key LIMIT ?6

-- name: tagged_by_key
-- The same, gathered by one of the tags and sorted.
SELECT s.key, v.seq
FROM tags d CROSS JOIN versions v ON v.seq = d.seq CROSS JOIN subjects s ON s.id = v.subject
WHERE d.tag = ?7 AND v.space = ?2 AND s.key >= ?3 AND s.key < ?4 AND {visible}
    AND NOT EXISTS (SELECT 1 FROM json_each(?5) w
        WHERE NOT EXISTS (SELECT 1 FROM tags t WHERE t.tag = w.value AND t.seq = v.seq))
ORDER BY s.key LIMIT ?6

-- name: gathered_newest
-- The records of a space that a view shows between two keys, older than one; gathered and sorted.
SELECT v.seq FROM subjects s CROSS JOIN versions v ON v.seq = coalesce(NULL, {probes})
WHERE s.space = ?2 AND s.key >= ?3 AND s.key < ?4
    AND v.deleted = 0 AND (v.expires_at IS NULL OR v.expires_at > ?1) AND v.seq < ?5
ORDER BY v.seq DESC LIMIT ?6

-- name: walked_down
-- The versions of a space that a view shows of one branch between two sequences, newest first.
SELECT v.seq FROM versions v
WHERE v.branch = ?2 AND v.seq > ?3 AND v.seq < ?4 AND v.space = ?5 AND {visible}
    AND (?6 = '' OR EXISTS (
        SELECT 1 FROM subjects s WHERE s.id = v.subject AND s.key >= ?6 AND s.key < ?7))
ORDER BY v.seq DESC LIMIT ?8

-- name: walked_up
-- The same, oldest first.
SELECT v.seq FROM versions v
WHERE v.branch = ?2 AND v.seq > ?3 AND v.seq < ?4 AND v.space = ?5 AND {visible}
    AND (?6 = '' OR EXISTS (
        SELECT 1 FROM subjects s WHERE s.id = v.subject AND s.key >= ?6 AND s.key < ?7))
ORDER BY v.seq LIMIT ?8

-- name: tagged_down
-- The versions of a space that a view shows with every one of some tags, newest first; found by ?2.
SELECT v.seq FROM tags d CROSS JOIN versions v ON v.seq = d.seq
WHERE d.tag = ?2 AND d.seq > ?3 AND d.seq < ?4 AND v.space = ?5 AND {visible}
    AND NOT EXISTS (SELECT 1 FROM json_each(?6) w
        WHERE NOT EXISTS (SELECT 1 FROM tags t WHERE t.tag = w.value AND t.seq = v.seq))
    AND (?7 = '' OR EXISTS (
        SELECT 1 FROM subjects s WHERE s.id = v.subject AND s.key >= ?7 AND s.key < ?8))
ORDER BY d.seq DESC LIMIT ?9

-- name: tagged_up
-- The same, oldest first.
SELECT v.seq FROM tags d CROSS JOIN versions v ON v.seq = d.seq
WHERE d.tag = ?2 AND d.seq > ?3 AND d.seq < ?4 AND v.space = ?5 AND {visible}
    AND NOT EXISTS (SELECT 1 FROM json_each(?6) w
        WHERE NOT EXISTS (SELECT 1 FROM tags t WHERE t.tag = w.value AND t.seq = v.seq))
    AND (?7 = '' OR EXISTS (
        SELECT 1 FROM subjects s WHERE s.id = v.subject AND s.key >= ?7 AND s.key < ?8))
ORDER BY d.seq LIMIT ?9

-- name: space_counts
-- How many versions a view shows in each of some spaces (a JSON array), and the newest of them.
SELECT v.space, count(*), max(v.seq) FROM versions v
WHERE v.space IN (SELECT value FROM json_each(?2)) AND {visible} GROUP BY v.space

-- name: tag_counts
-- How many versions a view shows with each tag from ?3 on, in some spaces (a JSON array).
SELECT d.tag, count(*) FROM tags d CROSS JOIN versions v ON v.seq = d.seq
WHERE d.tag >= ?3 AND v.space IN (SELECT value FROM json_each(?2)) AND {visible}
GROUP BY d.tag ORDER BY count(*) DESC, d.tag LIMIT ?4

-- name: namespaces_with
-- The namespaces in which a view shows a record of a kind under a key.
SELECT sp.namespace
FROM spaces sp CROSS JOIN subjects s ON s.space = sp.id AND s.key = ?3
CROSS JOIN versions v ON v.seq = coalesce(NULL, {probes})
WHERE sp.kind = ?2 AND v.deleted = 0 AND (v.expires_at IS NULL OR v.expires_at > ?1)
ORDER BY v.seq DESC LIMIT ?4

-- name: linked
-- What can be reached from some nodes (a JSON array of subjects) in a view, either way.
SELECT l.node, l.outgoing, l.label, l.weight, l.seq, l.other
FROM json_each(?2) w CROSS JOIN links l ON l.node = w.value CROSS JOIN versions v ON v.seq = l.seq
WHERE {visible} LIMIT ?3

-- name: linked_by
-- What can be reached from some nodes (a JSON array of subjects) in a view, by one kind of link.
SELECT l.node, l.outgoing, l.label, l.weight, l.seq, l.other
FROM json_each(?2) w
CROSS JOIN links l ON l.node = w.value AND l.outgoing = ?4 AND l.label = ?5
CROSS JOIN versions v ON v.seq = l.seq
WHERE {visible} LIMIT ?3

-- name: strongest_links
-- The strongest links of one kind of a node, to records that a view shows.
SELECT l.node, l.outgoing, l.label, l.weight, l.seq, l.other
FROM links l CROSS JOIN versions v ON v.seq = l.seq
WHERE l.node = ?2 AND l.outgoing = ?3 AND l.label = ?4 AND {visible}
    AND (SELECT deleted FROM versions WHERE seq = coalesce(NULL, {probes})) = 0
ORDER BY l.weight DESC, l.seq LIMIT ?5

-- name: link_count
-- How many links some nodes (a JSON array of subjects) ever had, up to a number.
SELECT count(*) FROM (
    SELECT 1 FROM json_each(?1) w CROSS JOIN links l ON l.node = w.value LIMIT ?2)

-- name: ordered_up
-- The versions of a space that a view shows, in order of a number, after one of them.
SELECT n.value, n.seq FROM numbers n CROSS JOIN versions v ON v.seq = n.seq
WHERE n.space = ?2 AND n.name = ?3 AND (n.value, n.seq) > (?4, ?5) AND n.value <= ?6 AND {visible}
ORDER BY n.value, n.seq LIMIT ?7

-- name: ordered_down
-- The versions of a space that a view shows, in falling order of a number, after one of them.
SELECT n.value, n.seq FROM numbers n CROSS JOIN versions v ON v.seq = n.seq
WHERE n.space = ?2 AND n.name = ?3 AND (n.value, n.seq) < (?4, ?5) AND n.value >= ?6 AND {visible}
ORDER BY n.value DESC, n.seq DESC LIMIT ?7

-- name: group_tallies
-- The tallies between two names that a branch had at a sequence; it skips from name to name.
WITH RECURSIVE names (kind) AS (
    SELECT min(kind) FROM tallies WHERE branch = ?1 AND kind > ?3 AND kind < ?4
    UNION ALL
    SELECT (SELECT min(t.kind) FROM tallies t
        WHERE t.branch = ?1 AND t.kind > names.kind AND t.kind < ?4)
    FROM names WHERE kind IS NOT NULL
)
SELECT kind, (SELECT live FROM tallies t
    WHERE t.branch = ?1 AND t.kind = names.kind AND t.seq <= ?2 ORDER BY t.seq DESC LIMIT 1)
FROM names WHERE kind IS NOT NULL

-- name: version_count
-- How many events changed records of a kind, on any branch.
SELECT count(*) FROM versions WHERE space IN (SELECT id FROM spaces WHERE kind = ?1)

-- name: tagged
-- The versions that carry every tag of a JSON array.
SELECT seq FROM tags WHERE tag IN (SELECT value FROM json_each(?1))
GROUP BY seq HAVING count(*) = ?2

-- name: term_documents
-- In how many passages a term occurs.
SELECT doc FROM terms WHERE term = ?1

-- name: terms_documents
-- In how many passages each of some terms (a JSON array) occurs.
SELECT w.value, coalesce((SELECT t.doc FROM terms t WHERE t.term = w.value), 0) FROM json_each(?1) w

-- name: text_averages
-- FTS5's own record of how many passages it holds; counting them would read every one.
SELECT block FROM texts_data WHERE id = 1

-- name: newest_text
-- The hash of the newest event with a text, which stands for all texts up to it.
SELECT e.hash FROM events e WHERE e.seq = (SELECT max(id) >> 8 FROM texts_docsize)

-- name: turns_before
-- The last messages of a session on one branch, up to a sequence.
SELECT seq FROM turns
WHERE space = (SELECT id FROM spaces WHERE kind = ?1 AND namespace = ?2)
    AND session = ?3 AND branch = ?4 AND seq <= ?5
ORDER BY seq DESC LIMIT ?6

-- name: turns_after
-- The next messages of a session on one branch, between two sequences.
SELECT seq FROM turns
WHERE space = (SELECT id FROM spaces WHERE kind = ?1 AND namespace = ?2)
    AND session = ?3 AND branch = ?4 AND seq > ?5 AND seq <= ?6
ORDER BY seq LIMIT ?7

-- name: turns
-- The last messages of a session on one branch of a lineage.
SELECT seq FROM turns WHERE space = ?1 AND session = ?2 AND branch = ?3 AND seq <= ?4
ORDER BY seq DESC LIMIT ?5

-- name: vectors_after
-- Vectors in the order of their commits, with what a filter needs to know.
SELECT x.id, x.seq, v.branch, v.space, v.seq_to, x.vector, 1.0
FROM vectors x CROSS JOIN versions v ON v.seq = x.seq
WHERE x.id > ?1 ORDER BY x.id LIMIT ?2

-- name: versions_in_space
-- The versions of a space after a sequence, with what decides whether a view shows them.
SELECT seq, branch, seq_to FROM versions WHERE space = ?1 AND seq > ?2 AND deleted = 0
ORDER BY seq LIMIT ?3

-- name: numbered
-- Versions of a space one of whose numbers lies between two.
SELECT seq FROM numbers WHERE space = ?1 AND name = ?2 AND value >= ?3 AND value <= ?4

-- name: superseded_after
-- Versions that were superseded after a sequence.
SELECT seq, seq_to FROM versions WHERE seq_to > ?1

-- name: vector_last
-- The number of the newest vector.
SELECT max(id) FROM vectors

-- name: vector_count
-- How many vectors there are.
SELECT count(*) FROM vectors

-- name: unembedded
-- Texts that still wait for a vector.
SELECT seq FROM unembedded ORDER BY seq DESC LIMIT ?1

-- name: unembedded_count
-- How many texts wait for a vector.
SELECT count(*) FROM unembedded

-- name: unembedded_any
-- Whether any text waits for a vector.
SELECT 1 FROM unembedded LIMIT 1

-- name: setting
-- One setting of the database.
SELECT value FROM settings WHERE name = ?1

-- name: set_setting
-- Write one setting of the database.
INSERT INTO settings (name, value) VALUES (?1, ?2)
ON CONFLICT (name) DO UPDATE SET value = excluded.value

-- name: insert_space
-- Give a space its number.
INSERT INTO spaces (kind, namespace) VALUES (?1, ?2) RETURNING id

-- name: subject_id
-- The number of a subject.
SELECT id FROM subjects WHERE space = ?1 AND key = ?2

-- name: insert_subject
-- Give a subject its number.
INSERT INTO subjects (id, space, key) VALUES (?, ?, ?)

-- name: subject_ids
-- The numbers of those subjects of a space whose keys are in a JSON array.
SELECT s.id, s.key FROM json_each(?2) w CROSS JOIN subjects s ON s.space = ?1 AND s.key = w.value

-- name: subject_last
-- The highest number a subject has.
SELECT max(id) FROM subjects

-- name: insert_event
-- Append an event.
INSERT INTO events (seq, at, wall, branch, kind, space, subject, actor, request, origin,
    payload, salt, content_hash, hash)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)

-- name: insert_version
-- Record what an event did to its subject.
INSERT INTO versions (seq, subject, branch, space, seq_to, deleted, expires_at, chars)
VALUES (?, ?, ?, ?, NULL, ?, ?, ?)

-- name: supersede
-- Close the version that another one replaces on its branch.
UPDATE versions SET seq_to = ?1 WHERE seq = ?2

-- name: insert_tag
-- Record a tag of a version.
INSERT OR IGNORE INTO tags (tag, seq) VALUES (?, ?)

-- name: insert_link
-- Record what can be reached from a node.
INSERT INTO links (node, outgoing, label, weight, seq, other) VALUES (?, ?, ?, ?, ?, ?)

-- name: insert_number
-- Record a number that a version is listed by.
INSERT INTO numbers (space, name, value, seq) VALUES (?, ?, ?, ?)

-- name: insert_turn
-- Record a message of a session.
INSERT INTO turns (space, session, branch, seq) VALUES (?, ?, ?, ?)

-- name: insert_text
-- Index a passage of a text.
INSERT INTO texts (rowid, title, body, context) VALUES (?1 << 8 | ?2, ?3, ?4, ?5)

-- name: unindexed
-- Texts that the last commits have left to be indexed, oldest first.
SELECT seq FROM unindexed ORDER BY seq

-- name: unindexed_count
-- How many texts the last commits have left to be indexed.
SELECT count(*) FROM unindexed

-- name: insert_unindexed
-- Leave a text to be indexed later.
INSERT INTO unindexed (seq) VALUES (?)

-- name: delete_unindexed
-- All texts are indexed.
DELETE FROM unindexed

-- name: insert_vector
-- Keep the vector of a text, with its checksum.
INSERT OR IGNORE INTO vectors (seq, vector, checksum) VALUES (?, ?, ?)

-- name: copy_vectors
-- Give texts the vectors of others (a JSON array of pairs of sequences) that are events of the same
-- kind, but for vectors that were altered.
INSERT OR IGNORE INTO vectors (seq, vector, checksum)
SELECT n.seq, x.vector, checksum(n.seq, x.vector)
FROM json_each(?1) w CROSS JOIN events n ON n.seq = w.value ->> 0
CROSS JOIN events o ON o.seq = w.value ->> 1 AND o.kind = n.kind
CROSS JOIN vectors x ON x.seq = o.seq
WHERE x.checksum = checksum(x.seq, x.vector) RETURNING seq

-- name: insert_waiting_vector
-- Keep the vector of a text, unless it stopped waiting for one: purged, or embedded elsewhere.
INSERT OR IGNORE INTO vectors (seq, vector, checksum)
SELECT ?1, ?2, checksum(?1, ?2) WHERE EXISTS (SELECT 1 FROM unembedded WHERE seq = ?1)

-- name: insert_unembedded
-- Remember that a text waits for its vector.
INSERT OR IGNORE INTO unembedded (seq) VALUES (?)

-- name: delete_unembedded
-- A text has its vector now.
DELETE FROM unembedded WHERE seq = ?

-- name: delete_vectors
-- Throw all vectors away; another embedder will make them again.
DELETE FROM vectors

-- name: queue_all_texts
-- Put every indexed text in line for a vector.
INSERT OR IGNORE INTO unembedded (seq) SELECT rowid >> 8 FROM texts

-- name: keep_tally
-- Record how many live records of a kind a branch shows after this transaction.
INSERT INTO tallies (branch, kind, seq, live) VALUES (?1, ?2, ?3, ?4)
ON CONFLICT DO UPDATE SET live = excluded.live

-- name: insert_branch
-- Record a new branch.
INSERT INTO branches (id, name, parent, fork_seq, deleted_seq) VALUES (?1, ?2, ?3, ?4, NULL)

-- name: set_branch_deleted
-- Mark a branch as deleted at a sequence, or as live.
UPDATE branches SET deleted_seq = ?2 WHERE id = ?1

-- name: insert_knowledge
-- Record what a branch knows after a merge.
INSERT INTO knows (branch, seq, vector) VALUES (?1, ?2, ?3)

-- name: request
-- The remembered result of a request.
SELECT fingerprint, result, first_seq, last_seq FROM requests WHERE actor = ?1 AND request = ?2

-- name: insert_request
-- Remember the result of a request.
INSERT INTO requests (actor, request, fingerprint, result, first_seq, last_seq)
VALUES (?1, ?2, ?3, ?4, ?5, ?6)

-- name: log_page
-- A page of the whole log, with the names its events speak of.
SELECT e.seq, e.at, e.wall, e.branch, e.kind, sp.kind, sp.namespace, s.key,
    e.actor, e.request, e.origin, e.payload, e.salt, e.content_hash, e.hash, e.space, e.subject
FROM events e LEFT JOIN spaces sp ON sp.id = e.space LEFT JOIN subjects s ON s.id = e.subject
WHERE e.seq > ?1 ORDER BY e.seq LIMIT ?2

-- name: subject_events
-- Every event about a subject, on any branch.
SELECT seq FROM events WHERE subject = ?1

-- name: copies
-- Every event that a merge made of some others (a JSON array of sequences).
SELECT e.seq FROM events e WHERE e.origin IN (SELECT value FROM json_each(?1))

-- name: erase_events
-- Remove what some events (a JSON array of sequences) said; their hashes stay.
UPDATE events SET payload = NULL, salt = NULL WHERE seq IN (SELECT value FROM json_each(?1))

-- name: erase_subject
-- Remove the name of a subject; its number stays.
UPDATE subjects SET key = ?2 WHERE id = ?1

-- name: erase_results
-- Remove remembered results that may quote some events (a JSON array of sequences), and the
-- fingerprints of their arguments, which have no salt: short ones could be guessed.
UPDATE requests SET result = NULL, fingerprint = x'' WHERE EXISTS (
    SELECT 1 FROM json_each(?1) w WHERE w.value BETWEEN first_seq AND last_seq)

-- name: erase_request
-- Remove one remembered result, and the fingerprint of its arguments.
UPDATE requests SET result = NULL, fingerprint = x'' WHERE actor = ?1 AND request = ?2

-- name: erase_vectors
-- Remove the vectors of some events (a JSON array of sequences).
DELETE FROM vectors WHERE seq IN (SELECT value FROM json_each(?1))

-- name: origin_of
-- Where an event that stands for itself came from.
SELECT origin FROM events WHERE seq = ?1 AND subject IS NULL AND space IS NOT NULL

-- name: adopt_vectors
-- Take over the vectors of texts that are still there, but for those that were altered.
INSERT OR IGNORE INTO vectors (seq, vector, checksum)
SELECT seq, vector, checksum FROM kept_vectors
WHERE seq IN (SELECT seq FROM unembedded) AND checksum = checksum(seq, vector) ORDER BY id

-- name: adopt_unchecked_vectors
-- The same from a table of an older version, which had no checksums.
INSERT OR IGNORE INTO vectors (seq, vector, checksum)
SELECT seq, vector, checksum(seq, vector) FROM kept_vectors
WHERE seq IN (SELECT seq FROM unembedded) ORDER BY id

-- name: kept_checksums
-- Whether the vectors that were set aside have checksums.
SELECT 1 FROM pragma_table_info('kept_vectors') WHERE name = 'checksum'

-- name: drop_kept_vectors
-- Nothing more is wanted of the old vectors.
DROP TABLE kept_vectors

-- name: drop_message_vectors
-- Vectors of messages that an older version made: their texts had the role and the label in them.
-- Some others may be among them, and are made anew for nothing.
DELETE FROM vectors WHERE seq IN (
    SELECT seq FROM events WHERE kind = 'EventLogged' AND instr(payload, CAST('"role":"' AS BLOB))
)

-- name: settle_unembedded
-- Texts that have a vector do not wait for one.
DELETE FROM unembedded WHERE seq IN (SELECT seq FROM vectors)

-- name: differences
-- A row of a read model that is in the one in use or in the one made anew, but not in both.
SELECT * FROM (SELECT * FROM main.{table} EXCEPT SELECT * FROM source.{table})
UNION ALL
SELECT * FROM (SELECT * FROM source.{table} EXCEPT SELECT * FROM main.{table})
LIMIT 1

-- name: source_unindexed
-- Texts that are to be indexed later in the database that is examined.
SELECT seq FROM source.unindexed

-- name: text_vocabularies
-- Every occurrence of every term, in the index in use and in the one made anew.
CREATE VIRTUAL TABLE temp.fresh_words USING fts5vocab (main, texts, instance);
CREATE VIRTUAL TABLE temp.used_words USING fts5vocab (source, texts, instance);
CREATE VIRTUAL TABLE temp.fresh_terms USING fts5vocab (main, texts, row);
CREATE VIRTUAL TABLE temp.used_terms USING fts5vocab (source, texts, row);

-- name: term_differences
-- A term that is not found where it is looked for: going through all terms uses no index of them.
SELECT f.term, f.doc FROM fresh_terms f
WHERE f.doc IS NOT (SELECT u.doc FROM used_terms u WHERE u.term = f.term) LIMIT 1

-- name: text_differences
-- An occurrence of a term that is in one index and not in the other.
SELECT * FROM (
    SELECT term, doc, col, offset FROM fresh_words
    EXCEPT SELECT term, doc, col, offset FROM used_words)
UNION ALL
SELECT * FROM (
    SELECT term, doc, col, offset FROM used_words
    EXCEPT SELECT term, doc, col, offset FROM fresh_words)
LIMIT 1

-- name: vector_differences
-- A text that has no vector and does not wait for one.
SELECT seq FROM main.unembedded
WHERE seq NOT IN (SELECT seq FROM source.vectors) AND seq NOT IN (SELECT seq FROM source.unembedded)
LIMIT 1

-- name: vector_strays
-- A vector of something that has no text.
SELECT seq FROM source.vectors WHERE seq NOT IN (SELECT seq FROM main.unembedded) LIMIT 1

-- name: queue_strays
-- Something that waits for a vector and has no text.
SELECT seq FROM source.unembedded WHERE seq NOT IN (SELECT seq FROM main.unembedded) LIMIT 1

-- name: altered_vectors
-- A vector that is not the one that was made.
SELECT seq FROM source.vectors WHERE checksum IS NOT checksum(seq, vector) LIMIT 1

-- name: sound_vectors
-- Vectors in the order of their commits; none where it is not the one that was made.
SELECT id, seq, CASE WHEN checksum = checksum(seq, vector) THEN vector END FROM vectors
WHERE id > ?1 ORDER BY id LIMIT ?2

-- name: length_differences
-- A text whose length the search index has wrong: its ranks then are.
SELECT * FROM (
    SELECT id, sz FROM main.texts_docsize EXCEPT SELECT id, sz FROM source.texts_docsize)
UNION ALL
SELECT * FROM (
    SELECT id, sz FROM source.texts_docsize EXCEPT SELECT id, sz FROM main.texts_docsize)
LIMIT 1

-- name: average_differences
-- The count and the average length of texts, where the search index has them wrong.
SELECT id, hex(block) FROM source.texts_data
WHERE id = 1 AND block IS NOT (SELECT block FROM main.texts_data WHERE id = 1)

-- name: seal_settings
-- Keep a checksum of all settings beside them.
INSERT INTO settings (name, value)
SELECT 'seal', checksum(0, group_concat(name || '=' || quote(value), char(10) ORDER BY name))
FROM settings WHERE name <> 'seal'
ON CONFLICT (name) DO UPDATE SET value = excluded.value

-- name: broken_seal
-- The seal of the settings, where they are not those that were sealed.
SELECT value FROM settings WHERE name = 'seal' AND value IS NOT (
    SELECT checksum(0, group_concat(name || '=' || quote(value), char(10) ORDER BY name))
    FROM settings WHERE name <> 'seal')

-- name: settings
-- All settings but the seal.
SELECT name, value FROM settings WHERE name <> 'seal'

-- name: objects
-- The tables and indexes of the file, with the page that each begins on.
SELECT type, name, tbl_name, rootpage FROM sqlite_schema WHERE type IN ('table', 'index')

-- name: projections
-- The read models elsewhere that want to be told of events.
SELECT name, kinds, built, processed, lease_owner, lease_until FROM projections ORDER BY name

-- name: register_projection
-- Remember a read model elsewhere; one that wants other kinds than before has to be made anew.
INSERT INTO projections (name, kinds) VALUES (?1, ?2)
ON CONFLICT (name) DO UPDATE SET kinds = excluded.kinds, built = NULL
WHERE projections.kinds <> excluded.kinds

-- name: delete_projection
-- Forget a read model elsewhere.
DELETE FROM projections WHERE name = ?1

-- name: delete_outbox
-- Forget all that waits for a projection.
DELETE FROM outbox WHERE projection = ?1

-- name: lease_projection
-- Take a projection (?1) for an owner (?2) until a time (?4), unless another has it now (?3). No
-- lease reaches beyond ?5, but by a clock that was wrong.
UPDATE projections SET lease_owner = ?2, lease_until = ?4
WHERE name = ?1 AND (lease_owner = ?2 OR lease_until <= ?3 OR lease_until > ?5) RETURNING name

-- name: set_built
-- Say what a projection was made with.
UPDATE projections SET built = ?2 WHERE name = ?1

-- name: count_processed
-- Count rows that were delivered.
UPDATE projections SET processed = processed + ?2 WHERE name = ?1

-- name: insert_outbox
-- Put an event in line for a projection.
INSERT INTO outbox (projection, seq, subject) VALUES (?, ?, ?)

-- name: requeue_outbox
-- Put an event in line again, unless it still is.
INSERT INTO outbox (projection, seq, subject) VALUES (?, ?, ?) ON CONFLICT DO NOTHING

-- name: outbox_due
-- The records with a pending row whose time has come, those that wait longest first. None waits
-- beyond ?4, but by a clock that was wrong.
SELECT subject, min(seq), max(seq), min(attempts) FROM outbox
WHERE projection = ?1 AND subject IN (
    SELECT subject FROM outbox
    WHERE projection = ?1 AND status = 'pending' AND (next_at <= ?2 OR next_at > ?4)
    ORDER BY seq LIMIT ?3)
GROUP BY subject ORDER BY min(seq)

-- name: outbox_waiting
-- Which of some records (a JSON array of subjects) have rows, and the oldest of each.
SELECT o.subject, min(o.seq)
FROM json_each(?2) w CROSS JOIN outbox o ON o.projection = ?1 AND o.subject = w.value
GROUP BY o.subject

-- name: outbox_any
-- Whether anything waits for a projection.
SELECT 1 FROM outbox WHERE projection = ?1 LIMIT 1

-- name: outbox_tally
-- How many rows of a projection there are of each status.
SELECT status, count(*) FROM outbox WHERE projection = ?1 GROUP BY status

-- name: outbox_rows
-- Rows of a projection: failed ones first, then the oldest.
SELECT seq, subject, status, attempts, next_at, error FROM outbox WHERE projection = ?1
ORDER BY status = 'pending', seq LIMIT ?2

-- name: settle_outbox
-- Take away the rows of some records (a JSON array of subjects) up to a sequence.
DELETE FROM outbox
WHERE projection = ?1 AND seq <= ?2 AND subject IN (SELECT value FROM json_each(?3)) RETURNING seq

-- name: settle_outbox_all
-- Take away every row of a projection up to a sequence.
DELETE FROM outbox WHERE projection = ?1 AND seq <= ?2 RETURNING seq

-- name: postpone_outbox
-- Put off the rows of a record up to a sequence, or give them up.
UPDATE outbox SET attempts = ?, next_at = ?, status = ?, error = ?
WHERE projection = ? AND subject = ? AND seq <= ?

-- name: retry_outbox
-- Make every row of a projection due at once.
UPDATE outbox SET status = 'pending', attempts = 0, next_at = 0 WHERE projection = ?1

-- name: purge_outbox
-- Nothing that was said about a record is quoted any longer.
UPDATE outbox SET error = NULL WHERE subject = ?1

-- name: requests_after
-- Remembered requests by actor and id, after one of them.
SELECT actor, request, fingerprint, result, first_seq, last_seq FROM requests
WHERE (actor, request) > (?1, ?2) ORDER BY actor, request LIMIT ?3

-- name: keep_request
-- Remember a request of another database, unless it is remembered already.
INSERT INTO requests (actor, request, fingerprint, result, first_seq, last_seq)
VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING

-- name: empty
-- Take everything out of a table.
DELETE FROM {table}
