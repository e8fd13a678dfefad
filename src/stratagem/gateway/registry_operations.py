"""The operations on the registry: tools, resources, sources and providers."""

from __future__ import annotations

from stratagem.gateway import inputs, services
from stratagem.gateway.calls.answers import (
    BreakerReset,
    ExecutionPage,
    PurgedToolRecord,
    ToolAnswer,
    ToolBreakers,
    ToolList,
)
from stratagem.gateway.calls.approval_service import ApprovalService
from stratagem.gateway.calls.guardrail_service import GuardrailService
from stratagem.gateway.calls.retention import Retention
from stratagem.gateway.calls.secret_service import SecretService
from stratagem.gateway.person import (
    ADD_SERVER,
    APPROVE_SERVER,
    CONNECT,
    DECIDE,
    DEFINE_GUARDRAIL,
    DEFINE_SET,
    ERASE,
    GRANT,
    PURGE_TOOL,
    REGISTER,
    REMOVE_GUARDRAIL,
    REMOVE_SECRET,
    SET_SECRET,
    UPDATE,
)
from stratagem.gateway.providers.service import ProviderService
from stratagem.gateway.registry.answers import (
    ApprovalList,
    GuardrailList,
    KeptSecret,
    RemovedTool,
    ResourceAnswer,
    ResourceList,
    ToolRegistration,
    ToolSetList,
    ToolUpdate,
)
from stratagem.gateway.registry.connection_service import ConnectionService
from stratagem.gateway.registry.credential_service import CredentialService
from stratagem.gateway.registry.primitive_service import PrimitiveService
from stratagem.gateway.registry.resource_service import ResourceService
from stratagem.gateway.registry.sources import Sources
from stratagem.gateway.registry.tool_set_service import ToolSetService
from stratagem.gateway.rows import row
from stratagem.gateway.service import Gateway
from stratagem.operation import CommandHint, Operation, SdkMethod

__all__ = ["OPERATIONS", "say_registered"]


def say_registered(answer: ToolRegistration | ToolUpdate) -> str:
    """Say what became of a registration."""
    warnings = answer["validation"]["warnings"]
    said = f"{answer['name']} ({answer['toolId']}) is {answer['status']}."
    return " ".join([said, *warnings])


def _say_purged(answer: PurgedToolRecord) -> str:
    what = ", ".join(f"{count} {kind}" for kind, count in answer["records"].items())
    words = f"{'Erased' if answer['purged'] else 'Would erase'} {what}, from every branch."
    return f"{words} {answer['note']}"


def _say_tools(answer: ToolList) -> str:
    lines = [f"{each['name']}: {each['description']}" for each in answer["tools"]]
    return "\n".join([f"{answer['total']} tools.", *lines])


def _say_tool(answer: ToolAnswer) -> str:
    tool = answer["tool"]
    return f"{tool['name']} {tool['version']} ({tool['status']}): {tool['description']}"


def _say_removed(answer: RemovedTool) -> str:
    return f"{answer['name']} is removed."


def _say_breakers(answer: ToolBreakers) -> str:
    lines = [
        f"{each['toolName']}: {each['status']} after {each['failures']} failures ({each['reason']})"
        + (f", tried again in {each['retryAfter']} s" if each["retryAfter"] is not None else "")
        for each in answer["breakers"]
    ]
    return "\n".join(lines) or "No tool has failed lately."


def _say_reset(answer: BreakerReset) -> str:
    name = answer["toolName"]
    return f"{name} may be called again." if answer["reset"] else f"{name} was not paused."


def _say_kept(answer: KeptSecret) -> str:
    name, kind, key = answer["name"], answer["source"], answer["key"]
    where = "Kept" if kind == "stored" else f"The value was read from a {kind}; it is now stored"
    return (
        f"{where} as {name}, encrypted with the key of {key}: keep a copy of that key apart from "
        "the database and its backups."
    )


