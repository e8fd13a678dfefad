"""The quality of search, measured on data that stays outside of the project."""
