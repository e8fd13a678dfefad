"""The standard tools: search, analysis, generation, integration, files.

Each module has the definitions of a family and the functions that run them. Listing them imports
no library: what a tool needs is imported when it runs, and a tool whose library, key or connection
is missing is listed as unavailable with the next step.
"""
