-- Every statement the PostgreSQL store runs, by name.
--
-- $1 is the workspace in every one of them. {probes}, {visible}, {spaces}, {tags} are fragments that
-- `statements.py` expands for the depth of a lineage; a lineage's cuts (branch, limit) come last.
-- A statement with `unnest(…) AS rows` is run for any number of rows at once: each of its arrays is one
-- column of them (`rows.py`).

-- name: probe
-- Fragment: the latest version of a subject on one branch of a lineage.
(SELECT max(p.seq) FROM versions p WHERE p.workspace = $1 AND p.subject = {subject} AND p.branch = {branch} AND p.seq <= {limit})

-- name: own
-- Fragment: a version is the latest of its own branch at the branch's limit.
WHEN {branch} THEN v.seq <= {limit} AND (v.seq_to IS NULL OR v.seq_to > {limit})

-- name: borrowed
-- Fragment: the same for an ancestor, unless a nearer branch has a version of the subject.
WHEN {branch} THEN v.seq <= {limit} AND (v.seq_to IS NULL OR v.seq_to > {limit})
    AND (v.subject IS NULL OR v.seq = coalesce(NULL, {probes}))

-- name: visible
-- Fragment: a version can be seen in a view; $2 is the view's time.
NOT v.deleted AND (v.expires_at IS NULL OR v.expires_at > $2)
    AND CASE v.branch {arms} ELSE false END

-- name: lock_head
-- Wait for one's turn to write; what the server's clock says then, in microseconds.
SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint
FROM heads WHERE workspace = $1 FOR NO KEY UPDATE

-- name: tell
-- Tell every server how far the log has grown, once this is committed.
SELECT pg_notify('stratagem', $1::bigint || ':' || $2::bigint)

-- name: head
-- The newest event.
SELECT seq, at, hash FROM events WHERE workspace = $1 ORDER BY seq DESC LIMIT 1

-- name: head_to_write_after
-- The newest event, which version of the read models the workspace has come to, the mark of a copy
-- that is not finished, the embedder, whether there are projections, and the highest number of a
-- subject.
SELECT e.seq, e.at, e.hash, s.value, c.value, m.value,
    EXISTS (SELECT FROM projections p WHERE p.workspace = $1),
    (SELECT max(n.id) FROM subjects n WHERE n.workspace = $1)
FROM events e
LEFT JOIN settings s ON s.workspace = $1 AND s.name = 'read_models_version'
LEFT JOIN settings c ON c.workspace = $1 AND c.name = 'unfinished_copy'
LEFT JOIN settings m ON m.workspace = $1 AND m.name = 'embedder'
WHERE e.workspace = $1 ORDER BY e.seq DESC LIMIT 1

-- name: branch_by_name
-- The live branch of a name.
SELECT id, name, parent, fork_seq, deleted_seq FROM branches
WHERE workspace = $1 AND name = $2 AND deleted_seq IS NULL

-- name: branch_by_id
-- A branch, deleted or not.
SELECT id, name, parent, fork_seq, deleted_seq FROM branches WHERE workspace = $1 AND id = $2

-- name: branch_deleted
-- The branch of a name that was deleted last.
SELECT id, name, parent, fork_seq, deleted_seq FROM branches
WHERE workspace = $1 AND name = $2 AND deleted_seq IS NOT NULL ORDER BY deleted_seq DESC LIMIT 1

-- name: branches
-- All branches but those of transactions, oldest first.
SELECT id, name, parent, fork_seq, deleted_seq FROM branches
WHERE workspace = $1 AND name NOT BETWEEN chr(2) AND chr(3) ORDER BY id

-- name: branch_transactions
-- The branches of open transactions: their names begin with a character no caller can write.
SELECT id, name, parent, fork_seq, deleted_seq FROM branches
WHERE workspace = $1 AND deleted_seq IS NULL AND name BETWEEN chr(2) AND chr(3) ORDER BY id

-- name: transaction_versions
-- What was written in transactions that are over, and what ended each.
SELECT v.seq, b.deleted_seq FROM branches b
JOIN versions v ON v.workspace = $1 AND v.branch = b.id
WHERE b.workspace = $1 AND b.deleted_seq IS NOT NULL AND b.name BETWEEN chr(2) AND chr(3)

-- name: branch_count
-- How many branches are live, those of transactions left out.
SELECT count(*) FROM branches
WHERE workspace = $1 AND deleted_seq IS NULL AND name NOT BETWEEN chr(2) AND chr(3)

-- name: sequence_at
-- The last event at or before a time.
SELECT seq FROM events WHERE workspace = $1 AND at <= $2 ORDER BY at DESC, seq DESC LIMIT 1

-- name: time_of
-- The recorded time of an event.
SELECT at FROM events WHERE workspace = $1 AND seq = $2

-- name: wall_of
-- What the clock said when an event was written.
SELECT wall FROM events WHERE workspace = $1 AND seq = $2

-- name: sequence_ahead
-- The last event up to a time of the clock, among those that were recorded ahead of it.
SELECT seq FROM events WHERE workspace = $1 AND at - wall > 1000000 AND wall <= $2 AND at > $2
ORDER BY wall DESC, seq DESC LIMIT 1

-- name: hash_of
-- The hash of an event.
SELECT hash FROM events WHERE workspace = $1 AND seq = $2

-- name: event_space
-- The number of a space.
SELECT id FROM spaces WHERE workspace = $1 AND kind = $2 AND namespace = $3

-- name: spaces
-- All spaces.
SELECT id, kind, namespace FROM spaces WHERE workspace = $1 ORDER BY id

-- name: recall
-- The newest version of a record in a view. It gives no row when the branch is not live.
SELECT e.seq, e.at, e.kind, e.payload, e.actor, e.salt, e.content_hash
FROM subjects s JOIN events e ON e.workspace = $1 AND e.seq = coalesce(NULL, {probes})
WHERE (SELECT b.deleted_seq FROM branches b WHERE b.workspace = $1 AND b.id = $4) IS NULL
    AND s.workspace = $1 AND s.space = $2 AND s.key = $3

-- name: current_many
-- The newest versions of some subjects (an array of their numbers) in a view.
SELECT s.id, sp.kind, sp.namespace, s.key, e.seq, e.at, e.kind, e.payload, e.actor, e.salt,
    e.content_hash
FROM subjects s
JOIN spaces sp ON sp.workspace = $1 AND sp.id = s.space
JOIN events e ON e.workspace = $1 AND e.seq = coalesce(NULL, {probes})
WHERE s.workspace = $1 AND s.id = ANY ($2::bigint[])

-- name: subject_names
-- The names of some subjects (an array of their numbers).
SELECT s.id, sp.kind, sp.namespace, s.key
FROM subjects s JOIN spaces sp ON sp.workspace = $1 AND sp.id = s.space
WHERE s.workspace = $1 AND s.id = ANY ($2::bigint[])

-- name: subject_keys
-- The keys of some subjects (an array of their numbers).
SELECT id, key FROM subjects WHERE workspace = $1 AND id = ANY ($2::bigint[])

-- name: newest_version
-- Which version of a subject a view shows, whether it is a deletion, and when it expires.
SELECT v.seq, v.branch, v.deleted, v.expires_at FROM versions v
WHERE v.workspace = $1 AND v.seq = coalesce(NULL, {probes})

-- name: newest_versions
-- The same for some subjects (an array of their numbers).
SELECT w.value, v.seq, v.branch, v.deleted, v.expires_at
FROM unnest($2::bigint[]) AS w (value)
JOIN versions v ON v.workspace = $1 AND v.seq = coalesce(NULL, {probes})

-- name: history
-- The versions of a record on one branch of a lineage, newest first.
SELECT e.seq, e.at, e.kind, e.payload, e.actor, e.salt, e.content_hash
FROM subjects s
JOIN versions v ON v.workspace = $1 AND v.subject = s.id AND v.branch = $4 AND v.seq <= $5
JOIN events e ON e.workspace = $1 AND e.seq = v.seq
WHERE s.workspace = $1 AND s.space = $2 AND s.key = $3
ORDER BY v.seq DESC LIMIT $6

-- name: versions_in
-- The versions of all records of a space on one branch of a lineage, newest first.
SELECT s.key, e.seq, e.at, e.kind, e.payload, e.actor, e.salt, e.content_hash
FROM subjects s
JOIN versions v ON v.workspace = $1 AND v.subject = s.id AND v.branch = $3 AND v.seq <= $4
JOIN events e ON e.workspace = $1 AND e.seq = v.seq
WHERE s.workspace = $1 AND s.space = $2
ORDER BY v.seq DESC LIMIT $5

-- name: records
-- A page of the records of a space, by key, each at its newest version in a view.
SELECT s.key, e.seq, e.at, e.kind, e.payload, e.actor, e.salt, e.content_hash
FROM subjects s JOIN events e ON e.workspace = $1 AND e.seq = coalesce(NULL, {probes})
WHERE s.workspace = $1 AND s.space = $2 AND s.key > $3 ORDER BY s.key LIMIT $4

-- name: stream
-- A page of the events of a space that stand for themselves, oldest first.
SELECT e.seq, e.at, e.kind, e.payload, e.actor, e.salt, e.content_hash
FROM versions v JOIN events e ON e.workspace = $1 AND e.seq = v.seq
WHERE v.workspace = $1 AND v.branch = $2 AND v.seq > $3 AND v.seq <= $4 AND v.space = $5
    AND v.subject IS NULL AND NOT v.deleted
