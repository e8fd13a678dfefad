// Run JavaScript code in this very process, and give its result.
//
// The result is the variable `result` where the code sets one at its top level, else the value
// of the code, which is that of its last expression. A promise is awaited. What JSON does not
// have is given as its text. The work arrives on the socket whose number is the argument.
"use strict";
const fs = require("fs");
const vm = require("vm");
const socket = Number(process.argv[2]);

function exactly(size) {
  const bytes = Buffer.alloc(size);
  let have = 0;
  while (have < size) {
    const count = fs.readSync(socket, bytes, have, size - have, null);
    if (count === 0) throw new Error("the work ended early");
    have += count;
  }
  return bytes;
}

function asJson(value) {
  return JSON.stringify(value, (_, item) => (typeof item === "bigint" ? String(item) : item));
}

// Code that waits at its top is the body of an asynchronous function; no other code is.
function waiting(code) {
  const parses = (text) => {
    try { new vm.Script(text); return true; } catch { return false; }
  };
  const last = "typeof result === 'undefined' ? undefined : result";
  const body = `(async () => {${code}\n;return ${last};})()`;
  return parses(code) || !parses(body) ? code : body;
}

const work = JSON.parse(exactly(exactly(4).readUInt32BE(0)).toString("utf8"));
let value;

process.on("exit", (status) => {
  const report = { exit: status };
  try {
    const named = vm.runInThisContext("typeof result === 'undefined' ? undefined : result");
    const text = asJson(named === undefined ? value : named);
    report.result = text === undefined ? null : JSON.parse(text);
  } catch (error) {
    report.exit = process.exitCode = status || 1;
    process.stderr.write(`the result cannot be given as JSON: ${error.message}\n`);
  }
  let bytes = Buffer.from(JSON.stringify(report) + "\n");
  while (bytes.length) bytes = bytes.subarray(fs.writeSync(socket, bytes));
});

// Left to itself Node keeps what a full pipe does not take, and code that never rests fills the
// memory with it instead of waiting.
for (const stream of [process.stdout, process.stderr]) {
  if (stream._handle && stream._handle.setBlocking) stream._handle.setBlocking(true);
}
globalThis.require = require;
globalThis.inputs = work.inputs;
process.argv.splice(1, process.argv.length, "<code>");
const given = vm.runInThisContext(waiting(work.code), { filename: "<code>" });
Promise.resolve(given).then((settled) => { value = settled; });
