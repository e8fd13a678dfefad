"""`python -m stratagem` is `stratagem`."""

from stratagem.surfaces.cli import main

main()
