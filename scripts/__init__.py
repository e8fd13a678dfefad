"""What builds and maintains the project."""
