// Attacks on Node: what each one got through, or null.
"use strict";
{
  const fs = require("fs");
  const net = require("net");
  const dgram = require("dgram");
  const { spawnSync } = require("child_process");
  const { Worker } = require("worker_threads");

  const connect = (options) => new Promise((resolve, reject) => {
    const client = net.connect(options, () => { client.destroy(); resolve("connected"); });
    client.on("error", reject);
    client.setTimeout(1000, () => { client.destroy(); reject(new Error("no answer")); });
  });
  const stopped = () => { throw new Error("stopped"); };

  const attacks = {
    tcp: () => connect({ host: inputs.host, port: inputs.tcp }),
    udp: () => new Promise((resolve, reject) => {
      const sender = dgram.createSocket("udp4");
      const end = (how, what) => { try { sender.close(); } catch {} how(what); };
      sender.on("error", (error) => end(reject, error));
      sender.send("x", inputs.udp, inputs.host, (error) => error ? end(reject, error)
        : end(resolve, "sent"));
    }),
    unix_socket: () => connect({ path: inputs.unix }),
    abstract_socket: () => connect({ path: "\0" + inputs.abstract }),
    read_secret: () => fs.readFileSync(inputs.secret, "utf8"),
    read_by_link: () => {
      for (const make of [fs.symlinkSync, fs.linkSync]) {
        try {
          const path = `link-${make.name}`;
          make(inputs.secret, path);
          return fs.readFileSync(path, "utf8");
        } catch {}
      }
      return stopped();
    },
    large_file: () => {
      let written = 0;
      const file = fs.openSync("large", "w");
      try {
        while (written < 300 << 20) written += fs.writeSync(file, Buffer.alloc(4 << 20));
      } catch {}
      return written > inputs.file_bytes_max ? `${written} bytes written` : stopped();
    },
    large_allocation: () => `${Buffer.alloc(400 << 20, 1).length} bytes`,
    shared_allocation: () => `${new Uint8Array(new SharedArrayBuffer(400 << 20)).fill(1).length}`,
    web_assembly: () => {
      const memory = new WebAssembly.Memory({ initial: 6400 });
      return `${new Uint8Array(memory.buffer).fill(1).length}`;
    },
    environment: () => Object.keys(process.env)
      .filter((name) => !inputs.environment.includes(name)).join(", ") || stopped(),
    snoop: () => {
      for (const name of ["environ", "cmdline", "maps"]) {
        try { fs.readFileSync(`/proc/${inputs.victim}/${name}`); return name; } catch {}
      }
      return stopped();
    },
    run_program: () => spawnSync("/bin/true").error ? stopped() : "started",
    signal_others: () => { process.kill(inputs.victim, "SIGKILL"); return "sent"; },
    become_root: () => { process.setuid(0); return "root"; },
    native_code: () => { process.dlopen({ exports: {} }, "/lib64/libc.so.6"); return "loaded"; },
    set_user_id: () => {
      fs.writeFileSync("set", "", { mode: 0o644 });
      fs.chmodSync("set", 0o4755);
      return fs.statSync("set").mode & 0o6000 ? "made" : stopped();
    },
  };

  for (const attempt of [
    () => fs.chmodSync(inputs.secret, 0o777),
    () => fs.utimesSync(inputs.secret, 0, 0),
    () => fs.truncateSync(inputs.secret, 0),
    () => fs.unlinkSync(inputs.secret),
    () => fs.writeFileSync(inputs.secret, "changed"),
    () => fs.writeFileSync(`${inputs.outside}/new`, "written"),
    () => fs.mkdirSync(`${inputs.outside}/folder`),
  ]) {
    try { attempt(); } catch {}
  }

  (async () => {
    const found = {};
    for (const [name, attack] of Object.entries(attacks)) {
      if (inputs.left_out.includes(name)) continue;
      try { found[name] = await attack(); } catch { found[name] = null; }
    }
    return found;
  })();
}
