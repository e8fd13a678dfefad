// Every statement that Neo4j is asked to run, by name.
//
// {TYPE} is the type of a relationship: Cypher takes no parameter in its place. It is one of a
// closed set that the program knows, never what a caller wrote. `log` tells the databases apart
// that share a server.

// name: concept_constraint
// A concept is there once.
CREATE CONSTRAINT stratagem_concept IF NOT EXISTS
FOR (c:Concept) REQUIRE (c.log, c.concept_id) IS UNIQUE

// name: concept_index
// Concepts by their number, in which they are read page by page.
CREATE INDEX stratagem_concept_subject IF NOT EXISTS FOR (c:Concept) ON (c.log, c.subject)

// name: gone_constraint
// That a relationship is gone is remembered once.
CREATE CONSTRAINT stratagem_gone IF NOT EXISTS
FOR (g:StratagemGone) REQUIRE (g.log, g.subject) IS UNIQUE

// name: type_index
// Relationships of a type by their number.
CREATE INDEX stratagem_{TYPE} IF NOT EXISTS FOR ()-[r:{TYPE}]-() ON (r.log, r.subject)

// name: clear_concepts
// Remove some concepts with all their relationships; say how many.
MATCH (c:Concept {log: $log}) WITH c LIMIT $limit DETACH DELETE c RETURN count(*) AS count

// name: clear_gone
// Forget which relationships are gone; say how many.
MATCH (g:StratagemGone {log: $log}) WITH g LIMIT $limit DELETE g RETURN count(*) AS count

// name: put_concepts
// Bring concepts up to date, unless they, or the certainty that was computed for them, are newer.
// Removing what is not there takes the lock, so that what is compared afterwards cannot change
// before it is written.
UNWIND $rows AS row
MERGE (c:Concept {log: $log, concept_id: row.concept_id})
ON CREATE SET c.sequence = -1, c.deleted = true
REMOVE c.locked
WITH c, row WHERE c.sequence < row.sequence
OR (c.sequence = row.sequence AND coalesce(c.certainty_sequence, -1) <= row.certainty_sequence)
SET c = row.properties

// name: erase_concepts
// Remove concepts that were purged: the log no longer knows what they were called.
UNWIND $rows AS row
MATCH (c:Concept {log: $log, subject: row.subject}) WHERE c.sequence <= row.sequence
DETACH DELETE c

// name: put_relationships
// Bring relationships up to date, unless they are newer, or went after that. A concept that is
// not there, because it was deleted, gets its place kept: its relationships come back with it.
UNWIND $rows AS row
OPTIONAL MATCH (g:StratagemGone {log: $log, subject: row.subject})
WITH row, g WHERE g IS NULL OR g.sequence <= row.sequence
MERGE (a:Concept {log: $log, concept_id: row.source})
ON CREATE SET a.sequence = -1, a.deleted = true
MERGE (b:Concept {log: $log, concept_id: row.target})
ON CREATE SET b.sequence = -1, b.deleted = true
MERGE (a)-[r:{TYPE} {log: $log, relationship_id: row.relationship_id}]->(b)
ON CREATE SET r.sequence = -1
REMOVE r.locked
WITH row, g, r WHERE r.sequence <= row.sequence
SET r = row.properties
FOREACH (mark IN CASE WHEN g IS NULL THEN [] ELSE [g] END | DELETE mark)

// name: mark_gone
// Remember that relationships are gone, so that a late message cannot bring them back.
UNWIND $rows AS row
MERGE (g:StratagemGone {log: $log, subject: row.subject})
ON CREATE SET g.sequence = -1
REMOVE g.locked
WITH g, row WHERE g.sequence <= row.sequence
SET g.sequence = row.sequence

// name: drop_relationships
// Remove relationships of a type, unless they are newer.
UNWIND $rows AS row
MATCH ()-[r:{TYPE} {log: $log, subject: row.subject}]->() WHERE r.sequence <= row.sequence
DELETE r

// name: fetch_concepts
// Concepts by their numbers.
UNWIND $subjects AS subject
MATCH (c:Concept {log: $log, subject: subject}) WHERE NOT c.deleted
RETURN properties(c) AS properties

// name: fetch_relationships
// Relationships of a type by their numbers.
UNWIND $subjects AS subject
MATCH (a:Concept)-[r:{TYPE} {log: $log, subject: subject}]->(b:Concept)
RETURN properties(r) AS properties, a.concept_id AS source, b.concept_id AS target

// name: page_concepts
// A page of concepts, by number.
MATCH (c:Concept) WHERE c.log = $log AND c.subject > $after AND NOT c.deleted
RETURN c.concept_id AS key, c.subject AS subject ORDER BY subject LIMIT $limit

// name: page_relationships
// A page of the relationships of a type, by number.
MATCH ()-[r:{TYPE}]->() WHERE r.log = $log AND r.subject > $after
RETURN r.relationship_id AS key, r.subject AS subject ORDER BY subject LIMIT $limit

// name: outgoing
// The concepts that relationships lead to from one, the strongest relationships first.
MATCH (c:Concept {log: $log, concept_id: $key})-[r]->(o:Concept {log: $log})
WHERE NOT o.deleted AND ($type IS NULL OR type(r) = $type)
RETURN o.concept_id AS key, r.relationship_type AS type, r.strength AS weight, r.sequence AS sequence
ORDER BY weight DESC, sequence LIMIT $limit

// name: incoming
// The concepts that relationships lead from to one, the strongest relationships first.
MATCH (c:Concept {log: $log, concept_id: $key})<-[r]-(o:Concept {log: $log})
WHERE NOT o.deleted AND ($type IS NULL OR type(r) = $type)
RETURN o.concept_id AS key, r.relationship_type AS type, r.strength AS weight, r.sequence AS sequence
ORDER BY weight DESC, sequence LIMIT $limit

// name: sources
// The concepts from which relationships of a type lead to some others, in the order of these.
UNWIND range(0, size($keys) - 1) AS place
MATCH (c:Concept {log: $log, concept_id: $keys[place]})<-[r]-(o:Concept {log: $log})
WHERE NOT o.deleted AND type(r) = $type
RETURN o.concept_id AS key, place, r.strength AS weight, r.sequence AS sequence
ORDER BY place, weight DESC, sequence LIMIT $limit

// name: path
// A shortest path, along relationships or against them, through concepts that are there.
MATCH (a:Concept {log: $log, concept_id: $start}), (b:Concept {log: $log, concept_id: $end})
MATCH p = shortestPath((a)-[*..10]-(b))
WHERE all(n IN nodes(p) WHERE NOT n.deleted) AND all(r IN relationships(p) WHERE r.log = $log)
RETURN [n IN nodes(p) | n.concept_id] AS keys, [r IN relationships(p) | r.relationship_type] AS types,
    [r IN relationships(p) | startNode(r).concept_id] AS starts