def _say_guardrails(answer: GuardrailList) -> str:
    lines = []
    for each in answer["guardrails"]:
        about = [f"{name} {', '.join(values)}" for name, values in each["match"].items()]
        what = each["check"].get("callable") or each["check"].get("tool") or ""
        lines.append(
            f"{each['name']}: {each['when']} calls, {each['check']['type']} {what}".rstrip()
            + (f" ({'; '.join(about)})" if about else "")
        )
    return "\n".join(lines)


def _say_sets(answer: ToolSetList) -> str:
    lines = [f"{each['name']}: {', '.join(each['allow'])}" for each in answer["toolsets"]]
    return "\n".join(lines) or "There are no named sets of tools."


def _say_approvals(answer: ApprovalList) -> str:
    lines = [
        f"{each['id']} {each['kind']} {each['tool']}: {each['state']}"
        for each in answer["approvals"]
    ]
    return "\n".join(lines) or "Nothing is waiting for approval."


def _say_executions(answer: ExecutionPage) -> str:
    lines = [
        f"{each['startedAt']} {each['tool']} {each['status']} {each['duration']:.0f} ms"
        for each in answer["executions"]
    ]
    return "\n".join(lines) or "No executions."


def _say_resource(answer: ResourceAnswer) -> str:
    if "rendered" in answer:
        return answer["rendered"]
    resource = answer["resource"]
    return f"{resource['name']} {resource['version']} ({resource['id']})"


def _say_resources(answer: ResourceList) -> str:
    lines = [
        f"{each['name']} ({each['type']}): {each.get('description', '')}".rstrip(": ")
        for each in answer["resources"]
    ]
    return "\n".join(lines) or "No resources."


