"""The meta tools: which tool to use, what went wrong with one, and how to chain them."""
