"""One index over every kind of record: text analysis, embeddings, ranking, snippets."""
