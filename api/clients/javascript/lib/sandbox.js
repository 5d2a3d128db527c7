// SPDX-License-Identifier: Apache-2.0
// Sandbox: files that stay between calls, each of which has a fresh box. Kernel: variables stay too.
"use strict";

const fs = require("node:fs");
const { pipeline } = require("node:stream/promises");

const { call } = require("./calls.js");
const checks = require("./checks.js");
const { SandboxError } = require("./errors.js");
const { inDependencies } = require("./results.js");
const { Server, pathOf, read } = require("./server.js");

const PAGE = 10_000;
// A session whose program died goes by itself, after a day without a call.
const IDLE_TIMEOUT_S = 86_400;

// null is the default, too, but for memoryMb, pids and cpus: there it leaves the cap to the server.
const DEFAULTS = {
  image: null,
  setup: null,
  workspace: null,
  cpus: null,
  timeoutS: 30,
  network: false,
  egressAllow: null,
  mounts: null,
  profiles: null,
  env: null,
  maxOutputBytes: 64 * 1024 * 1024,
  enforceLimits: true,
  requireLimits: false,
  securityProfile: null,
  apparmor: null,
  capDrop: ["ALL"],
  depsReadonly: false,
  trackFiles: true,
  onStdout: null,
  onStderr: null,
};

class Sandbox {
  #server;
  #id = null;
  #pending = new Set();

  constructor(options = {}) {
    for (const [name, value] of Object.entries(DEFAULTS)) {
      this[name] = options[name] ?? value;
    }
    this.memoryMb = options.memoryMb === undefined ? 512 : options.memoryMb;
    this.pids = options.pids === undefined ? 256 : options.pids;
    this.#server = options.server ?? null;
    this.#check();
  }

  // ---- life ----

  // Makes the session and runs `setup`. Once it is open this does nothing.
  async open() {
    if (this.#id === null) {
      this.#server ??= new Server();
      const body = { ...optionsOf(this), depsReadonly: this.depsReadonly, idleTimeoutS: IDLE_TIMEOUT_S };
      this.#id = (await this.#server.json("POST", "/v1/sessions", body)).id;
      try {
        await this.#setUp();
      } catch (failure) {
        await this.close();
        throw failure;
      }
    }
    return this;
  }

  // Ends what runs and removes the files, unless they are in a `workspace` of the host.
  async close() {
    await Promise.allSettled(this.#pending);
    const id = this.#id;
    this.#id = null;
    if (id !== null) {
      await forget(this.#server, pathOf("sessions", id));
    }
  }

  // ---- running ----

  // Runs code in a fresh box on the workspace. An option given here is for this call alone.
  async runCode(code, { language = "python", ...options } = {}) {
    const target = this.#target("runCode");
    return this.#call(target, { code, language: checks.language(language) }, options);
  }

  // Runs a program: a list, never a line for a shell.
  async run(command, options = {}) {
    const target = this.#target("run");
    return this.#call(target, { command: checks.command(command) }, options);
  }

  // A python interpreter that keeps its variables. A cell that takes longer than timeoutS ends the
  // kernel, or with onTimeout "interrupt" only itself.
  async kernel({ timeoutS, onTimeout = "kill" } = {}) {
    const target = this.#target("kernels");
    const limit = checks.seconds(timeoutS ?? this.timeoutS);
    const made = await this.#server.json("POST", target, { timeoutS: limit });
    return new Kernel(this.#server, this.#target("kernels", made.id), onTimeout);
  }

  // ---- files ----

  // Makes or replaces a file of the workspace, in one step.
  async writeFile(path, data) {
    const target = this.#target("files", checks.path(path));
    const headers = { "Content-Type": "application/octet-stream" };
    await this.#server.bytes("PUT", target, Buffer.from(data), headers);
  }

  // The bytes of a file; SandboxError when it is larger than maxBytes.
  async readFile(path, { maxBytes = null } = {}) {
    const target = this.#target("files", checks.path(path));
    const answer = await this.#server.exchange("GET", target);
    if (maxBytes !== null && Number(answer.headers["content-length"]) > maxBytes) {
      answer.destroy();
      throw new SandboxError(`${path} is larger than ${maxBytes} bytes`, { code: "too_large" });
    }
    return read(answer);
  }

  // All regular files of the workspace or of a directory of it, without what setup installed.
  async listFiles(subdir = "") {
    const target = this.#target("files");
    const query = new URLSearchParams({ recursive: "true", limit: PAGE });
    if (subdir !== "") {
      query.set("path", checks.path(subdir));
    }
    const found = [];
    for (;;) {
      const page = await this.#server.json("GET", `${target}?${query}`);
      found.push(...page.items.filter((file) => file.type === "file" && !inDependencies(file.path)));
      if (page.nextCursor === null) {
        return found.map(({ path, size }) => ({ path, size, change: "created" }));
      }
      query.set("cursor", page.nextCursor);
    }
  }

  // Writes all files of the workspace to an archive (.tar.gz) on this host.
  snapshot(dest) {
    return this.#keep(async () => {
      const target = `${this.#target("archive")}?format=tar.gz`;
      const answer = await this.#server.exchange("GET", target);
      await pipeline(answer, fs.createWriteStream(dest)).catch((failure) => {
        throw new SandboxError(`the archive: ${failure.message}`, { cause: failure });
      });
    });
  }

  // Puts the files of an archive into the workspace: all of them, or none if one is hostile.
  restore(src) {
    return this.#keep(async () => {
      const target = this.#target("archive");
      const file = await fs.promises.open(src).catch((failure) => {
        throw new SandboxError(`the archive: ${failure.message}`, { cause: failure });
      });
      const headers = {
        "Content-Type": "application/octet-stream",
        "Content-Length": (await file.stat()).size,
      };
      await this.#server.bytes("PUT", target, file.createReadStream(), headers);
    });
  }

  // ---- within ----

  #check() {
    checks.seconds(this.timeoutS);
    if (!Number.isInteger(this.maxOutputBytes) || this.maxOutputBytes <= 0) {
      throw checks.bad("maxOutputBytes must be above 0");
    }
    checks.mounts(this.mounts ?? {});
    checks.tokens("capDrop", this.capDrop, checks.CAPABILITY);
    checks.tokens("profiles", this.profiles ?? [], checks.PROFILE);
    checks.tokens("egressAllow", this.egressAllow ?? [], checks.DOMAIN);
    if (this.apparmor !== null) {
      checks.token("apparmor", this.apparmor, checks.APPARMOR);
    }
    checks.variables(this.env ?? {});
    if (this.network && this.egressAllow?.length > 0) {
      throw checks.bad("egressAllow and network exclude each other");
    }
  }

  async #setUp() {
    if (!this.setup) {
      return;
    }
    const target = this.#target("setup");
    const done = await call(this.#server, target, { command: this.setup }, this.onStdout, this.onStderr);
    if (!done.success) {
      const said = (done.stderr || done.stdout).trim().slice(0, 400);
      const why = done.fault?.message ?? `exit code ${done.exitCode}`;
      throw new SandboxError(`setup failed (${why}): ${said}`, { code: "setup_failed" });
    }
  }

  #target(...parts) {
    if (this.#id === null) {
      throw new SandboxError("the sandbox is not open: call open(), or use withSandbox()", {
        code: "not_open",
      });
    }
    return pathOf("sessions", this.#id, ...parts);
  }

  // A callback that is not given is the sandbox's; null turns it off.
  async #call(target, body, { timeoutS, onStdout = this.onStdout, onStderr = this.onStderr }) {
    const limit = timeoutS === undefined || timeoutS === null ? {} : { timeoutS: checks.seconds(timeoutS) };
    return call(this.#server, target, { ...body, ...limit }, onStdout, onStderr);
  }

  // close() waits for archives on their way: with kern-sandbox these two calls are done on return.
  async #keep(work) {
    const doing = work();
    this.#pending.add(doing);
    try {
      await doing;
    } finally {
      this.#pending.delete(doing);
    }
  }
}

