"""Which scenarios of the official suite apply to a server without the suite's fixtures.

Most scenarios call a tool, read a resource or get a prompt that a test server has to have
(`test_simple_text`, `test://static-text`): they test an SDK, and the one we stand on passes
them. What is left is what our own server decides. A check that needs such a fixture says that
it is untestable and is counted as not run.
"""

from __future__ import annotations

# The stable suite, for the protocol up to 2025-11-25.
SCENARIOS_2025 = (
    "server-initialize",
    "ping",
    "tools-list",
    "resources-list",
    "prompts-list",
    "server-sse-multiple-streams",
    "dns-rebinding-protection",
)

# The coming suite, for 2026-07-28.
SCENARIOS_2026 = (
    *SCENARIOS_2025,
    "server-session-lifecycle",
    "server-stateless",
    "caching",
    "http-header-validation",
    "sep-2164-resource-not-found",
    "input-required-result-unsupported-methods",
    "input-required-result-ignore-extra-params",
    "input-required-result-validate-input",
)

# By how their names begin: why the others are left out.
NOT_RUN = {
    "tools-call-": "calls tools of the test server",
    "json-schema-2020-12": "looks at a tool of the test server",
    "elicitation-": "calls tools of the test server; ours ask nothing back",
    "resources-read-": "reads resources of the test server",
    "resources-templates-read": "reads a resource of the test server",
    "resources-subscribe": "subscriptions are not offered",
    "resources-unsubscribe": "subscriptions are not offered",
    "prompts-get-": "gets prompts of the test server",
    "completion-complete": "completion is not offered",
    "logging-set-level": "logging to the client is not offered; deprecated in 2026",
    "server-sse-polling": "checks nothing without a tool of the test server",
    "http-custom-header-server-validation": "needs a tool with a header for an argument",
    "input-required-": "calls tools of the test server; ours ask nothing back",
    "tasks-": "calls tools of the test server",
    "sep-2640-skills-": "skills are not offered",
}
