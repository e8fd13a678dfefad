"""What the team of the example stores, says, breaks, mends and learns."""

from __future__ import annotations

from typing import Any, Final

from stratagem.deferred_tuples import NamedTuple

__all__ = [
    "CONCEPTS",
    "CONVERSATIONS",
    "FACTS",
    "NOTES",
    "PREREQUISITES",
    "PROBLEMS",
    "DemoFact",
    "DemoProblem",
]


class DemoFact(NamedTuple):
    """A value under a key, on a day of the month, by one of the team."""

    day: int
    actor: str
    namespace: str
    key: str
    value: Any
    tags: tuple[str, ...] = ()


FACTS: Final = (
    DemoFact(
        1,
        "mara",
        "harbor",
        "project/goal",
        "Tell every customer where their container is, within a minute of it moving.",
        ("pinned", "goal"),
    ),
    DemoFact(
        1,
        "mara",
        "harbor",
        "project/team",
        {"people": ["Mara", "Jonas"], "agents": ["planner", "builder", "reviewer", "operator"]},
        ("team",),
    ),
    DemoFact(
        1,
        "planner",
        "harbor",
        "decisions/database",
        {
            "choice": "SQLite",
            "why": "One node, fewer moving parts",
            "revisit": "when a second region opens",
        },
        ("decision", "database"),
    ),
    DemoFact(
        2,
        "planner",
        "harbor",
        "decisions/queue",
        {"choice": "RabbitMQ", "why": "Carriers push updates in bursts"},
        ("decision",),
    ),
    DemoFact(
        2,
        "builder",
        "harbor",
        "api/rate-limit",
        {"requests_per_minute": 60, "burst": 20},
        ("api", "limits"),
    ),
    DemoFact(2, "builder", "harbor", "api/timeouts", {"connect": 2, "read": 10}, ("api",)),
    DemoFact(
        3,
        "mara",
        "people",
        "jonas/preferences",
        "Jonas wants pull requests below 300 lines, and a screenshot with every change of a page.",
        ("preference", "pinned"),
    ),
    DemoFact(
        3,
        "reviewer",
        "harbor",
        "style/python",
        "# Python\n\n- Type hints everywhere\n- `ruff` and `mypy --strict` before each commit\n- No helper modules named *utils*",
        ("style",),
    ),
    DemoFact(
        4,
        "builder",
        "harbor",
        "services/tracker",
        {"port": 8080, "owner": "builder", "replicas": 1, "health": "/health"},
        ("service",),
    ),
    DemoFact(
        4,
        "builder",
        "harbor",
        "services/notifier",
        {"port": 8081, "owner": "builder", "replicas": 1, "health": "/health"},
        ("service",),
    ),
    DemoFact(
        5,
        "operator",
        "runbook",
        "deploy/steps",
        "1. Run the migrations\n2. Roll one replica\n3. Watch `/health` for five minutes\n4. Roll the rest",
        ("runbook", "pinned"),
    ),
    DemoFact(
        5,
        "operator",
        "runbook",
        "deploy/window",
        "Tuesdays and Thursdays, 14:00 to 16:00 UTC",
        ("runbook",),
    ),
    DemoFact(
        6,
        "planner",
        "harbor",
        "roadmap",
        {"now": ["tracking page"], "next": ["notifications"], "later": ["customs documents"]},
        ("roadmap",),
    ),
    DemoFact(
        8,
        "planner",
        "harbor",
        "decisions/database",
        {
            "choice": "PostgreSQL",
            "why": "Two regions write at once since the Rotterdam contract",
            "revisit": "never",
        },
        ("decision", "database"),
    ),
    DemoFact(
        9,
        "builder",
        "harbor",
        "api/rate-limit",
        {"requests_per_minute": 120, "burst": 40},
        ("api", "limits"),
    ),
    DemoFact(
        10,
        "mara",
        "people",
        "customers/hanse-lines",
        {
            "contact": "Ines Brandt",
            "plan": "Enterprise",
            "since": "2024",
            "notes": "Calls when a container is silent for an hour",
        },
        ("customer",),
    ),
    DemoFact(
        11,
        "mara",
        "people",
        "customers/baltic-freight",
        {"contact": "Oskar Lind", "plan": "Team", "since": "2025"},
        ("customer",),
    ),
    DemoFact(
        12,
        "operator",
        "runbook",
        "alerts/silence",
        "A container that says nothing for 45 minutes pages the operator.",
        ("runbook", "alert"),
    ),
    DemoFact(
        13,
        "builder",
        "harbor",
        "services/tracker",
        {"port": 8080, "owner": "builder", "replicas": 3, "health": "/health"},
        ("service",),
    ),
    DemoFact(
        14,
        "planner",
        "harbor",
        "roadmap",
        {"now": ["notifications"], "next": ["customs documents"], "later": ["carbon report"]},
        ("roadmap",),
    ),
    DemoFact(
        15,
        "reviewer",
        "harbor",
        "style/python",
        "# Python\n\n- Type hints everywhere\n- `ruff` and `mypy --strict` before each commit\n- No helper modules named *utils*\n- Every regular expression has a bound",
        ("style",),
    ),
    DemoFact(
        16,
        "operator",
        "runbook",
        "deploy/window",
        "Tuesdays, Wednesdays and Thursdays, 13:00 to 16:00 UTC",
        ("runbook",),
    ),
    DemoFact(
        17,
        "builder",
        "harbor",
        "api/timeouts",
        {"connect": 2, "read": 30, "why": "customs answers slowly"},
        ("api",),
    ),
    DemoFact(
        18,
        "mara",
        "people",
        "customers/hanse-lines",
        {
            "contact": "Ines Brandt",
            "plan": "Enterprise",
            "since": "2024",
            "notes": "Wants a call before any maintenance",
        },
        ("customer", "pinned"),
    ),
    DemoFact(
        20,
        "planner",
        "harbor",
        "decisions/maps",
        {"choice": "Our own tiles", "why": "The provider changed its prices twice"},
        ("decision",),
    ),
    DemoFact(
        22,
        "operator",
        "runbook",
        "alerts/silence",
        "A container that says nothing for 30 minutes pages the operator; Hanse Lines after 15.",
        ("runbook", "alert"),
    ),
    DemoFact(
        24,
        "builder",
        "harbor",
        "services/notifier",
        {
            "port": 8081,
            "owner": "builder",
            "replicas": 2,
            "health": "/health",
            "queue": "notifications",
        },
        ("service",),
    ),
    DemoFact(
        26,
        "planner",
        "harbor",
        "roadmap",
        {"now": ["customs documents"], "next": ["carbon report"], "later": ["second port"]},
        ("roadmap",),
    ),
    DemoFact(
        27,
        "reviewer",
        "harbor",
        "review/findings",
        {"open": 2, "closed": 41, "oldest": "retry without jitter in notifier"},
        ("review",),
    ),
    DemoFact(
        28,
        "mara",
        "harbor",
        "project/goal",
        "Tell every customer where their container is, within twenty seconds of it moving.",
        ("pinned", "goal"),
    ),
)

