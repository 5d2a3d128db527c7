// SPDX-License-Identifier: Apache-2.0
// What calls give: the outcome, its rich results, the files it changed.
"use strict";

class Result {
  constructor(data, isMain = false) {
    this.data = data;
    this.isMain = isMain;
  }

  get text() {
    return this.data["text/plain"];
  }

  get html() {
    return this.data["text/html"];
  }

  get markdown() {
    return this.data["text/markdown"];
  }

  get svg() {
    return this.data["image/svg+xml"];
  }

  get latex() {
    return this.data["text/latex"];
  }

  get json() {
    return this.data["application/json"];
  }

  get png() {
    return image(this.data["image/png"]);
  }

  get jpeg() {
    return image(this.data["image/jpeg"]);
  }

  formats() {
    return Object.keys(this.data);
  }
}

class ExecutionResult {
  constructor(members) {
    const changed = members.files ?? [];
    this.stdout = members.stdout ?? "";
    this.stderr = members.stderr ?? "";
    this.exitCode = members.exitCode ?? -1;
    this.durationMs = members.durationMs ?? 0;
    this.fault = members.fault ?? null;
    this.files = changed
      .filter((file) => file.change !== "deleted" && !inDependencies(file.path))
      .map(({ path, size, change }) => ({ path, size, change }));
    this.deleted = changed.filter((file) => file.change === "deleted").map((file) => file.path);
    this.truncated = Boolean(members.truncated);
    this.results = (members.results ?? []).map((entry) => new Result(textsOf(entry.data), Boolean(entry.isMain)));
    this.id = members.id ?? null;
    this.usage = members.usage ?? {};
  }

  get success() {
    return this.exitCode === 0 && this.fault === null;
  }
}

function image(text) {
  return text === undefined ? null : Buffer.from(text, "base64");
}

// JSON types are JSON in the API and text here.
function textsOf(data) {
  return Object.fromEntries(
    Object.entries(data).map(([type, value]) => [
      type,
      typeof value === "string" && !type.includes("json") ? value : JSON.stringify(value),
    ]),
  );
}

// What setup installed is no file of the program's.
function inDependencies(path) {
  return path.split("/").includes(".deps");
}

module.exports = { ExecutionResult, Result, inDependencies };
