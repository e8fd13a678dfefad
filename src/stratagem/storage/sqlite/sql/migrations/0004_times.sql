-- Recorded times never go backwards, so a moment is searched for by halves in the log itself. An index
-- of them was one more page to write with every commit.

DROP INDEX IF EXISTS events_at;
