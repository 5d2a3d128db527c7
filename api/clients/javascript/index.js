// SPDX-License-Identifier: Apache-2.0
// Runs code in fresh, kernel-isolated boxes through kernd, the local sandbox server. The names are
// those of kern-sandbox: a program that uses it changes its import. index.d.ts describes them.
"use strict";

const { ExecutionResult, Result } = require("./lib/results.js");
const { MountRefused, SandboxError } = require("./lib/errors.js");
const { Kernel, Sandbox, runCode, withSandbox } = require("./lib/sandbox.js");
const { Server } = require("./lib/server.js");

const version = "0.1.0";

module.exports = {
  ExecutionResult,
  Kernel,
  MountRefused,
  Result,
  Sandbox,
  SandboxError,
  Server,
  runCode,
  version,
  withSandbox,
};