class Kernel {
  #server;
  #target;
  #onTimeout;

  constructor(server, target, onTimeout) {
    this.#server = server;
    this.#target = target;
    this.#onTimeout = onTimeout;
  }

  // Runs a cell. An exception in it leaves the kernel and its variables as they are.
  async runCode(code, { timeoutS } = {}) {
    if (this.#target === null) {
      throw new SandboxError("the kernel is not open", { code: "not_open" });
    }
    const limit = timeoutS === undefined || timeoutS === null ? {} : { timeoutS: checks.seconds(timeoutS) };
    return call(this.#server, `${this.#target}/cells`, { code, onTimeout: this.#onTimeout, ...limit });
  }

  async close() {
    const target = this.#target;
    this.#target = null;
    if (target !== null) {
      await forget(this.#server, target);
    }
  }
}

// Removes what may be gone, or goes by itself.
async function forget(server, target) {
  try {
    await server.bytes("DELETE", target);
  } catch (failure) {
    if (!(failure instanceof SandboxError)) {
      throw failure;
    }
  }
}

// The members of a request; what is null is left to the server.
function optionsOf(sandbox) {
  const options = {
    image: sandbox.image,
    workspace: sandbox.workspace,
    memoryMb: sandbox.memoryMb,
    cpus: sandbox.cpus,
    pids: sandbox.pids,
    timeoutS: sandbox.timeoutS,
    network: sandbox.network,
    egressAllow: sandbox.egressAllow?.length > 0 ? sandbox.egressAllow : null,
    mounts: sandbox.mounts ? checks.mounts(sandbox.mounts) : null,
    profiles: sandbox.profiles?.length > 0 ? sandbox.profiles : null,
    env: sandbox.env,
    maxOutputBytes: sandbox.maxOutputBytes,
    enforceLimits: sandbox.enforceLimits,
    requireLimits: sandbox.requireLimits,
    securityProfile: sandbox.securityProfile,
    apparmor: sandbox.apparmor,
    capDrop: sandbox.capDrop,
    trackFiles: sandbox.trackFiles,
  };
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== null));
}

// Opens a sandbox, gives it to fn, and closes it whatever happens.
async function withSandbox(options, fn) {
  if (typeof options === "function") {
    return withSandbox({}, options);
  }
  const sandbox = new Sandbox(options);
  try {
    return await fn(await sandbox.open());
  } finally {
    await sandbox.close();
  }
}

// Runs code in a box of which nothing is left. The options are those of Sandbox, and language.
async function runCode(code, { language = "python", ...options } = {}) {
  const sandbox = new Sandbox(options);
  if (sandbox.setup) {
    return withSandbox(options, (opened) => opened.runCode(code, { language }));
  }
  const body = { ...optionsOf(sandbox), code, language: checks.language(language) };
  return call(options.server ?? new Server(), "/v1/runCode", body, sandbox.onStdout, sandbox.onStderr);
}

module.exports = { Kernel, Sandbox, runCode, withSandbox };
