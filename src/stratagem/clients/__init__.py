"""The clients that agents run in: where each keeps its settings, and what Stratagem puts there."""
