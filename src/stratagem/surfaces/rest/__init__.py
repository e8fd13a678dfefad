"""The operations as routes: the gateway's as its document has them, all others by their names."""

from stratagem.surfaces.rest.app import application

__all__ = ["application"]