ORDER BY v.seq LIMIT $6

-- name: first_event
-- The first event that changed anything on a branch up to a sequence, in some spaces (an array, or
-- null for all of them).
SELECT e.seq, e.at FROM versions v JOIN events e ON e.workspace = $1 AND e.seq = v.seq
WHERE v.workspace = $1 AND v.branch = $2 AND v.seq <= $3
    AND ($4::bigint[] IS NULL OR v.space = ANY ($4::bigint[]))
ORDER BY v.seq LIMIT 1

-- name: last_event
-- The last event that changed anything on a branch up to a sequence, in some spaces.
SELECT e.seq, e.at FROM versions v JOIN events e ON e.workspace = $1 AND e.seq = v.seq
WHERE v.workspace = $1 AND v.branch = $2 AND v.seq <= $3
    AND ($4::bigint[] IS NULL OR v.space = ANY ($4::bigint[]))
ORDER BY v.seq DESC LIMIT 1

-- name: tally
-- How many live records of a kind a branch showed after a sequence.
SELECT live FROM tallies
WHERE workspace = $1 AND branch = $2 AND kind = $3 AND seq <= $4 ORDER BY seq DESC LIMIT 1

-- name: expired
-- How many records of a kind would be visible in a view had they not expired by $2.
SELECT count(*)
FROM versions v JOIN spaces sp ON sp.workspace = $1 AND sp.id = v.space AND sp.kind = $3
WHERE v.workspace = $1 AND v.expires_at <= $2 AND NOT v.deleted
    AND CASE v.branch {arms} ELSE false END

-- name: compared_subjects
-- The subjects a branch changed after one sequence and up to another: the latest version of each
-- there, and the one that a view shows.
SELECT v.subject, v.space, v.seq, v.deleted, v.expires_at, o.seq, o.deleted, o.expires_at
FROM versions v LEFT JOIN versions o ON o.workspace = $1 AND o.seq = coalesce(NULL, {probes})
WHERE v.workspace = $1 AND v.branch = $2 AND v.seq > $3 AND v.seq <= $4 AND v.subject IS NOT NULL
    AND (v.seq_to IS NULL OR v.seq_to > $4)

-- name: shown_versions
-- Which versions a view shows of some subjects (an array of their numbers).
SELECT w.value, v.space, v.seq, v.deleted, v.expires_at
FROM unnest($2::bigint[]) AS w (value)
JOIN versions v ON v.workspace = $1 AND v.seq = coalesce(NULL, {probes})

-- name: expired_subjects
-- The subjects of which a version expires after one time and up to another.
SELECT DISTINCT subject FROM versions
WHERE workspace = $1 AND expires_at > $2 AND expires_at <= $3 AND subject IS NOT NULL

-- name: last_expiry
-- When the version that expired last before a time, or at it, did so.
SELECT max(expires_at) FROM versions WHERE workspace = $1 AND expires_at <= $2

-- name: changed_subjects
-- The subjects a branch changed after one sequence and up to another.
SELECT DISTINCT subject FROM versions
WHERE workspace = $1 AND branch = $2 AND seq > $3 AND seq <= $4 AND subject IS NOT NULL

-- name: changed_stream
-- The events standing for themselves that a branch gained between two sequences.
SELECT e.branch, e.origin, sp.kind, sp.namespace, e.seq, e.at, e.kind, e.payload, e.actor, e.salt, e.content_hash
FROM versions v
JOIN events e ON e.workspace = $1 AND e.seq = v.seq
JOIN spaces sp ON sp.workspace = $1 AND sp.id = v.space
WHERE v.workspace = $1 AND v.branch = $2 AND v.seq > $3 AND v.seq <= $4
    AND v.subject IS NULL AND NOT v.deleted
ORDER BY v.seq

-- name: branch_of
-- The branch an event was written to.
SELECT branch FROM events WHERE workspace = $1 AND seq = $2

-- name: known_versions
-- For each subject of an array, its newest version on each branch that a vector (JSON) knows.
SELECT v.subject, v.branch, max(v.seq)
FROM jsonb_each_text($3::jsonb) k
JOIN versions v ON v.workspace = $1 AND v.branch = k.key::bigint AND v.seq <= k.value::bigint
WHERE v.subject = ANY ($2::bigint[])
GROUP BY v.subject, v.branch

-- name: doubtful_versions
-- Those of some versions (an array of sequences) that are not within a vector ($4, JSON), or have a
-- later one of their subject within another ($3).
SELECT v.seq FROM versions v
WHERE v.workspace = $1 AND v.seq = ANY ($2::bigint[]) AND (
    NOT EXISTS (
        SELECT 1 FROM jsonb_each_text($4::jsonb) c
        WHERE c.key::bigint = v.branch AND v.seq <= c.value::bigint)
    OR EXISTS (
        SELECT 1 FROM versions n
        JOIN jsonb_each_text($3::jsonb) k ON n.branch = k.key::bigint AND n.seq <= k.value::bigint
        WHERE n.workspace = $1 AND n.subject = v.subject AND n.seq > v.seq))

-- name: versions_of
-- All versions of a subject: where each was written, when it expires, and what it was made from.
SELECT v.seq, v.branch, v.expires_at, e.origin
FROM versions v JOIN events e ON e.workspace = $1 AND e.seq = v.seq
WHERE v.workspace = $1 AND v.subject = $2 ORDER BY v.seq

-- name: knows
-- What a branch knew of others after its latest merge up to a sequence.
SELECT vector FROM knows
WHERE workspace = $1 AND branch = $2 AND seq <= $3 ORDER BY seq DESC LIMIT 1

-- name: merges
-- The latest merges: into which branch, and by which event.
SELECT branch, seq FROM knows WHERE workspace = $1 ORDER BY seq DESC LIMIT $2

-- name: payloads
-- The payloads of some events (an array of sequences).
SELECT sp.kind, sp.namespace, s.key, e.seq, e.at, e.kind, e.payload, e.actor, e.salt, e.content_hash
FROM events e
LEFT JOIN spaces sp ON sp.workspace = $1 AND sp.id = e.space
LEFT JOIN subjects s ON s.workspace = $1 AND s.id = e.subject
WHERE e.workspace = $1 AND e.seq = ANY ($2::bigint[])

-- name: record_payloads
-- The payloads of some events (an array of sequences), and what they are checked with.
SELECT seq, payload, salt, content_hash FROM events
WHERE workspace = $1 AND seq = ANY ($2::bigint[])

-- name: hits
-- All that a search result shows of some events (an array of sequences).
SELECT sp.kind, sp.namespace, s.key, e.seq, e.at, e.kind, e.payload, e.actor, e.salt, e.content_hash
FROM events e
JOIN spaces sp ON sp.workspace = $1 AND sp.id = e.space
LEFT JOIN subjects s ON s.workspace = $1 AND s.id = e.subject
WHERE e.workspace = $1 AND e.seq = ANY ($2::bigint[])

-- name: visible_among
-- Which of some versions (an array of sequences) a view shows.
SELECT v.seq FROM versions v WHERE v.workspace = $1 AND v.seq = ANY ($3::bigint[]) AND {visible}

-- name: any_expires
-- Whether any version expires.
SELECT EXISTS (SELECT FROM versions WHERE workspace = $1 AND expires_at IS NOT NULL)::int

-- name: faceted
-- The newest versions with a facet that a view shows, older than one of them.
SELECT v.seq FROM tags t JOIN versions v ON v.workspace = $1 AND v.seq = t.seq
WHERE t.workspace = $1 AND t.tag = $3 AND t.seq < $5 AND {visible}
ORDER BY t.seq DESC LIMIT nullif($4, -1)

-- name: facets_containing
-- The versions that a view shows with a facet between two, in which a text occurs.
SELECT v.seq FROM tags t JOIN versions v ON v.workspace = $1 AND v.seq = t.seq
WHERE t.workspace = $1 AND t.tag >= $3 AND t.tag < $4
    AND strpos(substr(t.tag, length($3) + 1), $5) > 0 AND {visible}
LIMIT nullif($6, -1)

-- name: key_count
-- How many keys a space has between two, up to a number.
SELECT count(*) FROM (
    SELECT FROM subjects
    WHERE workspace = $1 AND space = $2 AND key >= $3 AND key < $4 LIMIT $5) AS found

-- name: tag_count
-- How many versions ever had a tag, up to a number.
SELECT count(*) FROM (SELECT FROM tags WHERE workspace = $1 AND tag = $2 LIMIT $3) AS found

-- name: listed_by_key
-- The records of a space that a view shows, by key, between two keys, with every one of some tags.
SELECT s.key, v.seq
FROM subjects s JOIN versions v ON v.workspace = $1 AND v.seq = coalesce(NULL, {probes})
WHERE s.workspace = $1 AND s.space = $3 AND s.key >= $4 AND s.key < $5
    AND NOT v.deleted AND (v.expires_at IS NULL OR v.expires_at > $2)
    AND NOT EXISTS (SELECT FROM unnest($6::text[]) w (tag) WHERE NOT EXISTS (
        SELECT FROM tags t WHERE t.workspace = $1 AND t.tag = w.tag AND t.seq = v.seq))
ORDER BY s.key LIMIT $7

