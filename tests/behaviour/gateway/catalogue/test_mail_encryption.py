"""Mail over TLS, to real servers with certificates of an authority of the tests."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Final

import pytest
from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, AuthResult
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.behaviour.gateway.catalogue.conftest import Desk
from tests.manifest import proves
from tests.ports import free_port

BEGINNING, ENDED, LATER = (datetime(year, 1, 1, tzinfo=UTC) for year in (2020, 2021, 2090))


class Authority:
    """Signs certificates, and writes them to files."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Authority of the tests")])
        self._name = name
        made = (
            self._certificate(name, self._key, LATER)
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .add_extension(_SIGNS_CERTIFICATES, critical=True)
            .sign(self._key, hashes.SHA256())
        )
        self.path = folder / "authority.pem"
        self.path.write_bytes(made.public_bytes(serialization.Encoding.PEM))

    def context(self, name: x509.GeneralName, until: datetime) -> ssl.SSLContext:
        """Return what a server with a certificate for a name encrypts by."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "mail")])
        made = (
            self._certificate(subject, key, until)
            .add_extension(x509.SubjectAlternativeName([name]), critical=False)
            .sign(self._key, hashes.SHA256())
        )
        chain, secret = self._folder / "server.pem", self._folder / "server.key"
        chain.write_bytes(made.public_bytes(serialization.Encoding.PEM))
        secret.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
        )
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(chain, secret)
        return context

    def _certificate(
        self, subject: x509.Name, key: ec.EllipticCurvePrivateKey, until: datetime
    ) -> x509.CertificateBuilder:
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(BEGINNING)
            .not_valid_after(until)
            # Python 3.13 and later refuse a certificate without them.
            .add_extension(
                x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False
            )
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()),
                critical=False,
            )
        )


class Mailbox:
    """Keeps mails, and whether each came encrypted and by which login."""

    def __init__(self) -> None:
        self.mails: list[tuple[bool, str]] = []
        self.logins: list[bytes] = []

    async def handle_DATA(self, server: SMTP, session: Any, envelope: Any) -> str:  # noqa: N802 -- its name
        transport = server.transport
        assert transport is not None
        encrypted = transport.get_extra_info("ssl_object") is not None
        self.mails.append((encrypted, envelope.rcpt_tos[0]))
        del session
        return "250 OK"

    def authenticate(
        self, _server: Any, _session: Any, _envelope: Any, _kind: str, data: Any
    ) -> AuthResult:
        self.logins.append(data.password)
        return AuthResult(success=True)


@contextmanager
def serving(box: Mailbox, security: str, context: ssl.SSLContext | None) -> Iterator[int]:
    port = free_port()
    how: dict[str, Any] = {"auth_require_tls": False, "authenticator": box.authenticate}
    if security == "tls":
        how["ssl_context"] = context
    elif context is not None:
        how["tls_context"] = context
    controller = Controller(box, hostname="127.0.0.1", port=port, **how)
    controller.start()
    try:
        yield port
    finally:
        controller.stop()


@pytest.fixture
def authority(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Authority:
    made = Authority(tmp_path)
    # As an operator names an authority of their own.
    monkeypatch.setenv("SSL_CERT_FILE", str(made.path))
    monkeypatch.setenv("STRATAGEM_SECRET_MAIL", "mail-secret-0123456789")
    return made


def connect(desk: Desk, port: int, security: str, host: str = "127.0.0.1") -> None:
    desk.connect(
        "mail",
        "smtp",
        host=host,
        port=port,
        security=security,
        username="agent",
        password="${MAIL}",
        recipients=["*@example.org"],
        **{"from": "agent@example.org"},
    )
    desk.grant("email_sender", "MAIL", f"smtp://{host}:{port}")


MAIL = {"to": ["ann@example.org"], "subject": "Hi", "text": "Hello."}
_SIGNS_CERTIFICATES: Final = x509.KeyUsage(
    digital_signature=False,
    content_commitment=False,
    key_encipherment=False,
    data_encipherment=False,
    key_agreement=False,
    key_cert_sign=True,
    crl_sign=False,
    encipher_only=False,
    decipher_only=False,
)
HERE = x509.IPAddress(ip_address("127.0.0.1"))


@proves("standard:mail")
@pytest.mark.parametrize("security", ["starttls", "tls"])
def test_a_mail_is_sent_encrypted(desk: Desk, authority: Authority, security: str) -> None:
    box = Mailbox()
    with serving(box, security, authority.context(HERE, LATER)) as port:
        connect(desk, port, security)

        told = desk.call("email_sender", **MAIL)

    assert told["sent"] is True
    assert box.mails == [(True, "ann@example.org")]
    assert box.logins == [b"mail-secret-0123456789"]


@proves("standard:mail")
@pytest.mark.parametrize("security", ["starttls", "tls"])
@pytest.mark.parametrize(
    ("name", "until", "is_known"),
    [
        pytest.param(x509.DNSName("mail.example.net"), LATER, True, id="another name"),
        pytest.param(HERE, ENDED, True, id="expired"),
        pytest.param(HERE, LATER, False, id="an unknown authority"),
    ],
)
def test_a_certificate_is_checked_before_anything_is_said(
    desk: Desk,
    authority: Authority,
    monkeypatch: pytest.MonkeyPatch,
    security: str,
    name: x509.GeneralName,
    until: datetime,
    is_known: bool,
) -> None:
    if not is_known:
        monkeypatch.delenv("SSL_CERT_FILE")
    box = Mailbox()
    with serving(box, security, authority.context(name, until)) as port:
        connect(desk, port, security)

        refused = desk.refusal("email_sender", **MAIL)

    assert refused.code == "execution_error"
    assert refused.details["reason"] == "certificate"
    assert box.mails == []
    assert box.logins == []


@proves("standard:mail")
def test_a_server_without_encryption_is_told_no_password(desk: Desk, authority: Authority) -> None:
    del authority
    box = Mailbox()
    with serving(box, "starttls", None) as port:
        connect(desk, port, "starttls")

        refused = desk.refusal("email_sender", **MAIL)

    assert "STARTTLS" in refused.message
    assert "security" in refused.hint
    assert box.mails == []
    assert box.logins == []
