"""Which issuer is trusted, for what, and where its keys are."""

from __future__ import annotations

from urllib.parse import urlsplit

from stratagem.deferred_dataclasses import dataclass
from stratagem.errors import ValidationFailed

__all__ = ["OAuthSettings"]


@dataclass(frozen=True, slots=True)
class OAuthSettings:
    """One issuer. `keys` is the address of its keys, where its metadata does not say it.

    `workspaces_claim` is the claim that names the workspaces of a token; a token without it
    opens the server's own.
    """

    issuer: str
    audiences: tuple[str, ...]
    keys: str | None = None
    workspaces_claim: str = "workspaces"

    def check(self) -> None:
        """Refuse settings that could not be kept safe.

        Raises:
            ValidationFailed: The issuer or the audience is missing or unfit.
        """
        if not self.audiences or not all(self.audiences):
            raise ValidationFailed(
                "OAuth needs an audience: a token that was issued for another service "
                "must not be accepted.",
                field="oauth_audience",
                hint="Set it with --oauth-audience, as the issuer writes it into `aud`.",
            )
        for field, address in (("oauth_issuer", self.issuer), ("oauth_keys", self.keys)):
            if address is not None and not _is_safe(address):
                raise ValidationFailed(
                    f"{address!r} is not an https address.",
                    field=field,
                    hint="Give an https address: keys that are sent without encryption can be "
                    "replaced on the way.",
                )


def _is_safe(address: str) -> bool:
    """Whether an address is encrypted, or stays on this machine."""
    parts = urlsplit(address)
    local = parts.hostname in {"localhost", "127.0.0.1", "::1"}
    return bool(parts.hostname) and (parts.scheme == "https" or (local and parts.scheme == "http"))