-- name: tagged_by_key
-- The same, gathered by one of the tags and sorted.
SELECT s.key, v.seq
FROM tags d JOIN versions v ON v.workspace = $1 AND v.seq = d.seq
JOIN subjects s ON s.workspace = $1 AND s.id = v.subject
WHERE d.workspace = $1 AND d.tag = $8 AND v.space = $3 AND s.key >= $4 AND s.key < $5
    AND {visible}
    AND NOT EXISTS (SELECT FROM unnest($6::text[]) w (tag) WHERE NOT EXISTS (
        SELECT FROM tags t WHERE t.workspace = $1 AND t.tag = w.tag AND t.seq = v.seq))
ORDER BY s.key LIMIT $7

-- name: gathered_newest
-- The records of a space that a view shows between two keys, older than one; gathered and sorted.
SELECT v.seq
FROM subjects s JOIN versions v ON v.workspace = $1 AND v.seq = coalesce(NULL, {probes})
WHERE s.workspace = $1 AND s.space = $3 AND s.key >= $4 AND s.key < $5
    AND NOT v.deleted AND (v.expires_at IS NULL OR v.expires_at > $2) AND v.seq < $6
ORDER BY v.seq DESC LIMIT $7

-- name: walked_down
-- The versions of a space that a view shows of one branch between two sequences, newest first.
SELECT v.seq FROM versions v
WHERE v.workspace = $1 AND v.branch = $3 AND v.seq > $4 AND v.seq < $5 AND v.space = $6
    AND {visible}
    AND ($7::text = '' OR EXISTS (
        SELECT FROM subjects s
        WHERE s.workspace = $1 AND s.id = v.subject AND s.key >= $7 AND s.key < $8))
ORDER BY v.seq DESC LIMIT $9

-- name: walked_up
-- The same, oldest first.
SELECT v.seq FROM versions v
WHERE v.workspace = $1 AND v.branch = $3 AND v.seq > $4 AND v.seq < $5 AND v.space = $6
    AND {visible}
    AND ($7::text = '' OR EXISTS (
        SELECT FROM subjects s
        WHERE s.workspace = $1 AND s.id = v.subject AND s.key >= $7 AND s.key < $8))
ORDER BY v.seq LIMIT $9

-- name: tagged_down
-- The versions of a space that a view shows with every one of some tags, newest first; found by $3.
SELECT v.seq FROM tags d JOIN versions v ON v.workspace = $1 AND v.seq = d.seq
WHERE d.workspace = $1 AND d.tag = $3 AND d.seq > $4 AND d.seq < $5 AND v.space = $6 AND {visible}
    AND NOT EXISTS (SELECT FROM unnest($7::text[]) w (tag) WHERE NOT EXISTS (
        SELECT FROM tags t WHERE t.workspace = $1 AND t.tag = w.tag AND t.seq = v.seq))
    AND ($8::text = '' OR EXISTS (
        SELECT FROM subjects s
        WHERE s.workspace = $1 AND s.id = v.subject AND s.key >= $8 AND s.key < $9))
ORDER BY d.seq DESC LIMIT $10

-- name: tagged_up
-- The same, oldest first.
SELECT v.seq FROM tags d JOIN versions v ON v.workspace = $1 AND v.seq = d.seq
WHERE d.workspace = $1 AND d.tag = $3 AND d.seq > $4 AND d.seq < $5 AND v.space = $6 AND {visible}
    AND NOT EXISTS (SELECT FROM unnest($7::text[]) w (tag) WHERE NOT EXISTS (
        SELECT FROM tags t WHERE t.workspace = $1 AND t.tag = w.tag AND t.seq = v.seq))
    AND ($8::text = '' OR EXISTS (
        SELECT FROM subjects s
        WHERE s.workspace = $1 AND s.id = v.subject AND s.key >= $8 AND s.key < $9))
ORDER BY d.seq LIMIT $10

-- name: space_counts
-- How many versions a view shows in each of some spaces (an array), and the newest of them.
SELECT v.space, count(*), max(v.seq) FROM versions v
WHERE v.workspace = $1 AND v.space = ANY ($3::bigint[]) AND {visible} GROUP BY v.space

-- name: tag_counts
-- How many versions a view shows with each tag from $4 on, in some spaces (an array).
SELECT d.tag, count(*) FROM tags d JOIN versions v ON v.workspace = $1 AND v.seq = d.seq
WHERE d.workspace = $1 AND d.tag >= $4 AND v.space = ANY ($3::bigint[]) AND {visible}
GROUP BY d.tag ORDER BY count(*) DESC, d.tag LIMIT $5

-- name: namespaces_with
-- The namespaces in which a view shows a record of a kind under a key.
SELECT sp.namespace
FROM spaces sp JOIN subjects s ON s.workspace = $1 AND s.space = sp.id AND s.key = $4
JOIN versions v ON v.workspace = $1 AND v.seq = coalesce(NULL, {probes})
WHERE sp.workspace = $1 AND sp.kind = $3
    AND NOT v.deleted AND (v.expires_at IS NULL OR v.expires_at > $2)
ORDER BY v.seq DESC LIMIT $5

-- name: linked
-- What can be reached from some nodes (an array of subjects) in a view, either way; in the order of
-- these nodes. Each node is ordered by itself, as the index is: so a limit takes the strongest, and
-- ends the search.
SELECT node, outgoing, label, weight, seq, other FROM (
    SELECT w.place, found.*
    FROM unnest($3::bigint[]) WITH ORDINALITY w (node, place)
    CROSS JOIN LATERAL (
        SELECT l.node, l.outgoing, l.label, l.weight, l.seq, l.other
        FROM links l JOIN versions v ON v.workspace = $1 AND v.seq = l.seq
        WHERE l.workspace = $1 AND l.node = w.node AND {visible}
        ORDER BY l.outgoing, l.label, l.weight DESC, l.seq LIMIT nullif($4, -1)) found
    LIMIT nullif($4, -1)) few
ORDER BY place, outgoing, label, weight DESC, seq

-- name: linked_by
-- What can be reached from some nodes (an array of subjects) in a view, by one kind of link; in the
-- order of these nodes, the strongest of each first, as in `linked`.
SELECT node, outgoing, label, weight, seq, other FROM (
    SELECT w.place, found.*
    FROM unnest($3::bigint[]) WITH ORDINALITY w (node, place)
    CROSS JOIN LATERAL (
        SELECT l.node, l.outgoing, l.label, l.weight, l.seq, l.other
        FROM links l JOIN versions v ON v.workspace = $1 AND v.seq = l.seq
        WHERE l.workspace = $1 AND l.node = w.node AND l.outgoing = $5 AND l.label = $6
            AND {visible}
        ORDER BY l.weight DESC, l.seq LIMIT nullif($4, -1)) found
    LIMIT nullif($4, -1)) few
ORDER BY place, weight DESC, seq

-- name: strongest_links
-- The strongest links of one kind of a node, to records that a view shows.
SELECT l.node, l.outgoing, l.label, l.weight, l.seq, l.other
FROM links l JOIN versions v ON v.workspace = $1 AND v.seq = l.seq
WHERE l.workspace = $1 AND l.node = $3 AND l.outgoing = $4 AND l.label = $5 AND {visible}
    AND NOT (SELECT o.deleted FROM versions o
        WHERE o.workspace = $1 AND o.seq = coalesce(NULL, {probes}))
ORDER BY l.weight DESC, l.seq LIMIT nullif($6, -1)

-- name: link_count
-- How many links some nodes (an array of subjects) ever had, up to a number.
SELECT count(*) FROM (
    SELECT 1 FROM links l WHERE l.workspace = $1 AND l.node = ANY ($2::bigint[]) LIMIT $3) few

-- name: ordered_up
-- The versions of a space that a view shows, in order of a number, after one of them.
SELECT n.value, n.seq FROM numbers n JOIN versions v ON v.workspace = $1 AND v.seq = n.seq
WHERE n.workspace = $1 AND n.space = $3 AND n.name = $4 AND (n.value, n.seq) > ($5, $6)
    AND n.value <= $7 AND {visible}
ORDER BY n.value, n.seq LIMIT nullif($8, -1)

-- name: ordered_down
-- The versions of a space that a view shows, in falling order of a number, after one of them.
SELECT n.value, n.seq FROM numbers n JOIN versions v ON v.workspace = $1 AND v.seq = n.seq
WHERE n.workspace = $1 AND n.space = $3 AND n.name = $4 AND (n.value, n.seq) < ($5, $6)
    AND n.value >= $7 AND {visible}
ORDER BY n.value DESC, n.seq DESC LIMIT nullif($8, -1)

-- name: group_tallies
-- The tallies between two names that a branch had at a sequence; it skips from name to name.
WITH RECURSIVE names (kind) AS (
    SELECT min(t.kind) FROM tallies t
    WHERE t.workspace = $1 AND t.branch = $2 AND t.kind > $4 AND t.kind < $5
    UNION ALL
    SELECT (SELECT min(t.kind) FROM tallies t
        WHERE t.workspace = $1 AND t.branch = $2 AND t.kind > names.kind AND t.kind < $5)
    FROM names WHERE names.kind IS NOT NULL
)
SELECT names.kind, (SELECT t.live FROM tallies t
    WHERE t.workspace = $1 AND t.branch = $2 AND t.kind = names.kind AND t.seq <= $3
    ORDER BY t.seq DESC LIMIT 1)
FROM names WHERE names.kind IS NOT NULL