OPERATIONS: tuple[Operation, ...] = (
    row(
        "tools_list",
        "List tools",
        "Registered tools, filtered by category, provider, capabilities, tags, status and words.",
        inputs.ListToolsInput,
        services.gateway,
        Gateway.list,
        says=_say_tools,
        toolset="registry",
        reads=True,
        sdk=SdkMethod("list", part="tools"),
        commands=(
            CommandHint(
                ("tools", "list"),
                "Show the registered tools, your own first.",
                positional=("search",),
                renderer="tools.show_list",
                handler="tools.list_tools",
            ),
        ),
    ),
    row(
        "tool_get",
        "Tool details",
        "Everything about one registered tool, with its statistics.",
        inputs.ToolInput,
        services.gateway,
        Gateway.get,
        says=_say_tool,
        toolset="registry",
        reads=True,
        sdk=SdkMethod("get", ("tool_id",), part="tool"),
        commands=(
            CommandHint(
                ("tools", "show"),
                "Show everything about a tool.",
                positional=("toolId",),
                renderer="tools.show_tool",
            ),
        ),
        example={"toolId": "calculator"},
    ),
    row(
        "tool_register",
        "Register tool",
        "Register a tool: its schema, and a handler that runs it.",
        inputs.RegisterInput,
        services.gateway,
        Gateway.register,
        says=say_registered,
        answer_fields=("toolId", "status", "validation"),
        toolset="registry",
        person=REGISTER,
        sdk=SdkMethod("register"),
        example={
            "name": "sums",
            "description": "Work out a sum",
            "inputSchema": {"type": "object", "properties": {"expression": {"type": "string"}}},
            "handler": {"type": "builtin", "name": "calculator"},
        },
    ),
    row(
        "tool_update",
        "Update tool",
        "Change a registered tool; earlier versions stay in its history.",
        inputs.UpdateInput,
        services.gateway,
        Gateway.update,
        says=say_registered,
        answer_fields=("toolId", "changes"),
        toolset="registry",
        person=UPDATE,
        sdk=SdkMethod("update", ("tool_id",)),
    ),
    row(
        "tool_remove",
        "Remove tool",
        "Remove a tool from the registry; its history stays.",
        inputs.RemoveInput,
        services.gateway,
        Gateway.remove,
        says=_say_removed,
        toolset="registry",
        destructive=True,
        sdk=SdkMethod("remove", ("tool_id",)),
        commands=(
            CommandHint(
                ("tools", "rm"),
                "Remove a tool from the registry; its history stays.",
                positional=("toolId",),
                renderer="tools.show_removed",
            ),
        ),
    ),
    row(
        "tool_restore",
        "Restore tool",
        "Restore a removed tool as it was.",
        inputs.RemoveInput,
        services.gateway,
        Gateway.restore,
        says=say_registered,
        toolset="registry",
        sdk=SdkMethod("restore", ("tool_id",)),
        commands=(
            CommandHint(
                ("tools", "restore"),
                "Restore a removed tool as it was.",
                positional=("toolId",),
            ),
        ),
    ),
    row(
        "tool_purge",
        "Purge tool or execution",
        "Erase a tool with all its versions, or the record of one call, for good: from "
        "the log, every branch and every past moment. Without confirm it shows what "
        "would be erased.",
        inputs.ToolPurgeInput,
        services.retention,
        Retention.purge,
        says=_say_purged,
        toolset="admin",
        right="admin",
        destructive=True,
        person=PURGE_TOOL,
        irreversible=True,
        sdk=SdkMethod("purge", ("record_id",)),
        commands=(
            CommandHint(
                ("tools", "purge"),
                "Erase a tool, or the record of a call, for good. This cannot be undone.",
                positional=("recordId",),
                only=("recordId",),
                handler="debugging.purge",
            ),
        ),
    ),
    row(
        "tool_executions",
        "Executions",
        "Records of calls, newest first, filtered by tool, agent, status and time.",
        inputs.ExecutionsInput,
        services.gateway,
        Gateway.executions,
        says=_say_executions,
        toolset="registry",
        reads=True,
        sdk=SdkMethod("executions", part="executions"),
        commands=(
            CommandHint(
                ("tools", "history"),
                "Show records of calls, newest first.",
                positional=("toolId",),
                flags={"agentId": ("--agent",)},
                renderer="tools.show_history",
            ),
        ),
    ),
    row(
        "executions_erase",
        "Erase old executions",
        "Erase for good the arguments and results of calls older than some days; with "
        "`preview`, only count them.",
        inputs.RetentionInput,
        services.retention,
        Retention.erase,
        answer_fields=("erased", "more"),
        toolset="admin",
        right="admin",
        destructive=True,
        person=ERASE,
        irreversible=True,
        sdk=SdkMethod("erase_executions", ("days",)),
        commands=(
            CommandHint(
                ("tools", "retention"),
                "Erase for good the arguments and results of old calls.",
                renderer="tools.show_erased",
                handler="tools.erase_executions",
            ),
        ),
    ),
    row(
        "cache_configure",
        "Configure cache",
        "Change how results of cacheable tools are cached.",
        inputs.CacheInput,
        services.gateway,
        Gateway.configure_cache,
        answer_fields=("enabled",),
        toolset="registry",
        right="admin",
        sdk=SdkMethod("configure_cache"),
    ),
    row(
        "cache_clear",
        "Clear cache",
        "Clear cached results of one tool, or of all.",
        inputs.CacheClearInput,
        services.gateway,
        Gateway.clear_cache,
        toolset="registry",
        sdk=SdkMethod("clear_cache", ("tool_id",)),
    ),
    row(
        "breakers_list",
        "List breakers",
        "List the circuit breakers of tools whose service failed lately: which are paused, "
        "why, and for how long.",
        inputs.NothingInput,
        services.gateway,
        Gateway.list_breakers,
        answer_fields=("breakers",),
        toolset="registry",
        reads=True,
        says=_say_breakers,
        sdk=SdkMethod("breakers"),
        commands=(
            CommandHint(
                ("tools", "breakers"), "Show which tools are paused because they kept failing."
            ),
        ),
    ),
    row(
        "breaker_reset",
        "Reset breaker",
        "Let a tool be called again at once, because its service works again.",
        inputs.BreakerResetInput,
        services.gateway,
        Gateway.reset_breaker,
        answer_fields=("toolName", "reset"),
        toolset="registry",
        sdk=SdkMethod("reset_breaker", ("tool_name",)),
        says=_say_reset,
        commands=(
            CommandHint(
                ("tools", "reset-breaker"),
                "Let a tool be called again at once.",
                positional=("toolName",),
            ),
        ),
    ),
    row(
        "secret_grant",
        "Grant secret",
        "Let a tool, with the handler that it has now, send a secret to its own origin.",
        inputs.GrantInput,
        services.secrets,
        SecretService.grant,
        toolset="registry",
        right="admin",
        person=GRANT,
        sdk=SdkMethod("grant_secret", ("tool", "name", "origin")),
        commands=(
            CommandHint(
                ("tools", "grant"),
                "Let a tool send a secret to its own origin; changing its handler suspends "
                "the grant.",
                positional=("tool", "name", "origin"),
                renderer="tools.show_granted",
            ),
        ),
    ),
    row(
        "secret_withdraw",
        "Withdraw secret",
        "Revoke a tool's right to a secret.",
        inputs.WithdrawInput,
        services.secrets,
        SecretService.withdraw,
        toolset="registry",
        right="admin",
        sdk=SdkMethod("withdraw_secret", ("tool", "name")),
        commands=(
            CommandHint(
                ("tools", "withdraw"),
                "Revoke a tool's right to a secret.",
                positional=("tool", "name"),
            ),
        ),
    ),
    row(
        "secret_set",
        "Set secret",
        "Store a secret encrypted, or name the file on the server that holds it or the "
        "command that prints it. It is never shown again.",
        inputs.SecretInput,
        services.secrets,
        SecretService.set,
        says=_say_kept,
        toolset="admin",
        right="admin",
        person=SET_SECRET,
        irreversible=True,
        confidential=True,
        sdk=SdkMethod("set_secret", ("name", "value")),
        commands=(
            CommandHint(
                ("secrets", "set"),
                "Store a secret from the terminal or stdin, encrypted; or tell where to read it.",
                positional=("name",),
                only=("name", "file", "command"),
                handler="secrets.set_secret",
            ),
        ),
    ),
    row(
        "secret_remove",
        "Remove secret",
        "Delete a secret for good.",
        inputs.SecretNameInput,
        services.secrets,
        SecretService.remove,
        toolset="admin",
        right="admin",
        destructive=True,
        person=REMOVE_SECRET,
        irreversible=True,
        sdk=SdkMethod("remove_secret", ("name",)),
        commands=(
            CommandHint(
                ("secrets", "rm"),
                "Delete a secret for good.",
                positional=("name",),
            ),
        ),
    ),
    row(
        "secrets_list",
        "List secrets",
        "The secrets, and the tools they were granted to; never their values.",
        inputs.NothingInput,
        services.secrets,
        SecretService.list,
        answer_fields=("secrets", "grants"),
        toolset="registry",
        right="admin",
        reads=True,
        sdk=SdkMethod("secrets"),
        commands=(
            CommandHint(
                ("secrets", "list"),
                "Show the secrets, and the tools they were granted to.",
                renderer="secrets.show_secrets",
            ),
        ),
    ),
    row(
        "guardrail_define",
        "Define guardrail",
        "Define a check before or after calls: mask, block, ask a person, or let a Python function "
        "or a tool decide.",
        inputs.GuardrailInput,
        services.guardrails,
        GuardrailService.define,
        answer_fields=("name", "when", "check"),
        toolset="registry",
        right="admin",
        person=DEFINE_GUARDRAIL,
        sdk=SdkMethod("define_guardrail", ("name", "when", "check")),
        commands=(
            CommandHint(
                ("guardrails", "set"),
                "Define a check before or after calls.",
                positional=("name", "when", "check"),
            ),
        ),
    ),
    row(
        "guardrail_remove",
        "Remove guardrail",
        "Remove a check of calls.",
        inputs.GuardrailNameInput,
        services.guardrails,
        GuardrailService.remove,
        toolset="registry",
        right="admin",
        destructive=True,
        person=REMOVE_GUARDRAIL,
        sdk=SdkMethod("remove_guardrail", ("name",)),
        commands=(
            CommandHint(("guardrails", "rm"), "Remove a check of calls.", positional=("name",)),
        ),
    ),
    row(
        "guardrails_list",
        "List guardrails",
        "The checks before and after calls, in the order in which they run.",
        inputs.NothingInput,
        services.guardrails,
        GuardrailService.list,
        says=_say_guardrails,
        answer_fields=("guardrails",),
        toolset="registry",
        reads=True,
        sdk=SdkMethod("guardrails"),
        commands=(
            CommandHint(
                ("guardrails", "list"), "Show the checks before and after calls, in order."
            ),
        ),
    ),
    row(
        "toolset_define",
        "Define toolset",
        "Define a named set of tools, to which tokens can be limited and which /mcp/NAME "
        "serves: allowed and denied tools, calls that need approval, read-only, a budget.",
        inputs.ToolSetInput,
        services.tool_sets,
        ToolSetService.define,
        answer_fields=("name", "allow"),
        toolset="registry",
        right="admin",
        person=DEFINE_SET,
        sdk=SdkMethod("define_toolset", ("name", "allow")),
        commands=(
            CommandHint(
                ("tools", "set"),
                "Define a named set of tools, for tokens (--tools NAME) and at /mcp/NAME.",
                positional=("name", "allow"),
            ),
        ),
    ),
    row(
        "toolset_remove",
        "Remove toolset",
        "Remove a named set of tools; tokens that name no other may call nothing.",
        inputs.ToolSetNameInput,
        services.tool_sets,
        ToolSetService.remove,
        toolset="registry",
        right="admin",
        destructive=True,
        sdk=SdkMethod("remove_toolset", ("name",)),
    ),
    row(
        "toolsets_list",
        "List toolsets",
        "The named sets of tools; a token that is limited to some sees only those.",
        inputs.NothingInput,
        services.tool_sets,
        ToolSetService.list,
        says=_say_sets,
        answer_fields=("toolsets",),
        toolset="registry",
        reads=True,
        sdk=SdkMethod("toolsets"),
        commands=(CommandHint(("tools", "sets"), "Show the named sets of tools."),),
    ),
    row(
        "connection_set",
        "Set connection",
        "Set a named connection for the standard tools: a search provider, a database, "
        "a webhook, a mail account, an API or a folder. Write secrets in its settings "
        "as ${NAME}.",
        inputs.ConnectionInput,
        services.connections,
        ConnectionService.set,
        answer_fields=("name", "kind"),
        toolset="registry",
        right="admin",
        person=CONNECT,
        sdk=SdkMethod("set_connection", ("name", "kind", "settings")),
        commands=(
            CommandHint(
                ("tools", "connect"),
                "Set a named connection: a search provider, database, webhook, mail account, API "
                "or folder.",
                positional=("name", "kind", "settings"),
            ),
        ),
    ),
    row(
        "connection_remove",
        "Remove connection",
        "Remove a named connection; tools that have no other become unavailable.",
        inputs.ConnectionNameInput,
        services.connections,
        ConnectionService.remove,
        toolset="registry",
        right="admin",
        destructive=True,
        sdk=SdkMethod("remove_connection", ("name",)),
        commands=(
            CommandHint(
                ("tools", "disconnect"), "Remove a named connection.", positional=("name",)
            ),
        ),
    ),
    row(
        "connections_list",
        "List connections",
        "The named connections of the standard tools; never the values of secrets.",
        inputs.NothingInput,
        services.connections,
        ConnectionService.list,
        answer_fields=("connections",),
        toolset="registry",
        right="admin",
        reads=True,
        sdk=SdkMethod("connections"),
        commands=(CommandHint(("tools", "connections"), "Show the named connections."),),
    ),
    row(
        "approvals_list",
        "List approvals",
        "Calls that a person has to approve, with their arguments; for administrators "
        "also tools that their server has changed, with the old and the new definition.",
        inputs.NothingInput,
        services.approvals,
        ApprovalService.list,
        says=_say_approvals,
        answer_fields=("approvals",),
        toolset="registry",
        reads=True,
        sdk=SdkMethod("approvals"),
        commands=(
            CommandHint(
                ("tools", "approvals"),
                "Show what is waiting for approval.",
                renderer="approvals.show_approvals",
            ),
        ),
    ),
    row(
        "approval_decide",
        "Approve or reject",
        "Approve or reject one item of approvals_list.",
        inputs.ApprovalInput,
        services.approvals,
        ApprovalService.decide,
        toolset="registry",
        right="admin",
        person=DECIDE,
        sdk=SdkMethod("decide", ("id", "decision")),
        commands=(
            CommandHint(
                ("tools", "approve"),
                "Approve one item that is waiting.",
                positional=("id",),
                only=("id", "reason"),
                fixed={"decision": "approve"},
            ),
            CommandHint(
                ("tools", "reject"),
                "Reject one item that is waiting.",
                positional=("id",),
                only=("id", "reason"),
                fixed={"decision": "reject"},
            ),
        ),
    ),
    row(
        "resources_list",
        "List resources",
        "Prompts, templates and data, filtered by type, tags and words.",
        inputs.ListResourcesInput,
        services.resources,
        ResourceService.list,
        says=_say_resources,
        toolset="registry",
        reads=True,
        sdk=SdkMethod("resources", part="resources"),
    ),
    row(
        "resource_get",
        "Get resource",
        "One resource; with `variables`, also rendered with them.",
        inputs.ResourceInput,
        services.resources,
        ResourceService.get,
        says=_say_resource,
        toolset="registry",
        reads=True,
        sdk=SdkMethod("resource", ("resource_id", "variables")),
    ),
    row(
        "resource_versions",
        "Resource versions",
        "The versions of a resource, newest first.",
        inputs.ResourceInput,
        services.resources,
        ResourceService.versions,
        toolset="registry",
        reads=True,
        sdk=SdkMethod("resource_versions", ("resource_id",)),
    ),
    row(
        "resource_create",
        "Create resource",
        "Add a prompt, a template or data; `{{name}}` marks a variable.",
        inputs.ResourceCreateInput,
        services.resources,
        ResourceService.create,
        says=_say_resource,
        toolset="registry",
        sdk=SdkMethod("create_resource", part="resource"),
        example={"type": "prompt", "name": "greeting", "content": "Say hello in one sentence."},
    ),
    row(
        "resource_update",
        "Update resource",
        "Change a resource; earlier versions stay in its history.",
        inputs.ResourceUpdateInput,
        services.resources,
        ResourceService.update,
        says=_say_resource,
        toolset="registry",
        sdk=SdkMethod("update_resource", ("resource_id",)),
    ),
    row(
        "resource_remove",
        "Remove resource",
        "Remove a resource from a branch; its history stays.",
        inputs.ResourceRemoveInput,
        services.resources,
        ResourceService.remove,
        says=_say_resource,
        toolset="registry",
        destructive=True,
        sdk=SdkMethod("remove_resource", ("resource_id",)),
    ),
    row(
        "server_add",
        "Add MCP server",
        "Add an upstream MCP server, by command or address, and register its tools.",
        inputs.ServerInput,
        services.sources,
        Sources.add_server,
        answer_fields=("server", "registered"),
        toolset="registry",
        right="admin",
        person=ADD_SERVER,
        sdk=SdkMethod("add_server", ("name",)),
        commands=(CommandHint(("server-add",), positional=("name",), renderer="tools.show_added"),),
    ),
    row(
        "server_refresh",
        "Refresh MCP server",
        "List an upstream server's tools again; with `approve`, accept changed ones.",
        inputs.RefreshServerInput,
        services.sources,
        Sources.refresh_server,
        answer_fields=("server", "registered"),
        toolset="registry",
        right="admin",
        person=APPROVE_SERVER,
        sdk=SdkMethod("refresh_server", ("name",)),
        commands=(
            CommandHint(
                ("tools", "refresh"),
                "List a server's tools again: changed ones are quarantined, or approved.",
                positional=("name",),
                renderer="tools.show_added",
            ),
        ),
    ),
    row(
        "server_remove",
        "Remove MCP server",
        "Remove an upstream server, or an OpenAPI document by its prefix, and its tools.",
        inputs.ServerNameInput,
        services.sources,
        Sources.remove_server,
        toolset="registry",
        right="admin",
        destructive=True,
        sdk=SdkMethod("remove_server", ("name",)),
        commands=(
            CommandHint(
                ("tools", "remove-server"),
                "Remove an upstream server or an OpenAPI document, and its tools.",
                positional=("name",),
                renderer="tools.show_removed_server",
            ),
        ),
    ),
    row(
        "server_sign_in",
        "Sign in to MCP server",
        "Begin a user's sign-in to an upstream server (OAuth); the user continues in "
        "a browser, at the address in the answer.",
        inputs.SignInInput,
        services.credentials,
        CredentialService.sign_in,
        answer_fields=("address", "expiresAt"),
        toolset="registry",
        right="execute",
        sdk=SdkMethod("sign_in", ("name",)),
        commands=(
            CommandHint(
                ("tools", "sign-in"),
                "Sign in to an upstream server in a browser; the tokens are stored for one user.",
                positional=("name",),
                only=("name", "user"),
                handler="credentials.sign_in",
            ),
        ),
    ),
    row(
        "sign_in_finish",
        "Finish sign-in",
        "Finish a sign-in whose browser returned to a program of the user.",
        inputs.FinishSignInInput,
        services.credentials,
        CredentialService.finish,
        toolset="registry",
        right="execute",
        confidential=True,
        sdk=SdkMethod("finish_sign_in", ("state", "code")),
    ),
    row(
        "credential_set",
        "Set user's credential",
        "Store a user's credential for an upstream server, encrypted: its definition "
        "refers to it as ${user.NAME}. It is never shown again.",
        inputs.CredentialInput,
        services.credentials,
        CredentialService.give,
        toolset="registry",
        right="execute",
        confidential=True,
        sdk=SdkMethod("set_credential", ("server", "name", "value")),
        commands=(
            CommandHint(
                ("tools", "credential"),
                "Store a user's credential for an upstream server, from the terminal or stdin.",
                positional=("server", "name"),
                only=("server", "name", "user"),
                handler="credentials.set_credential",
            ),
        ),
    ),
    row(
        "credential_remove",
        "Sign out of MCP server",
        "Delete a user's credentials for an upstream server.",
        inputs.SignOutInput,
        services.credentials,
        CredentialService.sign_out,
        toolset="registry",
        right="execute",
        destructive=True,
        sdk=SdkMethod("sign_out", ("server",)),
        commands=(
            CommandHint(
                ("tools", "sign-out"),
                "Delete a user's credentials for an upstream server.",
                positional=("server",),
            ),
        ),
    ),
    row(
        "credentials_list",
        "List users' credentials",
        "For which upstream servers the caller has credentials; administrators see all "
        "users. Never the credentials.",
        inputs.NothingInput,
        services.credentials,
        CredentialService.list,
        answer_fields=("credentials",),
        toolset="registry",
        reads=True,
        sdk=SdkMethod("credentials"),
        commands=(
            CommandHint(
                ("tools", "credentials"),
                "Show who has credentials for which upstream server.",
            ),
        ),
    ),
    row(
        "servers_list",
        "List MCP servers",
        "The upstream MCP servers, each with its tools.",
        inputs.NothingInput,
        services.sources,
        Sources.servers,
        toolset="registry",
        reads=True,
        sdk=SdkMethod("servers"),
        commands=(
            CommandHint(
                ("tools", "servers"),
                "Show the upstream MCP servers.",
                renderer="tools.show_servers",
            ),
        ),
    ),
    row(
        "upstream_list",
        "List prompts and resources of MCP servers",
        "Prompts, resources and resource templates of the upstream MCP servers.",
        inputs.UpstreamListInput,
        services.primitives,
        PrimitiveService.list_all,
        answer_fields=("prompts", "resources", "templates", "servers"),
        toolset="registry",
        right="execute",
        calls_tools=True,
        sdk=SdkMethod("upstream"),
        commands=(CommandHint(("tools", "upstream")),),
    ),
    row(
        "upstream_prompt",
        "Get prompt of MCP server",
        "The messages of an upstream server's prompt.",
        inputs.UpstreamPromptInput,
        services.primitives,
        PrimitiveService.prompt,
        toolset="registry",
        right="execute",
        calls_tools=True,
        sdk=SdkMethod("upstream_prompt", ("name",)),
        commands=(CommandHint(("tools", "upstream-prompt"), positional=("name",)),),
    ),
    row(
        "upstream_resource",
        "Read resource of MCP server",
        "The contents of an upstream server's resource.",
        inputs.UpstreamResourceInput,
        services.primitives,
        PrimitiveService.resource,
        toolset="registry",
        right="execute",
        calls_tools=True,
        sdk=SdkMethod("upstream_resource", ("uri",)),
        commands=(CommandHint(("tools", "upstream-read"), positional=("uri",)),),
    ),
    row(
        "upstream_complete",
        "Complete argument",
        "Completions for an argument of an upstream prompt or resource template.",
        inputs.UpstreamCompleteInput,
        services.primitives,
        PrimitiveService.complete,
        toolset="registry",
        right="execute",
        calls_tools=True,
        sdk=SdkMethod("upstream_complete"),
        commands=(CommandHint(("tools", "upstream-complete")),),
    ),
    row(
        "openapi_add",
        "Add OpenAPI document",
        "Register each operation of an OpenAPI document as a tool.",
        inputs.OpenApiInput,
        services.sources,
        Sources.add_openapi,
        answer_fields=("registered", "warnings"),
        toolset="registry",
        sdk=SdkMethod("add_openapi", ("url",)),
        commands=(CommandHint(("openapi-add",), positional=("url",), renderer="tools.show_added"),),
    ),
    row(
        "provider_configure",
        "Configure provider",
        "Settings of a model provider: enabled tools, model, a reference to its key.",
        inputs.ProviderConfigureInput,
        services.providers,
        ProviderService.configure,
        toolset="registry",
        sdk=SdkMethod("configure_provider", ("provider", "config")),
    ),
    row(
        "providers_list",
        "List providers",
        "The supported model providers, and how each is configured.",
        inputs.ProvidersInput,
        services.providers,
        ProviderService.providers,
        toolset="registry",
        reads=True,
        sdk=SdkMethod("providers"),
    ),
    row(
        "provider_tools",
        "Tools for a provider",
        "The registered and standard tools in the format of a model provider; Stratagem's "
        "own operations only if tools or enabledTools name them.",
        inputs.ProviderToolsInput,
        services.providers,
        ProviderService.tools,
        toolset="registry",
        reads=True,
        sdk=SdkMethod("provider_tools", ("provider",)),
    ),
    row(
        "provider_call",
        "Answer a provider",
        "Run the tool calls in a model provider's answer; the results are in its format.",
        inputs.ProviderCallInput,
        services.providers,
        ProviderService.answer,
        answer_fields=("results", "failed"),
        toolset="registry",
        right="execute",
        calls_tools=True,
        sdk=SdkMethod("call_provider", ("provider", "payload")),
    ),
)
