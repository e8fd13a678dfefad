// Stratagem for opencode: memory without being told. Written by `stratagem init`.
//
// Each event is handed to `stratagem hook opencode` as one JSON object on its standard input; what
// it answers goes to the model. The command ends by itself within its budget; should it not, it is
// ended here, and nothing that goes wrong with it reaches the conversation.
import { spawn } from "node:child_process"

const PROGRAM = ["stratagem"]
const SECONDS_MAX = 10
const ANSWER_CHARS_MAX = 20_000

const hook = (event) =>
  new Promise((resolve) => {
    let answer = ""
    const finish = () => resolve(contextOf(answer))
    try {
      const child = spawn(PROGRAM[0], [...PROGRAM.slice(1), "hook", "opencode"], {
        cwd: event.cwd,
        stdio: ["pipe", "pipe", "ignore"],
        timeout: SECONDS_MAX * 1000,
        killSignal: "SIGKILL",
        windowsHide: true,
      })
      child.on("error", () => resolve(""))
      child.on("close", finish)
      child.stdout.on("data", (data) => {
        if (answer.length < ANSWER_CHARS_MAX) answer += data
      })
      child.stdin.on("error", () => {})
      child.stdin.end(JSON.stringify(event))
    } catch {
      resolve("")
    }
  })

const contextOf = (answer) => {
  try {
    const found = JSON.parse(answer)?.hookSpecificOutput?.additionalContext
    return typeof found === "string" ? found : ""
  } catch {
    return ""
  }
}

const textOf = (parts) =>
  parts
    .filter((part) => part.type === "text" && !part.synthetic)
    .map((part) => part.text)
    .join("\n")

export const StratagemPlugin = async ({ client, directory }) => {
  const begun = new Set()
  let parts = 0

  const event = (name, session, more = {}) =>
    hook({ hook_event_name: name, session_id: session, cwd: directory, ...more })

  const start = async (session, source) => {
    begun.add(session)
    return event("SessionStart", session, { source })
  }

  const lastReply = async (session) => {
    try {
      const listed = await client.session.messages({ path: { id: session } })
      const replies = (listed.data ?? []).filter((each) => each.info.role === "assistant")
      return replies.length ? textOf(replies.at(-1).parts) : ""
    } catch {
      return ""
    }
  }

  return {
    "chat.message": async (input, output) => {
      const session = input.sessionID
      const first = begun.has(session) ? "" : await start(session, "startup")
      const prompt = textOf(output.parts)
      const found = prompt ? await event("UserPromptSubmit", session, { prompt }) : ""
      const text = [first, found].filter(Boolean).join("\n\n")
      if (!text) return
      parts += 1
      output.parts.push({
        id: `prt_stratagem${Date.now()}${parts}`,
        sessionID: session,
        messageID: output.message.id,
        type: "text",
        text,
        synthetic: true,
      })
    },
    "tool.execute.after": async (input, output) => {
      const exit = output.metadata?.exit
      const failed = typeof exit === "number" && exit !== 0
      const about = { tool_name: input.tool, tool_use_id: input.callID, tool_input: input.args ?? {} }
      const text = failed
        ? await event("PostToolUseFailure", input.sessionID, {
            ...about,
            error: `Exit code ${exit}\n${output.output}`,
          })
        : await event("PostToolUse", input.sessionID, { ...about, tool_response: output.output })
      if (text) output.output = `${output.output}\n\n${text}`
    },
    "experimental.session.compacting": async (input, output) => {
      const text = await event("PreCompact", input.sessionID, { trigger: "auto" })
      if (text) output.context.push(text)
    },
    event: async ({ event: happened }) => {
      const about = happened.properties ?? {}
      const session = about.sessionID ?? about.info?.id
      if (!session || !begun.has(session)) return
      if (happened.type === "session.idle") {
        await event("Stop", session, { last_assistant_message: await lastReply(session) })
      } else if (happened.type === "session.compacted") {
        // The next prompt of the session begins with the facts again.
        await event("PostCompact", session)
        begun.delete(session)
      } else if (happened.type === "session.deleted") {
        await event("SessionEnd", session, { reason: "other" })
        begun.delete(session)
      }
    },
  }
}