# Short notes that fill the days: what an agent jots down while it works.
NOTES: Final = (
    "Position updates of carrier {n} come in local time; converted to UTC at the edge.",
    "Hanse Lines sends the same event twice within {n} seconds; deduplicated by event id.",
    "The ETA of vessel {n} was off by two hours because of a port strike.",
    "Container {n} lost its sensor; its track is estimated from the vessel.",
    "Customs form {n} needs the tariff number with ten digits, not eight.",
    "Load test with {n} clients: p95 below 180 ms, no errors.",
    "Index on (container, seen_at) made the track query {n} times faster.",
    "Notification {n} went out late: the queue was full after the backup.",
)

CONVERSATIONS: Final = (
    (
        2,
        "harbor",
        "kickoff",
        "planner",
        (
            ("user", "We need one page that shows where a container is. What do you need from me?"),
            (
                "assistant",
                "Three things: which carriers we start with, how fresh a position must be, and who may see it.",
            ),
            (
                "user",
                "Maersk and MSC first. Fresh within a minute. Only the customer who owns the container. Always write dates as day month year.",
            ),
            (
                "assistant",
                "Stored as the goal of the project. I begin with the positions, and Builder with the page.",
            ),
        ),
    ),
    (
        7,
        "harbor",
        "database-choice",
        "planner",
        (
            ("user", "The Rotterdam contract is signed. Does SQLite still do?"),
            (
                "assistant",
                "One writer per region would do; two regions that write at once would not. I propose **PostgreSQL**, on a branch first, so that we can compare.",
            ),
            ("user", "Do it, but keep the tracker running."),
            (
                "assistant",
                "Forked `postgres-trial`. The tracker stays on the default branch until the comparison is done.",
            ),
        ),
    ),
    (
        12,
        "harbor",
        "silent-containers",
        "operator",
        (
            (
                "user",
                "Hanse Lines called: container HLXU 4417 was silent for an hour and nobody noticed.",
            ),
            (
                "assistant",
                "The alert waits 60 minutes. I lower it to 45 and put that into the runbook.",
            ),
            ("user", "Fifteen for Hanse Lines."),
            (
                "assistant",
                "That needs alerts by customer, which come with notifications. Noted for the roadmap.",
            ),
        ),
    ),
    (
        17,
        "harbor",
        "customs-timeouts",
        "builder",
        (
            ("user", "Half of the customs requests fail since this morning."),
            (
                "assistant",
                "All are `ReadTimeout`. The known fix is a longer timeout together with a retry: it worked in 5 of 6 attempts on Linux.",
            ),
            ("user", "Try it."),
            (
                "assistant",
                "Timeout 30 s, two retries with jitter. The error rate fell from 48 % to 1 %. Recorded as an outcome.",
            ),
        ),
    ),
    (
        23,
        "harbor",
        "pricing-experiment",
        "planner",
        (
            ("user", "What if we price by container instead of by seat?"),
            (
                "assistant",
                "I try it on the branch `pricing-by-container`: rate limits, plans and the roadmap change there and nowhere else.",
            ),
        ),
    ),
    (
        28,
        "harbor",
        "handover",
        "reviewer",
        (
            ("user", "What is open before the holidays?"),
            (
                "assistant",
                "Two findings: retries without jitter in the notifier, and the pricing branch, which changes the same rate limit as the default branch. A person has to decide that.",
            ),
            ("user", "I decide tomorrow in the console."),
        ),
    ),
)


