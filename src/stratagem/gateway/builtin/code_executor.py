"""Running code that an agent wrote, in the sandbox.

Code that fails is an answer, with its output, for whoever wrote it to read; only what keeps the
sandbox from running it is an error.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

from pydantic import Field

from stratagem import limits
from stratagem.errors import ServiceUnavailable
from stratagem.gateway.definitions.argument_models import Given, plain_schema, read
from stratagem.gateway.definitions.contract import Run
from stratagem.gateway.handlers.code import limit_to_call, output_reporter
from stratagem.gateway.sandbox.sandbox import Sandbox

__all__ = ["TOOL", "run"]


class _Input(Given):
    language: Literal["python", "javascript"] = Field(description="Language of the code")
    code: str = Field(
        min_length=1,
        max_length=limits.SANDBOX_CODE_BYTES_MAX,
        description="Reads its inputs from the variable `inputs`; returns its variable `result`, "
        "or the value of its last expression",
    )
    inputs: Any = Field(None, description="Any JSON, for the code to use")


TOOL: Final[dict[str, Any]] = {
    "name": "code_executor",
    "description": "Run Python or JavaScript in a sandbox, without network or files.",
    "longDescription": (
        "The code has its inputs in the variable `inputs`; it returns its variable `result`, "
        "or otherwise the value of its last expression. Code that fails is answered "
        "with its output: `success` tells whether it ended well, `killed` which limit "
        "ended it."
    ),
    "category": "utility",
    "tags": ["code", "python", "javascript", "sandbox"],
    "inputSchema": plain_schema(_Input),
    "outputSchema": {
        "type": "object",
        "properties": {
            "success": {"type": "boolean"},
            "result": {"description": "The result of the code"},
            "stdout": {"type": "string"},
            "stderr": {"type": "string"},
            "exitCode": {"type": "integer"},
            "killed": {"type": ["string", "null"], "description": "time, memory, signal or output"},
        },
        "required": ["success", "result", "stdout", "stderr", "exitCode", "killed"],
    },
    "examples": [
        {
            "input": {
                "language": "python",
                "code": "print(len(inputs))\nresult = sum(inputs)",
                "inputs": [1, 2, 3],
            },
            "output": {
                "success": True,
                "result": 6,
                "stdout": "3\n",
                "stderr": "",
                "exitCode": 0,
                "killed": None,
            },
        },
        {
            "input": {"language": "javascript", "code": "inputs.a * 2", "inputs": {"a": 21}},
            "output": {
                "success": True,
                "result": 42,
                "stdout": "",
                "stderr": "",
                "exitCode": 0,
                "killed": None,
            },
        },
    ],
    # How long it takes is the code's own doing, and says nothing about the sandbox.
    "target": "code",
    # Code may draw random numbers.
    "cacheable": False,
    "idempotent": False,
    # Each of its texts is bounded by itself, and in JSON a character may take six.
    "configuration": {"maxOutput": limits.OUTPUT_BYTES_MAX},
    "requirements": {"resources": ["sandbox"]},
}


async def run(arguments: Mapping[str, Any], run: Run, sandbox: Sandbox | None) -> dict[str, Any]:
    """Run code and tell how it ended.

    Raises:
        ServiceUnavailable: There is no sandbox that holds on this machine.
    """
    given = read(_Input, arguments)
    if sandbox is None:
        raise ServiceUnavailable("There is no sandbox to run code in.", part="sandbox")
    ended = await sandbox.run_code(
        given.language,
        given.code,
        permissions=limit_to_call(run.permissions, run),
        inputs=given.inputs,
        on_output=output_reporter(run),
    )
    return {
        "success": ended.succeeded,
        "result": ended.result,
        "stdout": ended.stdout,
        "stderr": ended.stderr,
        "exitCode": ended.exit_code,
        "killed": ended.killed,
    }
