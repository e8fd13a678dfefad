-- Events that were recorded more than a second ahead of the clock, by what the clock said. There
-- are none as long as clocks are right; they are how a time of the clock finds its place in a log
-- that ran ahead of it.

CREATE INDEX events_ahead ON events (wall, at, seq) WHERE at - wall > 1000000;
