// SPDX-License-Identifier: Apache-2.0
// The way to a server: where it is, starting it where none runs, one HTTP exchange.
"use strict";

const { execFile } = require("node:child_process");
const fs = require("node:fs");
const http = require("node:http");
const path = require("node:path");
const { buffer } = require("node:stream/consumers");

const { SandboxError, errorFrom } = require("./errors.js");

const DEFAULT_PORT = 5376;
const IDLE_EXIT_S = 300; // a server that was started here leaves when nothing was asked for so long
const START_LIMIT_MS = 60_000;

class Server {
  #url = null;
  #token = null;
  #socketPath = null;
  #mayStart = false;
  #starting = null;

  // Without arguments it is the user's own server, started when a call finds none; KERND_URL and
  // KERND_TOKEN_FILE, or KERND_SOCKET, are read first.
  constructor({ url, token, tokenFile, socketPath } = {}) {
    if (!url && !socketPath) {
      url = process.env.KERND_URL;
      socketPath = url ? undefined : process.env.KERND_SOCKET;
    }
    if (url) {
      this.#url = readUrl(url);
      this.#token = token ?? readToken(tokenFile ?? process.env.KERND_TOKEN_FILE);
    } else if (socketPath) {
      this.#socketPath = socketPath;
    } else {
      this.#mayStart = true;
      // `kernd start` knows the other places.
      const runtime = process.env.XDG_RUNTIME_DIR;
      this.#socketPath = runtime ? path.join(runtime, "kernd", "kernd.sock") : null;
    }
  }

  // One request; its answer, of which the body is still to be read. A refusal is a SandboxError.
  // body: a JSON value, a Buffer, or a stream.
  async exchange(method, target, body, headers = {}) {
    const sent = { ...headers };
    let content = body;
    if (body !== undefined && !Buffer.isBuffer(body) && typeof body.pipe !== "function") {
      content = Buffer.from(JSON.stringify(body));
      sent["Content-Type"] = "application/json";
    }
    if (Buffer.isBuffer(content)) {
      sent["Content-Length"] = content.length;
    }
    let answer;
    try {
      answer = await this.#send({ method, path: target, headers: sent }, content);
    } catch (failure) {
      if (failure instanceof SandboxError) {
        throw failure;
      }
      throw this.#unreachable(failure);
    }
    if (answer.statusCode >= 400) {
      throw await refusal(answer);
    }
    return answer;
  }

  // The JSON of an answer; null where there is no body.
  async json(method, target, body, headers) {
    const text = await this.bytes(method, target, body, headers);
    return text.length === 0 ? null : JSON.parse(text);
  }

  async bytes(method, target, body, headers) {
    return read(await this.exchange(method, target, body, headers));
  }

  async #send(request, content) {
    try {
      return await this.#dial(request, content);
    } catch (failure) {
      if (!this.#mayStart || !["ENOENT", "ECONNREFUSED"].includes(failure.code)) {
        throw failure;
      }
    }
    // Calls that find nobody at the same time start one server.
    this.#starting ??= start().finally(() => {
      this.#starting = null;
    });
    this.#take(await this.#starting);
    return this.#dial(request, content);
  }

  // Where `kernd start` has found or started a server; some listen on TCP alone.
  #take({ socket, url, token }) {
    this.#socketPath = socket ?? null;
    this.#url = socket ? null : readUrl(url);
    this.#token = socket ? null : readToken(token);
  }

  #dial(request, content) {
    const headers = this.#token ? { ...request.headers, Authorization: `Bearer ${this.#token}` } : request.headers;
    return dial({ ...this.#address(), ...request, headers }, content);
  }

  #address() {
    if (this.#url) {
      return { host: this.#url.hostname.replace(/^\[|\]$/g, ""), port: this.#url.port || DEFAULT_PORT };
    }
    if (this.#socketPath === null) {
      throw Object.assign(new Error("no server is known"), { code: "ENOENT" });
    }
    return { socketPath: this.#socketPath };
  }

  #unreachable(failure) {
    const where = this.#url?.href ?? this.#socketPath;
    const refused = ["ENOENT", "ECONNREFUSED"].includes(failure.code);
    return new SandboxError(
      refused ? `nobody listens at ${where}` : `the exchange with kernd failed: ${failure.message}`,
      { code: "disconnected", cause: failure },
    );
  }
}

// A connection of its own for each exchange: closing it is how a call is given up.
function dial(options, content) {
  return new Promise((resolve, reject) => {
    const request = http.request({ agent: false, ...options }, resolve);
    request.once("error", reject);
    if (content !== undefined && typeof content.pipe === "function") {
      content.once("error", (failure) => request.destroy(failure));
      content.pipe(request);
    } else {
      request.end(content);
    }
  });
}

// All bytes of an answer.
async function read(answer) {
  try {
    return await buffer(answer);
  } catch (failure) {
    throw cut(failure);
  }
}

// An answer that ended too early.
function cut(failure) {
  return failure instanceof SandboxError
    ? failure
    : new SandboxError(`the exchange with kernd failed: ${failure.message}`, {
        code: "disconnected",
        cause: failure,
      });
}

async function refusal(answer) {
  const text = await read(answer);
  try {
    return errorFrom(JSON.parse(text));
  } catch {
    return new SandboxError(`the server answered ${answer.statusCode}`, { status: answer.statusCode });
  }
}

function readUrl(text) {
  let url = null;
  try {
    url = new URL(text);
  } catch {
    // Told below.
  }
  if (url?.protocol !== "http:" || !url.hostname) {
    throw new SandboxError(`${text} is no http://HOST:PORT`, { code: "bad_value" });
  }
  return url;
}

function readToken(file) {
  if (!file) {
    throw new SandboxError("a server on TCP wants its token", {
      code: "unauthorized",
      remediation: "name its file with tokenFile or KERND_TOKEN_FILE",
    });
  }
  try {
    return fs.readFileSync(file, "ascii").trim();
  } catch (failure) {
    throw new SandboxError(`the token file: ${failure.message}`, { code: "unauthorized", cause: failure });
  }
}

// Starts the user's server unless it runs; where it is, by name: socket, url, token (a file).
function start() {
  const program = process.env.KERND_BIN || "kernd";
  const options = { timeout: START_LIMIT_MS };
  return new Promise((resolve, reject) => {
    execFile(program, ["start", "--idle-exit", String(IDLE_EXIT_S)], options, (failure, out, error) => {
      const found = Object.fromEntries([...out.matchAll(/ (\w+)=(\S+)/g)].map((part) => part.slice(1)));
      if (failure === null && (found.socket || found.url)) {
        resolve(found);
      } else if (failure?.code === "ENOENT") {
        reject(
          new SandboxError(`there is no ${program}`, {
            code: "disconnected",
            remediation: "put kernd on PATH, or its place into KERND_BIN",
          }),
        );
      } else {
        const said = (error || out || failure?.message || "").trim();
        reject(new SandboxError(`kernd did not start: ${said}`, { code: "disconnected" }));
      }
    });
  });
}

// A request target; a part's slashes divide it further.
function pathOf(...parts) {
  const words = parts.flatMap((part) => part.split("/"));
  return `/v1/${words.map(encodeURIComponent).join("/")}`;
}

module.exports = { Server, cut, pathOf, read };