-- name: version_count
-- How many events changed records of a kind, on any branch.
SELECT count(*) FROM versions v JOIN spaces sp ON sp.workspace = $1 AND sp.id = v.space
WHERE v.workspace = $1 AND sp.kind = $2

-- name: tagged
-- The versions that carry every tag of an array.
SELECT seq FROM tags WHERE workspace = $1 AND tag = ANY ($2::text[])
GROUP BY seq HAVING count(*) = $3

-- name: spaces_filter
-- Fragment: only these spaces (an array of their numbers).
AND v.space = ANY ($4::bigint[])

-- name: tags_filter
-- Fragment: only versions that carry every one of these tags (an array).
AND v.seq IN (
    SELECT t.seq FROM tags t WHERE t.workspace = $1 AND t.tag = ANY ($5::text[])
    GROUP BY t.seq HAVING count(*) = $6)

-- name: matches
-- The best passages for some terms (all of them in $7) in a view, by BM25 as FTS5 computes it. Those
-- that the view does not show count in how rare a term is. {frequencies}, {rarities} and {score}
-- have one item for each term. A version is looked up by its key (OFFSET keeps it so): a server
-- that has not counted the rows yet would go through all versions for each text.
WITH found AS MATERIALIZED (
    SELECT x.seq, x.passage, x.tokens, {frequencies}
    FROM texts x WHERE x.workspace = $1 AND x.terms @@ $7::tsquery
), rarity AS MATERIALIZED (
    SELECT t.tokens / t.texts::float8 AS average, {rarities}
    FROM found f JOIN text_totals t ON t.workspace = $1 GROUP BY t.texts, t.tokens
)
SELECT f.seq, f.passage, {score} AS score
FROM found f CROSS JOIN rarity r CROSS JOIN LATERAL (
    SELECT FROM versions v
    WHERE v.workspace = $1 AND v.seq = f.seq AND {visible} {spaces} {tags} OFFSET 0
) shown
ORDER BY score DESC, f.seq DESC, f.passage LIMIT $3

-- name: passages
-- The same, whichever view shows them.
WITH found AS MATERIALIZED (
    SELECT x.seq, x.passage, x.tokens, {frequencies}
    FROM texts x WHERE x.workspace = $1 AND x.terms @@ $7::tsquery
), rarity AS MATERIALIZED (
    SELECT t.tokens / t.texts::float8 AS average, {rarities}
    FROM found f JOIN text_totals t ON t.workspace = $1 GROUP BY t.texts, t.tokens
)
SELECT f.seq, f.passage, {score} AS score FROM found f CROSS JOIN rarity r
ORDER BY score DESC, f.seq DESC, f.passage LIMIT $3

-- name: shown_traits
-- Which of some texts (an array of sequences) a search in a view may find: how many characters they
-- have, and whether they have a facet.
SELECT v.seq, v.chars, EXISTS (
    SELECT FROM tags t WHERE t.workspace = $1 AND t.tag = $7 AND t.seq = v.seq)
FROM versions v WHERE v.workspace = $1 AND v.seq = ANY ($3::bigint[]) AND {visible} {spaces} {tags}

-- name: versions_with_tag
-- Some versions that have a tag, whichever view shows them.
SELECT seq FROM tags WHERE workspace = $1 AND tag = $2 LIMIT $3

-- name: term_frequency
-- Fragment: how often a term ({term} is its parameter) occurs in each field, as one number.
(x.frequencies -> {term}::text)::int AS f{number}

-- name: term_rarity
-- Fragment: how much a term tells; one that is in most texts tells next to nothing.
CASE WHEN count(f.f{number}) * 2 >= t.texts THEN 1e-6::float8
    ELSE ln((t.texts - count(f.f{number}) + 0.5::float8) / (count(f.f{number}) + 0.5::float8))
END AS r{number}

-- name: term_weight
-- Fragment: a term's frequency, with the weight of each field.
((f.f{number} >> 16) * $8::float8 + (f.f{number} & 255) * $9::float8
    + (f.f{number} >> 8 & 255) * $10::float8)

-- name: term_score
-- Fragment: what one term adds to a text's score.
coalesce(r.r{number} * {weight} * 2.2::float8
    / ({weight} + 1.2::float8 * (0.25::float8 + 0.75::float8 * f.tokens / r.average)), 0)

-- name: term_documents
-- In how many passages a term occurs.
SELECT count(*) FROM texts WHERE workspace = $1 AND terms @@ $2::tsquery

-- name: text_totals
-- How many passages there are.
SELECT texts FROM text_totals WHERE workspace = $1

-- name: count_texts
-- Passages were added, with so many tokens.
INSERT INTO text_totals (workspace, texts, tokens)
SELECT $1, sum(rows.texts), sum(rows.tokens)
FROM unnest($2::bigint[], $3::bigint[]) AS rows (texts, tokens)
ON CONFLICT (workspace) DO UPDATE SET
    texts = text_totals.texts + excluded.texts, tokens = text_totals.tokens + excluded.tokens

-- name: turns_before
-- The last messages of a session on one branch, up to a sequence.
SELECT seq FROM turns
WHERE workspace = $1 AND space = (SELECT id FROM spaces WHERE workspace = $1 AND kind = $2 AND namespace = $3)
    AND session = $4 AND branch = $5 AND seq <= $6
ORDER BY seq DESC LIMIT $7

-- name: turns_after
-- The next messages of a session on one branch, between two sequences.
SELECT seq FROM turns
WHERE workspace = $1 AND space = (SELECT id FROM spaces WHERE workspace = $1 AND kind = $2 AND namespace = $3)
    AND session = $4 AND branch = $5 AND seq > $6 AND seq <= $7
ORDER BY seq LIMIT $8

-- name: turns
-- The last messages of a session on one branch of a lineage.
SELECT seq FROM turns
WHERE workspace = $1 AND space = $2 AND session = $3 AND branch = $4 AND seq <= $5
ORDER BY seq DESC LIMIT $6

-- name: vectors_after
-- Vectors in the order of their commits, with what a filter needs to know.
SELECT x.id, x.seq, v.branch, v.space, v.seq_to, vector_send(x.vector)
FROM vectors x JOIN versions v ON v.workspace = $1 AND v.seq = x.seq
WHERE x.workspace = $1 AND x.id > $2 ORDER BY x.id LIMIT $3

