-- online
-- Events that were recorded more than a second ahead of the clock, by what the clock said. There
-- are none as long as clocks are right; they are how a time of the clock finds its place in a log
-- that ran ahead of it.

-- Where the building of an index is interrupted, one stays behind that is never used.
DROP INDEX CONCURRENTLY IF EXISTS events_ahead;

CREATE INDEX CONCURRENTLY events_ahead ON events (workspace, wall, at, seq)
    WHERE at - wall > 1000000;
