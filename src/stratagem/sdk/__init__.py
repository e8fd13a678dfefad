"""The SDK: a database opened in this process, or a server somewhere."""