class DemoProblem(NamedTuple):
    """A problem, its fixes, and how each went: (day, fix, worked, environment)."""

    day: int
    title: str
    error: str
    tags: tuple[str, ...]
    fixes: tuple[str, ...]
    outcomes: tuple[tuple[int, int, bool, str], ...]


PROBLEMS: Final = (
    DemoProblem(
        3,
        "Database is locked while the tracker writes",
        "sqlite3.OperationalError: database is locked",
        ("database",),
        ("Set busy_timeout to 5000 ms", "Use one writer and a queue"),
        (
            (3, 0, True, "linux"),
            (4, 0, True, "linux"),
            (6, 0, False, "linux"),
            (7, 0, False, "linux"),
            (7, 1, True, "linux"),
            (8, 1, True, "docker"),
        ),
    ),
    DemoProblem(
        5,
        "Customs service answers too slowly",
        "httpx.ReadTimeout: timed out",
        ("http", "customs"),
        ("Raise the read timeout to 30 s and retry twice with jitter", "Ask at night"),
        (
            (5, 0, True, "linux"),
            (9, 0, True, "docker"),
            (11, 0, False, "macos"),
            (15, 0, True, "linux"),
            (17, 0, True, "linux"),
            (19, 0, True, "docker"),
            (19, 1, False, "linux"),
        ),
    ),
    DemoProblem(
        6,
        "Tracker image does not build on Apple silicon",
        "exec format error",
        ("docker", "build"),
        ("Build with --platform linux/amd64,linux/arm64",),
        ((6, 0, True, "macos"), (7, 0, True, "macos"), (21, 0, True, "macos")),
    ),
    DemoProblem(
        9,
        "Position parser rejects carrier timestamps",
        "ValueError: time data '31.03.2026 14:05' does not match format",
        ("parsing",),
        ("Parse with the carrier's own format", "Ask the carrier for ISO 8601"),
        (
            (9, 0, True, "linux"),
            (10, 0, True, "linux"),
            (16, 0, True, "docker"),
            (12, 1, False, "linux"),
        ),
    ),
    DemoProblem(
        10,
        "Map tiles stay grey",
        "403 Forbidden: tile quota exceeded",
        ("maps", "http"),
        ("Raise the quota of the tile provider", "Serve our own tiles"),
        (
            (10, 0, True, "linux"),
            (13, 0, True, "linux"),
            (18, 0, False, "linux"),
            (20, 0, False, "linux"),
            (22, 0, False, "docker"),
            (20, 1, True, "linux"),
            (23, 1, True, "docker"),
        ),
    ),
    DemoProblem(
        13,
        "Migration stops half way",
        'psycopg.errors.DuplicateColumn: column "seen_at" already exists',
        ("database", "migration"),
        ("Make migrations idempotent: ADD COLUMN IF NOT EXISTS",),
        ((13, 0, True, "linux"), (14, 0, True, "docker")),
    ),
    DemoProblem(
        16,
        "Notifier sends the same message twice",
        "AssertionError: message id seen before",
        ("queue",),
        ("Acknowledge after sending, and deduplicate by id",),
        ((16, 0, True, "linux"), (24, 0, False, "docker"), (25, 0, True, "docker")),
    ),
    DemoProblem(
        21,
        "Tests hang in continuous integration",
        "TimeoutError: test_notifications exceeded 120 s",
        ("ci", "tests"),
        ("Wait on an event instead of sleeping", "Run the suite with one worker"),
        (
            (21, 0, True, "github-actions"),
            (22, 0, True, "github-actions"),
            (21, 1, False, "github-actions"),
        ),
    ),
    DemoProblem(
        26,
        "Certificate of the port's gateway is not trusted",
        "ssl.SSLCertVerificationError: certificate verify failed",
        ("http", "tls"),
        ("Add the port's root certificate to the image",),
        ((26, 0, False, "docker"),),
    ),
)

