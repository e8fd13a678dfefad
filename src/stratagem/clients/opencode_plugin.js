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
    let timer
    const finish = (context) => {
      clearTimeout(timer)
      resolve(context)
    }
    try {
      const child = spawn(PROGRAM[0], [...PROGRAM.slice(1), "hook", "opencode"], {
        cwd: event.cwd,
        stdio: ["pipe", "pipe", "ignore"],
        windowsHide: true,
      })
      // Not the option of `spawn`: its timer goes on where the program does not start.
      timer = setTimeout(() => child.kill("SIGKILL"), SECONDS_MAX * 1000)
      child.on("error", () => finish(""))
      child.on("close", () => finish(contextOf(answer)))
      child.stdout.on("data", (data) => {
        if (answer.length < ANSWER_CHARS_MAX) answer += data
      })
      child.stdin.on("error", () => {})
      child.stdin.end(JSON.stringify(event))
    } catch {
      finish("")
    }
  })

const contextOf = (answer) => {
  try {
    const found = JSON.parse(answer)?.context
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
  // What is to be said with the next message of a session.
  const pending = new Map()
  let parts = 0

  const send = (name, session, more = {}) =>
    hook({ hook_event_name: name, session_id: session, cwd: directory, ...more })

  const begin = async (session) => {
    if (begun.has(session)) return ""
    begun.add(session)
    return send("session.created", session, { source: "startup" })
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
      const first = (await begin(session)) || (pending.get(session) ?? "")
      pending.delete(session)
      const prompt = textOf(output.parts)
      const found = prompt ? await send("chat.message", session, { prompt }) : ""
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
      const text = await send("tool.execute.after", input.sessionID, {
        tool_name: input.tool,
        tool_input: input.args ?? {},
        tool_response: { output: output.output, metadata: { exit: output.metadata?.exit } },
      })
      if (text) output.output = `${output.output}\n\n${text}`
    },
    "experimental.session.compacting": async (input) => {
      await send("experimental.session.compacting", input.sessionID)
    },
    event: async ({ event }) => {
      const about = event.properties ?? {}
      const session = about.sessionID ?? about.info?.id
      if (!session || !begun.has(session)) return
      if (event.type === "session.idle") {
        await send(event.type, session, { last_assistant_message: await lastReply(session) })
      } else if (event.type === "session.compacted") {
        pending.set(session, await send(event.type, session))
      } else if (event.type === "session.deleted") {
        await send(event.type, session)
        begun.delete(session)
      }
    },
  }
}
