"""`email_sender`: mail by an account that an administrator set, to recipients that it allows."""

from __future__ import annotations

import base64
import binascii
import smtplib
import ssl
from collections.abc import Mapping, Sequence
from email.message import EmailMessage
from email.utils import formataddr, formatdate, getaddresses, parseaddr
from fnmatch import fnmatchcase
from typing import Any, Final

from stratagem import limits
from stratagem.errors import ExecutionFailed, PermissionDenied, ValidationFailed
from stratagem.gateway.catalogue.standard_tool import (
    Settings,
    StandardTool,
    ToolRun,
    define,
    examples,
)

__all__ = ["TOOLS"]

_PORTS: Final = {"starttls": 587, "tls": 465, "none": 25}
_SHOWN_CHARS: Final = 2_000


async def _send(run: ToolRun) -> dict[str, Any]:
    given = run.arguments
    settings = run.connection(given.get("account"), field="account")
    recipients = _recipients(given, settings)
    # Away from the event loop: attachments are large, and long headers are folded word by word.
    message, size = await run.in_thread(lambda: _compose_and_measure(given, settings, run))
    if size > limits.MAIL_BYTES_MAX:
        raise ValidationFailed(
            f"The mail has {size:,} bytes; the limit is {limits.MAIL_BYTES_MAX:,}.",
            field="attachments",
            limit=limits.MAIL_BYTES_MAX,
        )
    answer = {
        "messageId": str(message["Message-ID"]),
        "from": str(message["From"]),
        "recipients": recipients,
        "subject": str(message["Subject"]),
        "bytes": size,
    }
    if given.get("dryRun"):
        return {"sent": False, "dryRun": True, **answer, "preview": _preview(message)}
    refused = await _deliver(run, settings, message, recipients)
    return {"sent": True, **answer, **({"refused": refused} if refused else {})}


def _recipients(given: Mapping[str, Any], settings: Settings) -> list[str]:
    """Return the addresses, each of which has to be allowed.

    Raises:
        PermissionDenied: One is not on the account's list.
    """
    found: list[str] = []
    for field in ("to", "cc", "bcc"):
        for at, text in enumerate(given.get(field) or ()):
            place = f"{field}[{at}]"
            pairs = getaddresses([text])
            address = pairs[0][1] if len(pairs) == 1 else ""
            if address.count("@") != 1 or any(char in address for char in " \r\n<>,;\"'"):
                raise ValidationFailed(f"`{place}` is not an e-mail address.", field=place)
            if not _is_allowed(address, settings["recipients"]):
                raise PermissionDenied(
                    f"The account may not write to {address}.",
                    reason="recipient",
                    field=place,
                    hint="An administrator can add it to `recipients` of the connection.",
                )
            found.append(address)
    return list(dict.fromkeys(found))


def _is_allowed(address: str, patterns: Sequence[str]) -> bool:
    plain = address.casefold()
    return any(fnmatchcase(plain, pattern.casefold()) for pattern in patterns)


def _compose_and_measure(
    given: Mapping[str, Any], settings: Settings, run: ToolRun
) -> tuple[EmailMessage, int]:
    message = _compose(given, settings, run)
    return message, len(bytes(message))


def _compose(given: Mapping[str, Any], settings: Settings, run: ToolRun) -> EmailMessage:
    message = EmailMessage()
    name, sender = parseaddr(settings["from"])
    message["From"] = formataddr((name, sender))
    message["Subject"] = _line(given["subject"], "subject")
    for field in ("to", "cc"):
        if given.get(field):
            message[field.title()] = ", ".join(
                _line(each, f"{field}[{at}]") for at, each in enumerate(given[field])
            )
    if given.get("replyTo"):
        message["Reply-To"] = _line(given["replyTo"], "replyTo")
    message["Date"] = formatdate(run.parts.clock() / 1_000_000)
    # The same for each attempt of one call, so that a mail that came twice is seen as one.
    identity = run.call.request_key or run.call.execution_id
    message["Message-ID"] = f"<{identity}@{sender.rpartition('@')[2] or 'localhost'}>"
    message.set_content(given["text"])
    if given.get("html"):
        message.add_alternative(given["html"], subtype="html")
    for at, attachment in enumerate(given.get("attachments") or ()):
        _attach(message, attachment, f"attachments[{at}]")
    return message


