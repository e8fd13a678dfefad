-- Events that were recorded more than a second ahead of the clock, by what the clock said. There
-- are none as long as clocks are right; they are how a time of the clock finds its place in a log
-- that ran ahead of it. Not built concurrently: tables that are parted by workspace cannot have that,
-- and the index is empty, so that writers wait for one reading of the table and no more.

CREATE INDEX events_ahead ON events (workspace, wall, at, seq)
    WHERE at - wall > 1000000;
