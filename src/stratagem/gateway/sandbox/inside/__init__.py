"""What runs inside the sandbox.

These modules are started by the interpreter of the sandbox, which sees this folder and nothing
else of the package: they import only the standard library and each other.
"""