def _line(text: str, field: str) -> str:
    # More characters end a line than those that a mail's headers are parted by.
    if text.splitlines() not in ([], [text]) or "\0" in text:
        raise ValidationFailed(f"`{field}` must be one line.", field=field)
    return text


def _attach(message: EmailMessage, given: Mapping[str, Any], field: str) -> None:
    kind, _, subtype = given.get("contentType", "application/octet-stream").partition("/")
    if (
        not subtype
        or not (kind + subtype).replace(".", "").replace("+", "").replace("-", "").isalnum()
    ):
        raise ValidationFailed(
            f"`{field}.contentType` is not a media type.", field=f"{field}.contentType"
        )
    try:
        data = base64.b64decode(given["content"], validate=True)
    except (binascii.Error, ValueError) as error:
        raise ValidationFailed(
            f"`{field}.content` is not base64.", field=f"{field}.content"
        ) from error
    name = _line(given["name"], f"{field}.name")
    message.add_attachment(data, maintype=kind, subtype=subtype, filename=name)


def _preview(message: EmailMessage) -> str:
    body = message.get_body(preferencelist=("plain",))
    text = body.get_content() if body is not None else ""
    headers = "\n".join(f"{name}: {value}" for name, value in message.items())
    return f"{headers}\n\n{text}"[:_SHOWN_CHARS]


async def _deliver(
    run: ToolRun, settings: Settings, message: EmailMessage, recipients: list[str]
) -> list[str]:
    security = settings.get("security", "starttls")
    host, port = settings["host"], settings.get("port", _PORTS[security])
    address = (await run.parts.outbound().addresses(host, port))[0]
    login = None
    if "username" in settings:
        password = (
            run.secret(settings["password"], f"smtp://{host}:{port}")
            if "password" in settings
            else ""
        )
        login = (settings["username"], password)
    seconds = min(run.seconds, limits.MAIL_SECONDS_MAX)
    refused: list[str] = await run.in_thread(
        lambda: _talk(host, address, port, security, login, message, recipients, seconds)
    )
    return refused


def _talk(  # noqa: PLR0917 -- one conversation, called in one place
    host: str,
    address: str,
    port: int,
    security: str,
    login: tuple[str, str] | None,
    message: EmailMessage,
    recipients: list[str],
    seconds: float,
) -> list[str]:
    """Give a mail to the server; return which recipients it refused."""
    try:
        with _connect(host, address, port, security, seconds) as server:
            if login is not None:
                server.login(*login)
            refused = server.send_message(message, to_addrs=recipients)
            return sorted(refused)
    except smtplib.SMTPAuthenticationError:
        raise ExecutionFailed(
            "The mail server does not accept the account.", safe=True, hint="Check its secret."
        ) from None
    except smtplib.SMTPRecipientsRefused as error:
        raise ExecutionFailed(
            "The mail server refused every recipient.",
            answered=True,
            refused=sorted(error.recipients),
        ) from None
    except smtplib.SMTPNotSupportedError as error:
        # Nothing was sent, not even the name of the account.
        raise ExecutionFailed(
            f"The mail server does not support the settings of the account: {str(error)[:300]}",
            safe=True,
            answered=True,
            hint="Set `security` and `username` of the connection as the server requires.",
        ) from None
    except smtplib.SMTPException as error:
        raise ExecutionFailed(f"The mail server failed: {str(error)[:300]}.") from None
    except ssl.SSLCertVerificationError as error:
        raise ExecutionFailed(
            f"The certificate of {host}:{port} is not accepted: {error.verify_message}.",
            safe=True,
            answered=True,
            reason="certificate",
            hint="Set `host` to a name in the certificate; SSL_CERT_FILE names other authorities.",
        ) from None
    except OSError as error:
        raise ExecutionFailed(
            f"The mail server at {host}:{port} cannot be reached: {str(error)[:200]}.",
            safe=True,
        ) from None


