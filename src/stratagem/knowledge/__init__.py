"""Knowledge: concepts, how they relate, and how sure one can be of each."""
