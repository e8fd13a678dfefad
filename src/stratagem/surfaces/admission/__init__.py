"""Authentication of requests, and the quotas of those who send them."""

from stratagem.surfaces.admission.authenticator import Authenticator, Principal
from stratagem.surfaces.admission.middleware import AuthenticationMiddleware

__all__ = ["AuthenticationMiddleware", "Authenticator", "Principal"]