# Area, topic, name, explanation.
CONCEPTS: Final = (
    (
        "Shipping",
        "Containers",
        "Container",
        "A box of standard size that ships, trains and lorries carry alike.",
    ),
    (
        "Shipping",
        "Containers",
        "Bill of lading",
        "The document by which a carrier says that it has taken goods on board.",
    ),
    (
        "Shipping",
        "Containers",
        "Demurrage",
        "What is paid for a container that stays in the port longer than agreed.",
    ),
    (
        "Shipping",
        "Containers",
        "Reefer",
        "A container that cools, and that has to be plugged in and watched.",
    ),
    (
        "Shipping",
        "Vessels",
        "Voyage",
        "A journey of a vessel between ports, with a number of its own.",
    ),
    (
        "Shipping",
        "Vessels",
        "AIS",
        "Messages by which vessels tell their position every few seconds.",
    ),
    (
        "Shipping",
        "Vessels",
        "ETA",
        "When a vessel is expected to arrive, by its position, speed and schedule.",
    ),
    (
        "Shipping",
        "Vessels",
        "Port call",
        "The stay of a vessel at a berth, from the first to the last line.",
    ),
    (
        "Shipping",
        "Customs",
        "Tariff number",
        "Ten digits that say what goods are, and what they cost at the border.",
    ),
    (
        "Shipping",
        "Customs",
        "Customs declaration",
        "What is told to customs before goods may be landed.",
    ),
    (
        "Engineering",
        "Events",
        "Event",
        "Something that happened, written down once and never changed.",
    ),
    (
        "Engineering",
        "Events",
        "Idempotency key",
        "An id by which a repeated request is recognised and done once.",
    ),
    (
        "Engineering",
        "Events",
        "Outbox",
        "A table from which messages are sent after the transaction that wrote them.",
    ),
    (
        "Engineering",
        "Events",
        "Event sourcing",
        "Keeping what happened rather than what is, and deriving the rest.",
    ),
    ("Engineering", "Data", "Transaction", "Work that is stored whole or not at all."),
    (
        "Engineering",
        "Data",
        "Index",
        "A copy of some columns in an order that makes a question cheap.",
    ),
    ("Engineering", "Data", "Replication", "Keeping the same data on several machines."),
    ("Engineering", "Data", "Migration", "A change of the schema that runs once, in order."),
    (
        "Engineering",
        "Data",
        "Connection pool",
        "Open connections that requests borrow and give back.",
    ),
    (
        "Engineering",
        "Reliability",
        "Timeout",
        "How long something is waited for before it counts as failed.",
    ),
    ("Engineering", "Reliability", "Retry", "Trying again what may succeed the next time."),
    (
        "Engineering",
        "Reliability",
        "Jitter",
        "Chance in the time between retries, so that clients do not come together.",
    ),
    (
        "Engineering",
        "Reliability",
        "Circuit breaker",
        "Not calling for a while what has failed several times.",
    ),
    (
        "Engineering",
        "Reliability",
        "Backpressure",
        "Telling those who send that there is enough for now.",
    ),
    (
        "Engineering",
        "Reliability",
        "Health check",
        "A question to a service that is answered only if it can work.",
    ),
    ("Product", "Tracking", "Track", "The positions of a container in the order of time."),
    (
        "Product",
        "Tracking",
        "Silent container",
        "One that has told no position for longer than its customer accepts.",
    ),
    (
        "Product",
        "Tracking",
        "Arrival notice",
        "A message to a customer that a container will arrive soon.",
    ),
    (
        "Product",
        "Tracking",
        "Tracking page",
        "The page that shows a customer where a container is.",
    ),
    ("Product", "Plans", "Rate limit", "How many requests a plan allows in a minute."),
    ("Product", "Plans", "Seat", "A person of a customer's who may sign in."),
)

