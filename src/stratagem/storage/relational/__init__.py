"""What every store in a database that speaks SQL has in common; each brings its own SQL."""
