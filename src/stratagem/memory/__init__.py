"""Memory: entries under keys, logged events, and the branches they live on."""
