"""An example database: a month in the work of a team of agents, made by the operations they call.

The same month each time: texts are written out, chance comes from a fixed seed, and only the day on
which it ends is given. `stratagem demo` makes it; the tests of the console and its pictures use it.
"""

from stratagem.demo.month import make_demo

__all__ = ["make_demo"]