# What has to be understood before what.
PREREQUISITES: Final = (
    ("Container", "Bill of lading"),
    ("Container", "Reefer"),
    ("Container", "Demurrage"),
    ("Container", "Track"),
    ("Voyage", "Port call"),
    ("Voyage", "ETA"),
    ("AIS", "ETA"),
    ("AIS", "Track"),
    ("Port call", "Demurrage"),
    ("Bill of lading", "Customs declaration"),
    ("Tariff number", "Customs declaration"),
    ("Event", "Event sourcing"),
    ("Event", "Idempotency key"),
    ("Transaction", "Outbox"),
    ("Event", "Outbox"),
    ("Transaction", "Event sourcing"),
    ("Transaction", "Migration"),
    ("Transaction", "Replication"),
    ("Index", "Migration"),
    ("Timeout", "Retry"),
    ("Retry", "Jitter"),
    ("Retry", "Circuit breaker"),
    ("Idempotency key", "Retry"),
    ("Timeout", "Circuit breaker"),
    ("Connection pool", "Backpressure"),
    ("Timeout", "Health check"),
    ("Track", "Silent container"),
    ("Track", "Tracking page"),
    ("ETA", "Arrival notice"),
    ("ETA", "Tracking page"),
    ("Outbox", "Arrival notice"),
    ("Silent container", "Arrival notice"),
    ("Health check", "Silent container"),
    ("Rate limit", "Backpressure"),
)
