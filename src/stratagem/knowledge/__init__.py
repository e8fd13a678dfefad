"""Knowledge: concepts, their relationships and their certainty."""
