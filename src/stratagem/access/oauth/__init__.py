"""OAuth 2.1: tokens that another server issued, checked with that server's public keys.

Stratagem is the resource server only. It takes a JWT of one issuer for one audience, says in
its metadata (RFC 9728) which issuer that is, and sends what it was given to nobody.
"""

from stratagem.access.oauth.claims import identity_from
from stratagem.access.oauth.jwt_verifier import Verifier
from stratagem.access.oauth.keys import Fetch, KeySet
from stratagem.access.oauth.metadata import challenge, resource_metadata
from stratagem.access.oauth.settings import OAuthSettings

__all__ = [
    "Fetch",
    "KeySet",
    "OAuthSettings",
    "Verifier",
    "challenge",
    "identity_from",
    "resource_metadata",
]
