// SPDX-License-Identifier: Apache-2.0
// One call that runs something: waiting for its result, or hearing its output as it comes.
"use strict";

const readline = require("node:readline");

const { SandboxError, errorFrom } = require("./errors.js");
const { ExecutionResult } = require("./results.js");
const { cut, pathOf } = require("./server.js");

// What ran, ran; SandboxError when it could not.
async function call(server, target, body, onStdout, onStderr) {
  if (!onStdout && !onStderr) {
    return new ExecutionResult(await server.json("POST", target, body, { Accept: "application/json" }));
  }
  // base64, because a callback is promised the bytes as the program wrote them; setup tells text alone.
  const exact = target.endsWith("/setup") ? body : { ...body, stdoutEncoding: "base64" };
  return new Follower(server, { stdout: onStdout, stderr: onStderr }).follow(target, exact);
}

// Reads the events of one execution.
class Follower {
  #server;
  #callbacks;
  #output = { stdout: [], stderr: [] };
  #cut = new Set(); // streams of which the events do not tell all
  #results = [];
  #files = [];

  constructor(server, callbacks) {
    this.#server = server;
    this.#callbacks = callbacks;
  }

  async follow(target, body) {
    const answer = await this.#server.exchange("POST", target, body, { Accept: "application/x-ndjson" });
    const last = await this.#readEvents(answer);
    if (last?.type === "error") {
      throw errorFrom(last);
    }
    if (last?.type !== "exit") {
      throw new SandboxError("the stream of events was cut", { code: "disconnected" });
    }
    for (const name of this.#cut) {
      await this.#fetchRest(last.id, name);
    }
    return new ExecutionResult({
      ...last,
      stdout: Buffer.concat(this.#output.stdout).toString(),
      stderr: Buffer.concat(this.#output.stderr).toString(),
      results: this.#results,
      files: this.#files,
    });
  }

  async #readEvents(answer) {
    let last = null;
    try {
      for await (const line of readline.createInterface({ input: answer, crlfDelay: Infinity })) {
        last = JSON.parse(line);
        this.#take(last);
      }
    } catch (failure) {
      throw cut(failure);
    }
    return last;
  }

  #take(event) {
    if (event.type === "stdout" || event.type === "stderr") {
      this.#handOn(event.type, Buffer.from(event.data, event.encoding === "base64" ? "base64" : "utf8"));
    } else if (event.type === "truncated" && event.logOnly) {
      this.#cut.add(event.stream);
    } else if (event.type === "result") {
      this.#results.push(event);
    } else if (event.type === "file") {
      this.#files.push(event);
    }
  }

  #handOn(name, data) {
    this.#output[name].push(data);
    try {
      this.#callbacks[name]?.(data);
    } catch {
      // A listener's mistake is none of the call's.
    }
  }

  // The log of events is bounded; the output itself is kept longer.
  async #fetchRest(id, name) {
    const seen = this.#output[name].reduce((sum, piece) => sum + piece.length, 0);
    try {
      const headers = { Range: `bytes=${seen}-` };
      const answer = await this.#server.exchange("GET", pathOf("executions", id, name), undefined, headers);
      for await (const piece of answer) {
        this.#handOn(name, piece);
      }
    } catch (failure) {
      if (failure.status !== 416) {
        // 416: nothing is behind what was seen.
        throw cut(failure);
      }
    }
  }
}

module.exports = { call };
