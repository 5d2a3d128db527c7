// SPDX-License-Identifier: Apache-2.0
// What is thrown: the program's own mistake, or a server that can't.
"use strict";

class SandboxError extends Error {
  constructor(message, { code = null, status = null, remediation = "", cause } = {}) {
    super(remediation ? `${message}. ${remediation}` : message, { cause });
    this.name = new.target.name;
    this.code = code;
    this.status = status;
    this.remediation = remediation;
  }
}

class MountRefused extends SandboxError {}

// The error for a problem (RFC 9457), which is the server's word, or that of an event.
function errorFrom(problem) {
  const fields = (problem.errors ?? []).map((entry) => `${entry.pointer}: ${entry.message}`).join("; ");
  const message = String(problem.detail || problem.title || "the server refused");
  const Kind = problem.code === "mount_refused" ? MountRefused : SandboxError;
  return new Kind(fields && !message.includes(fields) ? `${message} (${fields})` : message, {
    code: problem.code ?? null,
    status: problem.status ?? null,
    remediation: problem.remediation ?? "",
  });
}

module.exports = { MountRefused, SandboxError, errorFrom };