def _connect(host: str, address: str, port: int, security: str, seconds: float) -> smtplib.SMTP:
    """Connect to the address that the guard passed, with the certificate checked for the host."""
    context = ssl.create_default_context()
    if security == "tls":
        server: smtplib.SMTP = _PinnedTls(host, address, port, seconds, context)
    else:
        server = _Pinned(host, address, port, seconds)
    if security == "starttls":
        try:
            server.starttls(context=context)
        except BaseException:
            server.close()
            raise
    return server


class _Pinned(smtplib.SMTP):
    """A connection to one address, under the name of the host."""

    def __init__(self, host: str, address: str, port: int, seconds: float) -> None:
        self._address = address
        super().__init__(host, port, timeout=seconds)

    def _get_socket(self, host: str, port: int, timeout: float) -> Any:
        import socket

        del host
        return socket.create_connection((self._address, port), timeout)


class _PinnedTls(_Pinned):
    """The same, encrypted from the first byte."""

    def __init__(
        self, host: str, address: str, port: int, seconds: float, context: ssl.SSLContext
    ) -> None:
        self._context = context
        super().__init__(host, address, port, seconds)

    def _get_socket(self, host: str, port: int, timeout: float) -> Any:
        plain = super()._get_socket(host, port, timeout)
        return self._context.wrap_socket(plain, server_hostname=host)


_ADDRESSES: Final = {
    "type": "array",
    "items": {"type": "string", "minLength": 3, "maxLength": 320},
    "maxItems": 50,
}

TOOLS: Final = (
    StandardTool(
        define(
            "email_sender",
            "Send an e-mail from a configured account to allowed recipients, or show what "
            "would be sent.",
            category="integration",
            details=(
                "Sends by an SMTP account that an administrator set; the sender is the account's. "
                "Only recipients on the account's list are allowed. With `dryRun` nothing is "
                "sent and the mail is shown. Attachments are given as base64. A sent mail "
                "cannot be recalled: try `dryRun` first."
            ),
            takes={
                "to": {**_ADDRESSES, "minItems": 1, "description": "Recipients"},
                "cc": _ADDRESSES,
                "bcc": _ADDRESSES,
                "subject": {"type": "string", "minLength": 1, "maxLength": 500},
                "text": {"type": "string", "maxLength": 500_000, "description": "Plain text"},
                "html": {"type": "string", "maxLength": 500_000, "description": "The same as HTML"},
                "replyTo": {"type": "string", "maxLength": 320},
                "attachments": {
                    "type": "array",
                    "maxItems": 10,
                    "items": {
                        "type": "object",
                        "properties": {
                            "name": {"type": "string", "minLength": 1, "maxLength": 200},
                            "content": {"type": "string", "description": "base64"},
                            "contentType": {"type": "string", "maxLength": 100},
                        },
                        "required": ["name", "content"],
                        "additionalProperties": False,
                    },
                },
                "account": {"type": "string", "description": "Which one, if there are several"},
                "dryRun": {"type": "boolean", "default": False},
            },
            required=("to", "subject", "text"),
            gives={
                "sent": {"type": "boolean"},
                "dryRun": {"type": "boolean"},
                "messageId": {"type": "string"},
                "from": {"type": "string"},
                "recipients": {"type": "array", "items": {"type": "string"}},
                "refused": {"type": "array", "items": {"type": "string"}},
                "subject": {"type": "string"},
                "bytes": {"type": "integer"},
                "preview": {"type": "string"},
            },
            gives_always=("sent", "messageId", "recipients"),
            tags=("email", "mail", "send", "smtp", "notify"),
            shown=examples(
                (
                    "Try it first",
                    {
                        "to": ["team@example.org"],
                        "subject": "Report",
                        "text": "The report is ready.",
                        "dryRun": True,
                    },
                )
            ),
            internet=True,
            changes=True,
        ),
        _send,
        connection="smtp",
    ),
)
