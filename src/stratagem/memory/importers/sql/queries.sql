-- name: table_names
-- Which tables a database has, to tell whose it is.
SELECT name FROM sqlite_master WHERE type = 'table';

-- name: column_names
-- Which columns a table has: releases differ.
SELECT name FROM pragma_table_info(:table);

-- name: memories
-- Every memory of mcp-memory-service that was not deleted.
SELECT content_hash, content, tags, memory_type, metadata, created_at, updated_at
FROM memories WHERE deleted_at IS NULL ORDER BY id;

-- name: memories_without_deletion
-- The same, of a release that deleted rows.
SELECT content_hash, content, tags, memory_type, metadata, created_at, updated_at
FROM memories ORDER BY id;

-- name: documents
-- Every field of every record of Chroma, one row each, in the order of the records.
SELECT c.id AS collection_id, c.name AS collection, e.embedding_id AS id, m.key AS field,
       coalesce(m.string_value, m.int_value, m.float_value, m.bool_value) AS value
FROM embeddings e
JOIN segments s ON s.id = e.segment_id AND s.scope = 'METADATA'
JOIN collections c ON c.id = s.collection
JOIN embedding_metadata m ON m.id = e.id
ORDER BY c.name, e.id, m.key;

-- name: pending
-- What Chroma has been given and has not yet put among its records, in order.
SELECT c.name AS collection, q.id AS id, q.operation AS operation, q.metadata AS metadata
FROM embeddings_queue q
JOIN collections c ON q.topic LIKE '%/' || c.id
LEFT JOIN segments s ON s.collection = c.id AND s.scope = 'METADATA'
LEFT JOIN max_seq_id x ON x.segment_id = s.id
WHERE q.seq_id > coalesce(x.seq_id, 0)
ORDER BY q.seq_id;