-- name: cosines
-- How near some texts (an array of sequences) are to a vector. All have the length 1 or, where an
-- embedder made nothing of a text, 0: the inner product is the cosine, and 0 where there is none.
SELECT seq, -(vector <#> $3::vector) FROM vectors
WHERE workspace = $1 AND seq = ANY ($2::bigint[])

-- name: nearest_indexed
-- The versions of a view nearest to a vector, as the workspace's own index finds them. The numbers
-- are written into the statement: an index for one workspace is used for no parameter.
SELECT seq, -(vector <#> $7::vector) AS cosine FROM (
    SELECT x.seq, x.vector
    FROM vectors x JOIN versions v ON v.workspace = {workspace} AND v.seq = x.seq
    WHERE x.workspace = {workspace} AND vector_dims(x.vector) = {dimensions}
        AND {visible} {spaces} {tags}
    ORDER BY x.vector::halfvec({dimensions}) <#> $7::vector::halfvec({dimensions}) LIMIT $3
) best ORDER BY cosine DESC, seq DESC

-- name: build_vector_index
-- An index for one workspace, made while others write. Shared by all, it would be searched in vain.
CREATE INDEX CONCURRENTLY IF NOT EXISTS vectors_near_{workspace}_{dimensions} ON vectors
USING hnsw ((vector::halfvec({dimensions})) halfvec_ip_ops)
WHERE workspace = {workspace} AND vector_dims(vector) = {dimensions}

-- name: lock_vector_index
-- Keep other servers from building the workspace's index; held until the connection ends.
SELECT pg_try_advisory_lock(hashtextextended('stratagem.vectors_near_' || $1::bigint, 0))

-- name: vector_index_left
-- Whether building the index was begun and never finished.
SELECT coalesce((SELECT NOT indisvalid FROM pg_index WHERE indexrelid = to_regclass(
    'stratagem.vectors_near_' || $1::bigint || '_' || $2::bigint)), false)

-- name: drop_vector_index
-- Take away an index that was never finished, while others write.
DROP INDEX CONCURRENTLY IF EXISTS vectors_near_{workspace}_{dimensions}

-- name: vector_type
-- The number of pgvector's type in this database.
SELECT 'vector'::regtype::oid::bigint

-- name: vector_dimensions
-- How many numbers the newest vector has.
SELECT vector_dims(vector) FROM vectors WHERE workspace = $1 ORDER BY id DESC LIMIT 1

-- name: nearest_exact
-- The versions of a view nearest to a vector, each compared.
SELECT x.seq, -(x.vector <#> $7::vector) AS cosine
FROM vectors x JOIN versions v ON v.workspace = $1 AND v.seq = x.seq
WHERE x.workspace = $1 AND {visible} {spaces} {tags}
ORDER BY cosine DESC, x.seq DESC LIMIT $3

-- name: compared_exact
-- The same, and how near some others (an array of sequences) are: all are compared anyway.
WITH compared AS MATERIALIZED (
    SELECT x.seq, -(x.vector <#> $7::vector) AS cosine
    FROM vectors x JOIN versions v ON v.workspace = $1 AND v.seq = x.seq
    WHERE x.workspace = $1 AND {visible} {spaces} {tags}
)
(SELECT seq, cosine, 1 FROM compared ORDER BY cosine DESC, seq DESC LIMIT $3)
UNION ALL SELECT seq, cosine, 0 FROM compared WHERE seq = ANY ($8::bigint[])

-- name: compared_first
-- The same without a filter: the nearest of all are looked for first, and whether a view shows them is
-- looked up for these alone. The last row says how many were looked for: a view may show too few
-- of them.
SELECT seq, cosine, 1 FROM (
    SELECT n.seq, n.cosine
    FROM (
        SELECT x.seq, -(x.vector <#> $4::vector) AS cosine FROM vectors x WHERE x.workspace = $1
        ORDER BY cosine DESC, x.seq DESC LIMIT 5 * $3
    ) n CROSS JOIN LATERAL (
        SELECT FROM versions v WHERE v.workspace = $1 AND v.seq = n.seq AND {visible} OFFSET 0
    ) shown
    ORDER BY n.cosine DESC, n.seq DESC LIMIT $3
) nearest
UNION ALL SELECT seq, -(vector <#> $4::vector), 0 FROM vectors
WHERE workspace = $1 AND seq = ANY ($5::bigint[])
UNION ALL SELECT count(*), 0, 2 FROM (
    SELECT FROM vectors WHERE workspace = $1 LIMIT 5 * $3) looked_for

-- name: versions_in_space
-- The versions of a space after a sequence, with what decides whether a view shows them.
SELECT seq, branch, seq_to FROM versions
WHERE workspace = $1 AND space = $2 AND seq > $3 AND NOT deleted
ORDER BY seq LIMIT $4

-- name: numbered
-- Versions of a space one of whose numbers lies between two.
SELECT seq FROM numbers
WHERE workspace = $1 AND space = $2 AND name = $3 AND value >= $4 AND value <= $5

-- name: nearest_own
-- The vectors of callers' own that a view shows nearest to a vector, each compared.
SELECT x.seq, {score} AS score
FROM own_vectors x JOIN versions v ON v.workspace = $1 AND v.seq = x.seq
WHERE x.workspace = $1 AND vector_dims(x.vector) = {dimension} AND {visible} {spaces} {among}
ORDER BY score DESC, x.seq DESC LIMIT $3

-- name: insert_own_vector
-- Keep a vector that a caller wrote.
INSERT INTO own_vectors (workspace, seq, vector)
SELECT $1, rows.* FROM unnest($2::bigint[], $3::vector[]) AS rows

-- name: superseded_after
-- Versions that were superseded after a sequence.
SELECT seq, seq_to FROM versions WHERE workspace = $1 AND seq_to > $2

-- name: vector_last
-- The number of the newest vector.
SELECT max(id) FROM vectors WHERE workspace = $1

-- name: vector_count
-- How many vectors there are.
SELECT count(*) FROM vectors WHERE workspace = $1

-- name: unembedded
-- Texts that still wait for a vector.
SELECT seq FROM unembedded WHERE workspace = $1 ORDER BY seq DESC LIMIT $2

-- name: unembedded_count
-- How many texts wait for a vector.
SELECT count(*) FROM unembedded WHERE workspace = $1

-- name: database_size
-- How many bytes the tables of all workspaces take.
SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint FROM pg_class c
WHERE c.relkind = 'r' AND c.relnamespace = 'stratagem'::regnamespace AND $1::bigint IS NOT NULL

-- name: empty_commit
-- Have a transaction that writes nothing wait for the disk as one that does.
SELECT pg_current_xact_id()

-- name: snapshot_state
-- What nearly every search asks of a workspace: three settings, its spaces, how many passages it has,
-- how many texts wait for a vector, the newest vector, whether any version expires, and the newest
-- event. There is always one: it made the first branch.
SELECT (SELECT jsonb_object_agg(s.name, s.value) FROM settings s
        WHERE s.workspace = $1 AND s.name IN ('embedder', 'vector_index', 'vector_generation')),
    (SELECT jsonb_agg(jsonb_build_array(p.id, p.kind, p.namespace) ORDER BY p.id)
        FROM spaces p WHERE p.workspace = $1),
    (SELECT t.texts FROM text_totals t WHERE t.workspace = $1),
    (SELECT count(*) FROM unembedded u WHERE u.workspace = $1),
    (SELECT max(x.id) FROM vectors x WHERE x.workspace = $1),
    EXISTS (SELECT FROM versions v WHERE v.workspace = $1 AND v.expires_at IS NOT NULL),
    e.seq, e.at, e.hash
FROM events e WHERE e.workspace = $1 ORDER BY e.seq DESC LIMIT 1

-- name: setting
-- One setting of the database.
SELECT value FROM settings WHERE workspace = $1 AND name = $2

-- name: set_setting
-- Write one setting of the database.
INSERT INTO settings (workspace, name, value) VALUES ($1, $2, $3::jsonb)
ON CONFLICT (workspace, name) DO UPDATE SET value = excluded.value

-- name: insert_space
-- Give a space its number.
INSERT INTO spaces (workspace, id, kind, namespace)
SELECT $1, coalesce(max(id), 0) + 1, $2, $3 FROM spaces WHERE workspace = $1
RETURNING id

-- name: subject_id
-- The number of a subject.
SELECT id FROM subjects WHERE workspace = $1 AND space = $2 AND key = $3

-- name: subjects_ahead
-- The numbers of subjects of any spaces: kind, namespace and number of its space, key, and number;
-- none for a subject that is not there yet.
SELECT p.kind, p.namespace, p.id, w.key, s.id
FROM unnest($2::text[], $3::text[], $4::text[]) AS w (kind, namespace, key)
JOIN spaces p ON p.workspace = $1 AND p.kind = w.kind AND p.namespace = w.namespace
LEFT JOIN subjects s ON s.workspace = $1 AND s.space = p.id AND s.key = w.key

-- name: insert_subject
-- Give a subject its number.
INSERT INTO subjects (workspace, id, space, key)
SELECT $1, rows.* FROM unnest($2::bigint[], $3::bigint[], $4::text[]) AS rows

-- name: subject_ids
-- The numbers of those subjects of a space whose keys are in an array.
SELECT id, key FROM subjects WHERE workspace = $1 AND space = $2 AND key = ANY ($3::text[])

-- name: subject_last
-- The highest number a subject has.
SELECT max(id) FROM subjects WHERE workspace = $1

-- name: insert_event
-- Append an event.
INSERT INTO events (workspace, seq, at, wall, branch, kind, space, subject, actor, request, origin,
    payload, salt, content_hash, hash)
SELECT $1, rows.* FROM unnest($2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::text[],
    $7::bigint[], $8::bigint[], $9::text[], $10::text[], $11::bigint[], $12::bytea[], $13::bytea[],
    $14::bytea[], $15::bytea[]) AS rows

-- name: insert_version
-- Record what an event did to its subject.
INSERT INTO versions (workspace, seq, subject, branch, space, deleted, expires_at, chars)
SELECT $1, rows.* FROM unnest($2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::boolean[],
    $7::bigint[], $8::bigint[]) AS rows

-- name: supersede
-- Close the version that another one replaces on its branch.
UPDATE versions SET seq_to = rows.seq_to
FROM unnest($2::bigint[], $3::bigint[]) AS rows (seq_to, seq)
WHERE versions.workspace = $1 AND versions.seq = rows.seq

-- name: insert_tag
-- Record a tag of a version.
INSERT INTO tags (workspace, tag, seq)
SELECT $1, rows.* FROM unnest($2::text[], $3::bigint[]) AS rows ON CONFLICT DO NOTHING

-- name: insert_link
-- Record what can be reached from a node.
INSERT INTO links (workspace, node, outgoing, label, weight, seq, other)
SELECT $1, rows.* FROM unnest($2::bigint[], $3::boolean[], $4::text[], $5::float8[], $6::bigint[],
    $7::bigint[]) AS rows

-- name: insert_number
-- Record a number that a version is listed by.
INSERT INTO numbers (workspace, space, name, value, seq)
SELECT $1, rows.* FROM unnest($2::bigint[], $3::text[], $4::float8[], $5::bigint[]) AS rows

-- name: insert_turn
-- Record a message of a session.
INSERT INTO turns (workspace, space, session, branch, seq)
SELECT $1, rows.* FROM unnest($2::bigint[], $3::text[], $4::bigint[], $5::bigint[]) AS rows

-- name: insert_text
-- Index a passage of a text.
INSERT INTO texts (workspace, seq, passage, tokens, terms, frequencies)
SELECT $1, rows.seq, rows.passage, rows.tokens,
    array_to_tsvector(string_to_array(rows.terms, ' ')), rows.frequencies::jsonb
FROM unnest($2::bigint[], $3::bigint[], $4::bigint[], $5::text[], $6::text[])
    AS rows (seq, passage, tokens, terms, frequencies)

-- name: insert_vector
-- Keep the vector of a text.
INSERT INTO vectors (workspace, id, seq, vector, checksum)
SELECT $1, coalesce((SELECT max(id) FROM vectors WHERE workspace = $1), 0) + rows.place, rows.seq,
    rows.vector, substring(sha256(int8send(rows.seq) || vector_send(rows.vector)) FOR 8)
FROM unnest($2::bigint[], $3::vector[]) WITH ORDINALITY AS rows (seq, vector, place)
ON CONFLICT DO NOTHING

-- name: copy_vectors
-- Give texts the vectors of others (two arrays of sequences) that are events of the same kind, but
-- for vectors that were altered.
INSERT INTO vectors (workspace, id, seq, vector, checksum)
SELECT $1, coalesce((SELECT max(id) FROM vectors WHERE workspace = $1), 0)
        + row_number() OVER (ORDER BY n.seq),
    n.seq, x.vector, substring(sha256(int8send(n.seq) || vector_send(x.vector)) FOR 8)
FROM unnest($2::bigint[], $3::bigint[]) AS w (text, other)
JOIN events n ON n.workspace = $1 AND n.seq = w.text
JOIN events o ON o.workspace = $1 AND o.seq = w.other AND o.kind = n.kind
JOIN vectors x ON x.workspace = $1 AND x.seq = w.other
WHERE x.checksum = substring(sha256(int8send(x.seq) || vector_send(x.vector)) FOR 8)
ON CONFLICT DO NOTHING RETURNING seq

-- name: insert_waiting_vector
-- Keep the vector of a text, unless it stopped waiting for one: purged, or embedded elsewhere.
INSERT INTO vectors (workspace, id, seq, vector, checksum)
SELECT $1, coalesce((SELECT max(id) FROM vectors WHERE workspace = $1), 0) + rows.place, rows.seq,
    rows.vector, substring(sha256(int8send(rows.seq) || vector_send(rows.vector)) FOR 8)
FROM unnest($2::bigint[], $3::vector[]) WITH ORDINALITY AS rows (seq, vector, place)
WHERE EXISTS (SELECT 1 FROM unembedded u WHERE u.workspace = $1 AND u.seq = rows.seq)
ON CONFLICT DO NOTHING

-- name: insert_unembedded
-- Remember that a text waits for its vector.
INSERT INTO unembedded (workspace, seq)
SELECT $1, rows.* FROM unnest($2::bigint[]) AS rows ON CONFLICT DO NOTHING

-- name: delete_unembedded
-- A text has its vector now.
DELETE FROM unembedded USING unnest($2::bigint[]) AS rows (seq)
WHERE unembedded.workspace = $1 AND unembedded.seq = rows.seq

-- name: delete_vectors
-- Throw all vectors away; another embedder will make them again.
DELETE FROM vectors WHERE workspace = $1

-- name: queue_all_texts
-- Put every indexed text in line for a vector.
INSERT INTO unembedded (workspace, seq) SELECT workspace, seq FROM texts WHERE workspace = $1
ON CONFLICT DO NOTHING

-- name: keep_tally
-- Record how many live records of a kind a branch shows after this transaction.
INSERT INTO tallies (workspace, branch, kind, seq, live)
SELECT $1, rows.* FROM unnest($2::bigint[], $3::text[], $4::bigint[], $5::bigint[]) AS rows
ON CONFLICT (workspace, branch, kind, seq) DO UPDATE SET live = excluded.live

-- name: insert_branch
-- Record a new branch.
INSERT INTO branches (workspace, id, name, parent, fork_seq, deleted_seq)
VALUES ($1, $2, $3, $4, $5, NULL)

-- name: set_branch_deleted
-- Mark a branch as deleted at a sequence, or as live.
UPDATE branches SET deleted_seq = $3 WHERE workspace = $1 AND id = $2

-- name: insert_knowledge
-- Record what a branch knows after a merge.
INSERT INTO knows (workspace, branch, seq, vector) VALUES ($1, $2, $3, $4)

-- name: request
-- The remembered result of a request.
SELECT fingerprint, result, first_seq, last_seq FROM requests WHERE workspace = $1 AND actor = $2 AND request = $3

-- name: insert_request
-- Remember the result of a request.
INSERT INTO requests (workspace, actor, request, fingerprint, result, first_seq, last_seq)
SELECT $1, rows.* FROM unnest($2::text[], $3::text[], $4::bytea[], $5::bytea[], $6::bigint[],
    $7::bigint[]) AS rows

-- name: log_page
-- A page of the whole log, with the names its events speak of.
SELECT e.seq, e.at, e.wall, e.branch, e.kind, sp.kind, sp.namespace, s.key,
    e.actor, e.request, e.origin, e.payload, e.salt, e.content_hash, e.hash, e.space, e.subject
FROM events e
LEFT JOIN spaces sp ON sp.workspace = $1 AND sp.id = e.space
LEFT JOIN subjects s ON s.workspace = $1 AND s.id = e.subject
WHERE e.workspace = $1 AND e.seq > $2 ORDER BY e.seq LIMIT $3

-- name: subject_events
-- Every event about a subject, on any branch.
SELECT seq FROM versions WHERE workspace = $1 AND subject = $2

-- name: copies
-- Every event that a merge made of some others (an array of sequences).
SELECT seq FROM events WHERE workspace = $1 AND origin = ANY ($2::bigint[])

-- name: erase_events
-- Remove what some events (an array of sequences) said; their hashes stay.
UPDATE events SET payload = NULL, salt = NULL WHERE workspace = $1 AND seq = ANY ($2::bigint[])

-- name: erase_subject
-- Remove the name of a subject; its number stays.
UPDATE subjects SET key = $3 WHERE workspace = $1 AND id = $2

-- name: erase_results
-- Remove remembered results that may quote some events (an array of sequences), and the
-- fingerprints of their arguments, which have no salt: short ones could be guessed.
UPDATE requests SET result = NULL, fingerprint = '' WHERE workspace = $1 AND EXISTS (
    SELECT 1 FROM unnest($2::bigint[]) w WHERE w BETWEEN first_seq AND last_seq)

-- name: erase_request
-- Remove one remembered result, and the fingerprint of its arguments.
UPDATE requests SET result = NULL, fingerprint = '' WHERE workspace = $1 AND actor = $2
    AND request = $3

-- name: forget_request
-- Forget that a request was made.
DELETE FROM requests WHERE workspace = $1 AND actor = $2 AND request = $3

-- name: erase_vectors
-- Remove the vectors of some events (an array of sequences).
DELETE FROM vectors WHERE workspace = $1 AND seq = ANY ($2::bigint[])

-- name: origin_of
-- Where an event that stands for itself came from.
SELECT origin FROM events
WHERE workspace = $1 AND seq = $2 AND subject IS NULL AND space IS NOT NULL

-- name: empty
-- Take everything of the workspace out of a read model.
DELETE FROM {table} WHERE workspace = $1

-- name: drop_stray_vectors
-- Vectors of texts that are no longer there.
DELETE FROM vectors x WHERE x.workspace = $1
    AND NOT EXISTS (SELECT 1 FROM unembedded u WHERE u.workspace = $1 AND u.seq = x.seq)

-- name: drop_altered_vectors
-- Vectors that are not those that were made.
DELETE FROM vectors WHERE workspace = $1
    AND checksum <> substring(sha256(int8send(seq) || vector_send(vector)) FOR 8)

-- name: seal_vectors
-- Give a checksum to vectors of older versions, which had none.
UPDATE vectors SET checksum = substring(sha256(int8send(seq) || vector_send(vector)) FOR 8)
WHERE workspace = $1 AND checksum IS NULL

-- name: drop_message_vectors
-- Vectors of messages that an older version made: their texts had the role and the label in them.
-- Some others may be among them, and are made anew for nothing.
DELETE FROM vectors WHERE workspace = $1 AND seq IN (
    SELECT seq FROM events WHERE workspace = $1 AND kind = 'EventLogged'
    AND position('"role":"'::bytea IN payload) > 0
)

-- name: settle_unembedded
-- Texts that have a vector do not wait for one.
DELETE FROM unembedded u WHERE u.workspace = $1
    AND EXISTS (SELECT 1 FROM vectors x WHERE x.workspace = $1 AND x.seq = u.seq)

-- name: beside
-- A table of the same name and form, which is seen instead by this connection until it commits. A
-- newer version may have added columns, which this one leaves at their defaults.
CREATE TEMPORARY TABLE {table} (LIKE {schema}.{table} INCLUDING DEFAULTS INCLUDING INDEXES)
ON COMMIT DROP

-- name: differences
-- A row of a read model that is in the one in use or in the one made anew, but not in both.
(SELECT * FROM pg_temp.{table} WHERE workspace = $1
    EXCEPT ALL SELECT * FROM {schema}.{table} WHERE workspace = $1)
UNION ALL
(SELECT * FROM {schema}.{table} WHERE workspace = $1
    EXCEPT ALL SELECT * FROM pg_temp.{table} WHERE workspace = $1)
LIMIT 1

-- name: vector_differences
-- A text that has no vector and does not wait for one.
SELECT seq FROM pg_temp.unembedded t WHERE workspace = $1
    AND NOT EXISTS (SELECT 1 FROM {schema}.vectors x WHERE x.workspace = $1 AND x.seq = t.seq)
    AND NOT EXISTS (SELECT 1 FROM {schema}.unembedded u WHERE u.workspace = $1 AND u.seq = t.seq)
LIMIT 1

-- name: vector_strays
-- A vector of something that has no text.
SELECT seq FROM {schema}.vectors x WHERE workspace = $1
    AND NOT EXISTS (SELECT 1 FROM pg_temp.unembedded t WHERE t.workspace = $1 AND t.seq = x.seq)
LIMIT 1

-- name: altered_vectors
-- A vector that is not the one that was made.
SELECT seq FROM {schema}.vectors WHERE workspace = $1
    AND checksum <> substring(sha256(int8send(seq) || vector_send(vector)) FOR 8)
LIMIT 1

-- name: projections
-- The read models elsewhere that want to be told of events.
SELECT name, kinds, built, processed, lease_owner, lease_until FROM projections
WHERE workspace = $1 ORDER BY name

-- name: register_projection
-- Remember a read model elsewhere; one that wants other kinds than before has to be made anew.
INSERT INTO projections (workspace, name, kinds) VALUES ($1, $2, $3)
ON CONFLICT (workspace, name) DO UPDATE SET kinds = excluded.kinds, built = NULL
WHERE projections.kinds <> excluded.kinds

-- name: delete_projection
-- Forget a read model elsewhere.
DELETE FROM projections WHERE workspace = $1 AND name = $2

-- name: delete_outbox
-- Forget all that waits for a projection.
DELETE FROM outbox WHERE workspace = $1 AND projection = $2

-- name: lease_projection
-- Take a projection ($2) for an owner ($3) until a time ($5), unless another has it now ($4). No
-- lease reaches beyond $6, but by a clock that was wrong.
UPDATE projections SET lease_owner = $3, lease_until = $5
WHERE workspace = $1 AND name = $2
    AND (lease_owner = $3 OR lease_until <= $4 OR lease_until > $6) RETURNING name

-- name: set_built
-- Say what a projection was made with.
UPDATE projections SET built = $3 WHERE workspace = $1 AND name = $2

-- name: count_processed
-- Count rows that were delivered.
UPDATE projections SET processed = processed + $3 WHERE workspace = $1 AND name = $2

-- name: insert_outbox
-- Put an event in line for a projection.
INSERT INTO outbox (workspace, projection, seq, subject)
SELECT $1, rows.* FROM unnest($2::text[], $3::bigint[], $4::bigint[]) AS rows

-- name: requeue_outbox
-- Put an event in line again, unless it still is.
INSERT INTO outbox (workspace, projection, seq, subject) VALUES ($1, $2, $3, $4)
ON CONFLICT DO NOTHING

-- name: outbox_due
-- The records with a pending row whose time has come, those that wait longest first. None waits
-- beyond $5, but by a clock that was wrong.
SELECT subject, min(seq), max(seq), min(attempts) FROM outbox
WHERE workspace = $1 AND projection = $2 AND subject IN (
    SELECT subject FROM outbox
    WHERE workspace = $1 AND projection = $2 AND status = 'pending'
        AND (next_at <= $3 OR next_at > $5)
    ORDER BY seq LIMIT $4)
GROUP BY subject ORDER BY min(seq)

-- name: outbox_waiting
-- Which of some records (an array of subjects) have rows, and the oldest of each.
SELECT subject, min(seq) FROM outbox
WHERE workspace = $1 AND projection = $2 AND subject = ANY ($3::bigint[]) GROUP BY subject

-- name: outbox_any
-- Whether anything waits for a projection.
SELECT 1 FROM outbox WHERE workspace = $1 AND projection = $2 LIMIT 1

-- name: outbox_tally
-- How many rows of a projection there are of each status.
SELECT status, count(*) FROM outbox WHERE workspace = $1 AND projection = $2 GROUP BY status

-- name: outbox_rows
-- Rows of a projection: failed ones first, then the oldest.
SELECT seq, subject, status, attempts, next_at, error FROM outbox
WHERE workspace = $1 AND projection = $2
ORDER BY status = 'pending', seq LIMIT $3

-- name: settle_outbox
-- Take away the rows of some records (an array of subjects) up to a sequence.
DELETE FROM outbox
WHERE workspace = $1 AND projection = $2 AND seq <= $3 AND subject = ANY ($4::bigint[])
RETURNING seq

-- name: settle_outbox_all
-- Take away every row of a projection up to a sequence.
DELETE FROM outbox WHERE workspace = $1 AND projection = $2 AND seq <= $3 RETURNING seq

-- name: postpone_outbox
-- Put off the rows of a record up to a sequence, or give them up.
UPDATE outbox SET attempts = $2, next_at = $3, status = $4, error = $5
WHERE workspace = $1 AND projection = $6 AND subject = $7 AND seq <= $8

-- name: retry_outbox
-- Make every row of a projection due at once.
UPDATE outbox SET status = 'pending', attempts = 0, next_at = 0
WHERE workspace = $1 AND projection = $2

-- name: purge_outbox
-- Nothing that was said about a record is quoted any longer.
UPDATE outbox SET error = NULL WHERE workspace = $1 AND subject = $2

-- name: requests_after
-- Remembered requests by actor and id, after one of them.
SELECT actor, request, fingerprint, result, first_seq, last_seq FROM requests
WHERE workspace = $1 AND (actor, request) > ($2, $3) ORDER BY actor, request LIMIT $4

-- name: keep_request
-- Remember a request of another database, unless it is remembered already.
INSERT INTO requests (workspace, actor, request, fingerprint, result, first_seq, last_seq)
SELECT $1, rows.* FROM unnest($2::text[], $3::text[], $4::bytea[], $5::bytea[], $6::bigint[],
    $7::bigint[]) AS rows
ON CONFLICT DO NOTHING

-- name: tables_there
-- Whether anybody made the tables yet; like all that follow it is about no workspace.
SELECT to_regclass($1) IS NOT NULL

-- name: newest_migration
-- The number of the last migration that was run.
SELECT coalesce(max(number), 0) FROM migrations

-- name: try_lock_migrations
-- Keep other processes from migrating at the same time. Not waited for in the server: an index that
-- is built concurrently waits for every statement that waits, and the two would wait for each other.
SELECT pg_try_advisory_lock($1)

-- name: unlock_migrations
-- Let others migrate.
SELECT pg_advisory_unlock($1)

-- name: search_path
-- Where a connection looks for names. pgvector may lie elsewhere: some providers keep all extensions
-- in a schema of their own.
SELECT set_config('search_path', concat_ws(', ', '{schema}', 'public', (
    SELECT quote_ident(n.nspname) FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace
    WHERE e.extname = 'vector')), false)

-- name: installation
-- Whether our schema is there, and which pgvector. Both may have been made for us by somebody else.
SELECT to_regnamespace($1) IS NOT NULL,
    (SELECT extversion FROM pg_extension WHERE extname = 'vector')

-- name: make_schema
-- Where our tables go. Asking for it again would need a right that its owner may not have.
CREATE SCHEMA IF NOT EXISTS {schema}

-- name: make_extension
-- What vectors are kept and compared by.
CREATE EXTENSION IF NOT EXISTS vector WITH SCHEMA public

-- name: make_migrations
-- Which migrations were run.
CREATE TABLE IF NOT EXISTS migrations
    (number integer PRIMARY KEY, at timestamptz NOT NULL DEFAULT now())

-- name: note_migration
-- A migration was run.
INSERT INTO migrations (number) VALUES ($1)

-- name: workspace_number
-- The number of a workspace, by its name.
SELECT id FROM workspaces WHERE name = $1

-- name: workspace_names
-- Every workspace of the database.
SELECT name FROM workspaces ORDER BY name

-- name: found_workspace
-- Give a workspace its number, unless it has one.
INSERT INTO workspaces (name) VALUES ($1) ON CONFLICT DO NOTHING

-- name: found_head
-- Give a workspace the row that its writers lock.
INSERT INTO heads (workspace) VALUES ($1) ON CONFLICT DO NOTHING

-- name: workspace_tables
-- Every table that has rows of workspaces.
SELECT table_name FROM information_schema.columns
WHERE table_schema = '{schema}' AND column_name = 'workspace' AND table_name <> 'heads'

-- name: tables_to_count
-- Of some tables ($1) those that are small ($2 rows) or have grown by a tenth since the server counted
-- their rows, with the columns that rows are chosen by. The other columns are large, and the server
-- has no use for what it would find out about them.
SELECT c.relname, string_agg(quote_ident(a.attname), ', ')
FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
JOIN pg_type t ON t.oid = a.atttypid AND t.typname NOT IN ('bytea', 'jsonb', 'vector')
WHERE c.oid = ANY ($1::regclass[])
    AND (c.reltuples < $2::bigint
        OR pg_relation_size(c.oid) > 1.1 * c.relpages * current_setting('block_size')::bigint)
GROUP BY c.relname

-- name: remove_head
-- Take away the row that the writers of a workspace lock.
DELETE FROM heads WHERE workspace = $1

-- name: remove_workspace
-- Take a workspace's number and name away.
DELETE FROM workspaces WHERE id = $1

-- name: amcheck_schema
-- Where the server has its own check of indexes, if anybody installed it.
SELECT n.nspname FROM pg_extension x JOIN pg_namespace n ON n.oid = x.extnamespace
WHERE x.extname = 'amcheck'

-- name: btree_indexes
-- The ordered indexes of our tables: their columns and order, and the rows that they are about.
SELECT
    c.oid, c.relname, t.relname,
    ARRAY(SELECT pg_get_indexdef(c.oid, k, true) FROM generate_series(1, i.indnkeyatts) AS k),
    ARRAY(
        SELECT pg_get_indexdef(c.oid, k, true)
            || CASE WHEN i.indoption[k - 1] & 1 = 1 THEN ' DESC' ELSE '' END
        FROM generate_series(1, i.indnkeyatts) AS k
    ),
    CASE WHEN w.attname IS NULL THEN 'true' ELSE 'workspace = $1' END,
    coalesce(pg_get_expr(i.indpred, i.indrelid), 'true')
FROM pg_index i
JOIN pg_class c ON c.oid = i.indexrelid AND c.relkind = 'i'
JOIN pg_class t ON t.oid = i.indrelid
JOIN pg_am a ON a.oid = c.relam AND a.amname = 'btree'
JOIN pg_namespace n ON n.oid = c.relnamespace AND n.nspname = '{schema}'
LEFT JOIN pg_attribute w ON w.attrelid = t.oid AND w.attname = 'workspace'
WHERE i.indisvalid AND i.indexprs IS NULL ORDER BY t.relname, c.relname

-- name: read_through_indexes
-- Have the server read through indexes alone, in their order, for one transaction.
SET TRANSACTION READ ONLY;
SET LOCAL statement_timeout = 0;
SET LOCAL enable_seqscan = off; SET LOCAL enable_bitmapscan = off;
SET LOCAL enable_tidscan = off; SET LOCAL enable_sort = off;
SET LOCAL enable_incremental_sort = off;
SET LOCAL enable_indexscan = on; SET LOCAL enable_indexonlyscan = on

-- name: compare_index
-- Count the rows of a table, those that an index does not lead to, and those it lists. A sample
-- of 100 percent reads the table itself, whatever indexes there are. A row is looked up without
-- naming the workspace again: the server would begin at its first row.
SELECT
    count(*),
    count(*) FILTER (WHERE ROW({columns}) IS NOT NULL AND (
        SELECT true FROM {schema}.{table} AS found
        WHERE {predicate} AND {same_key} AND found.ctid = here.ctid ORDER BY {order} LIMIT 1
    ) IS NULL),
    (SELECT count(*) FROM (
        SELECT FROM {schema}.{table} WHERE {rows} AND {predicate} ORDER BY {order}
    ) AS listed)
FROM {schema}.{table} AS here TABLESAMPLE SYSTEM (100) WHERE {rows} AND {predicate}

-- name: copy_unindexed
-- Read a table without its indexes into one of the same name that only this connection sees.
INSERT INTO pg_temp.{table}
SELECT * FROM {schema}.{table} TABLESAMPLE SYSTEM (100) WHERE workspace = $1

-- name: check_index
-- Compare an index with every row of its table.
SELECT "{amcheck}".bt_index_check({index}, true)

-- name: reindex
-- Make every index of a table anew, while everybody goes on.
REINDEX TABLE CONCURRENTLY {table}

-- name: read_through_pages
-- Have the server read tables by their pages and never by an index, of one state.
SET TRANSACTION ISOLATION LEVEL REPEATABLE READ;
SET LOCAL statement_timeout = 0;
SET LOCAL enable_tidscan = on; SET LOCAL enable_seqscan = off; SET LOCAL enable_bitmapscan = off;
SET LOCAL enable_indexscan = off; SET LOCAL enable_indexonlyscan = off

-- name: table_parts
-- The tables that hold the rows of a table, which may be parted, and how many pages they have.
WITH RECURSIVE parts AS (
    SELECT '{table}'::regclass AS part
    UNION ALL SELECT i.inhrelid::regclass FROM pg_inherits i JOIN parts p ON i.inhparent = p.part
)
SELECT p.part::text, pg_relation_size(p.part) / current_setting('block_size')::bigint,
    current_setting('block_size')::bigint
FROM parts p JOIN pg_class c ON c.oid = p.part AND c.relkind = 'r'

-- name: pages_of_spaces
-- The spaces in some pages.
SELECT ctid::text, id, kind, namespace FROM {table}
WHERE workspace = $1 AND ctid >= $2::tid AND ctid < $3::tid

-- name: pages_of_subjects
-- The keys in some pages.
SELECT ctid::text, id, key FROM {table}
WHERE workspace = $1 AND ctid >= $2::tid AND ctid < $3::tid

-- name: pages_of_branches
-- The branches in some pages.
SELECT ctid::text, id, name, parent, fork_seq FROM {table}
WHERE workspace = $1 AND ctid >= $2::tid AND ctid < $3::tid

-- name: pages_of_versions
-- The versions in some pages: which record each event was about.
SELECT ctid::text, seq, subject, branch, space FROM {table}
WHERE workspace = $1 AND ctid >= $2::tid AND ctid < $3::tid

-- name: pages_of_events
-- The events in some pages, without what they say.
SELECT ctid::text, seq, branch FROM {table}
WHERE workspace = $1 AND ctid >= $2::tid AND ctid < $3::tid

-- name: event_contents
-- The events at some places (an array of row numbers).
SELECT seq, at, wall, branch, kind, space, subject, actor, request, origin, payload, salt,
    content_hash, hash
FROM {table} WHERE workspace = $1 AND ctid = ANY ($2::text[]::tid[])

-- name: read_table
-- Read every page of a table, without its indexes and of every workspace: they share pages.
SELECT count(*) FROM {schema}.{table} TABLESAMPLE SYSTEM (100)

-- name: index_definitions
-- The indexes of the tables of a schema, and the constraints they stand for.
SELECT t.relname, c.relname, i.indisunique, split_part(pg_get_indexdef(c.oid), ' USING ', 2),
    i.indisvalid, pg_get_constraintdef(k.oid)
FROM pg_index i
JOIN pg_class c ON c.oid = i.indexrelid
JOIN pg_class t ON t.oid = i.indrelid
LEFT JOIN pg_constraint k ON k.conindid = c.oid AND k.contype IN ('p', 'u')
WHERE t.relnamespace = {of} ORDER BY t.relname, c.relname

-- name: build_in_temporary_schema
-- Have tables made without naming a schema be this connection's own.
SELECT set_config('search_path', concat_ws(', ', 'pg_temp', 'public', (
    SELECT quote_ident(n.nspname) FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace
    WHERE e.extname = 'vector')), true)

-- name: read_through_words
-- Have the server look words up in their index, for one transaction.
SET LOCAL statement_timeout = 0;
SET LOCAL enable_seqscan = off; SET LOCAL enable_bitmapscan = on;
SET LOCAL enable_indexscan = off; SET LOCAL enable_indexonlyscan = off

-- name: table_of_texts
-- The table that a workspace's texts are in: a part of it, where it is parted by workspace.
SELECT tableoid::regclass::text FROM {schema}.texts WHERE workspace = $1 LIMIT 1

-- name: compare_words
-- A word that leads to more or fewer texts than have it. A sample of 100 percent reads the table.
-- Words begin with their workspace; where it is named once more, another index may be read.
SELECT here.word FROM (
    SELECT word.lexeme AS word, count(*) AS texts
    FROM {table} AS text TABLESAMPLE SYSTEM (100), unnest(text.terms) AS word
    WHERE text.workspace = $1 GROUP BY word.lexeme
) AS here
WHERE here.texts <> (
    SELECT count(*) FROM {table} AS found WHERE found.terms @@ quote_literal(here.word)::tsquery
) LIMIT 1

-- name: index_is_valid
-- Whether an index is there and finished.
SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass('{index}')

-- name: read_through_vectors
-- Have the server follow an index of vectors from one of them to all that it leads to.
SET LOCAL statement_timeout = 0;
SET LOCAL enable_seqscan = off; SET LOCAL enable_sort = off; SET LOCAL enable_bitmapscan = off;
SET LOCAL enable_indexscan = on;
SET LOCAL hnsw.iterative_scan = relaxed_order;
SET LOCAL hnsw.max_scan_tuples = 2147483647;
SET LOCAL hnsw.scan_mem_multiplier = 1000

-- name: missed_vectors
-- How many vectors of a workspace its index does not lead to. A sample of 100 percent reads the
-- table. Vectors of length 0, which say nothing, are near to nothing: they are left out.
SELECT count(*) FROM {table} AS here TABLESAMPLE SYSTEM (100)
WHERE here.workspace = {workspace} AND vector_dims(here.vector) = {dimensions}
    AND vector_norm(here.vector) > 0
    AND here.seq NOT IN (
        SELECT found.seq FROM (
            SELECT near.seq FROM {table} AS near
            WHERE near.workspace = {workspace} AND vector_dims(near.vector) = {dimensions}
            ORDER BY near.vector::halfvec({dimensions}) <#> (
                SELECT first.vector FROM {table} AS first TABLESAMPLE SYSTEM (100)
                WHERE first.workspace = {workspace} AND vector_dims(first.vector) = {dimensions}
                LIMIT 1
            )::halfvec({dimensions})
        ) AS found
    )

-- name: vectors_beside
-- The vectors of a workspace in a table that only this connection sees.
CREATE TEMPORARY TABLE vectors_beside ON COMMIT DROP AS
SELECT * FROM {schema}.vectors TABLESAMPLE SYSTEM (100)
WHERE workspace = {workspace} AND vector_dims(vector) = {dimensions}

-- name: index_beside
-- An index of them like the one in use.
CREATE INDEX ON vectors_beside
USING hnsw ((vector::halfvec({dimensions})) halfvec_ip_ops)
WHERE workspace = {workspace} AND vector_dims(vector) = {dimensions}

-- name: drop_index
-- Take away an index that is not valid.
DROP INDEX IF EXISTS {schema}.{index}

-- name: make_index
-- Make an index as a migration makes it.
CREATE {unique} INDEX {index} ON {schema}.{table} USING {form}

-- name: make_constraint
-- Make the index of a key as a migration makes it.
ALTER TABLE {schema}.{table} ADD CONSTRAINT {index} {constraint}
