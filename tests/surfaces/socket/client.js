// The official client, driven by lines of JSON on stdin; what it hears goes to stdout.
"use strict";
const { io } = require(process.argv[2]);
const [url, transport, origin] = process.argv.slice(3);
const say = message => process.stdout.write(JSON.stringify(message) + "\n");
const socket = io(url, {
  // "both" is what the client does by itself: it polls first, and goes on by websocket.
  transports: transport === "both" ? ["polling", "websocket"] : [transport],
  upgrade: transport === "both",
  reconnection: false,
  extraHeaders: origin ? { origin } : {},
});

// Tools and providers that this client hosts.
const hosted = {
  shout: args => ({ said: String(args.text).toUpperCase() }),
  fail: () => { throw new Error("it broke"); },
  hang: () => new Promise(() => {}),
  late: args => new Promise(done => setTimeout(() => done({ after: args.ms }), args.ms)),
};
const answer = async (name, args, acknowledge) => {
  try {
    acknowledge({ result: await hosted[name](args) });
  } catch (error) {
    acknowledge({ error: error.message });
  }
};
socket.on("mcp:tool:call", (call, acknowledge) => {
  if (call.toolName === "late") {
    socket.emit("mcp:tool:progress", { executionId: call.executionId, percentage: 40, message: "on it" });
  }
  answer(call.toolName, call.arguments, acknowledge);
});
socket.on("mcp:provider:initialize", (asked, acknowledge) =>
  acknowledge(asked.config.broken ? { error: asked.config.broken } : { ready: asked.config }));
socket.on("mcp:provider:list", (asked, acknowledge) => acknowledge([
  { name: asked.name + "_shout", description: "Say it louder.", inputSchema: { type: "object" } },
]));
socket.on("mcp:provider:execute", (call, acknowledge) =>
  answer(call.toolName.split("_").pop(), call.arguments, acknowledge));

socket.onAny((event, ...args) => say({ event, data: typeof args[0] === "function" ? null : args[0] }));
socket.on("connect", () => say({ connected: socket.id, transport: socket.io.engine.transport.name }));
socket.io.engine.on("upgrade", to => say({ upgraded: to.name }));
socket.on("connect_error", error => say({ refused: error.message }));
socket.on("disconnect", reason => say({ gone: reason }));
require("readline").createInterface({ input: process.stdin }).on("line", line => {
  const { emit, data, id, raw } = JSON.parse(line);
  if (raw !== undefined) return socket.io.engine.write(raw);
  socket.emit(emit, data, given => say({ ack: id, data: given }));
}).on("close", () => { socket.close(); process.exit(0); });
