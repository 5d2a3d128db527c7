// SPDX-License-Identifier: Apache-2.0
// What is refused before a server is asked, so that a mistake shows where it was made. The server
// checks all of it, and more, again.
"use strict";

const fs = require("node:fs");
const os = require("node:os");
const posix = require("node:path").posix;

const { MountRefused, SandboxError } = require("./errors.js");

const PROFILE = /^(?:vcpu|vgpio|vdisk):[A-Za-z0-9][A-Za-z0-9._-]*$/;
const DOMAIN = /^(?=.{1,253}$)(?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.)+[A-Za-z]{2,63}$/;
const CAPABILITY = /^(?=.{1,32}$)(?:CAP_)?[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)*$/;
const APPARMOR = /^[A-Za-z0-9_.][A-Za-z0-9_.-]{0,127}$/;

const PRIVATE_SOURCES = new Set([
  "/",
  "/etc",
  "/root",
  "/boot",
  "/proc",
  "/sys",
  "/dev",
  "/var/run/docker.sock",
  "/run/docker.sock",
]);
const ESSENTIAL_TARGETS = new Set(["/", "/proc", "/sys", "/dev"]);
const LANGUAGES = ["python", "bash", "node"];

function bad(message) {
  return new SandboxError(message, { code: "bad_value" });
}

// A time limit that was given.
function seconds(value) {
  if (typeof value !== "number" || !(value > 0) || !Number.isFinite(value)) {
    throw bad("timeoutS must be a number of seconds above 0");
  }
  return value;
}

// The words of an option that takes a list of them.
function tokens(name, values, pattern) {
  if (!Array.isArray(values)) {
    throw bad(`${name} takes a list of words: [${JSON.stringify(values)}]`);
  }
  for (const value of values) {
    token(name, value, pattern);
  }
  return values;
}

function token(name, value, pattern) {
  if (typeof value !== "string" || !pattern.test(value)) {
    throw bad(`${JSON.stringify(value)} does not fit ${name}`);
  }
}

function variables(env) {
  for (const [name, value] of Object.entries(env)) {
    if (typeof value !== "string" || `${name}${value}`.includes("\0")) {
      throw bad(`env: ${name} must be a text without NUL`);
    }
  }
  return env;
}

// { source: target } and { source: [target, mode] }, as the API has them.
function mounts(given) {
  const checked = {};
  for (const [source, spec] of Object.entries(given)) {
    const [target, mode, ...more] = Array.isArray(spec) ? spec : [spec, "rw"];
    if (!["ro", "rw"].includes(mode) || more.length > 0) {
      throw new MountRefused(`${JSON.stringify(spec)} is neither a target nor [target, "ro" or "rw"]`);
    }
    checkSource(source);
    checkTarget(target);
    checked[source] = [target, mode];
  }
  return checked;
}

function checkSource(source) {
  if (!source.startsWith("/")) {
    throw new MountRefused(`the source of a mount must be absolute: ${source}`);
  }
  const real = realPath(source);
  if (real === null) {
    throw new MountRefused(`the source of a mount does not exist: ${source}`);
  }
  if (PRIVATE_SOURCES.has(source) || PRIVATE_SOURCES.has(real) || real === realPath(os.homedir())) {
    throw new MountRefused(`a box must not see ${source}`);
  }
}

function realPath(path) {
  try {
    return fs.realpathSync(path);
  } catch {
    return null;
  }
}

function checkTarget(target) {
  if (typeof target !== "string" || !target.startsWith("/") || target.split("/").includes("..")) {
    throw new MountRefused(`the target of a mount must be absolute, without "..": ${target}`);
  }
  const parts = target.split("/").filter((part) => part !== "" && part !== ".");
  if (ESSENTIAL_TARGETS.has(`/${parts.join("/")}`)) {
    throw new MountRefused(`a mount must not cover ${target}`);
  }
}

function command(given) {
  if (typeof given === "string") {
    throw bad('run() takes a list, not a text: run(["sh", "-c", "..."])');
  }
  const words = Array.isArray(given) ? given : [];
  if (words.length === 0 || !words.every((word) => typeof word === "string" && !word.includes("\0"))) {
    throw bad("run() takes a list of texts without NUL, at least one");
  }
  return words;
}

function language(given) {
  if (!LANGUAGES.includes(given)) {
    throw bad(`there is no language ${JSON.stringify(given)}: ${LANGUAGES.join(", ")}`);
  }
  return given;
}

// A path of the workspace, without the detours that a URL can't have.
function path(given) {
  const short = posix.normalize(String(given)).replace(/^\/workspace\//, "");
  if (["", ".", ".."].includes(short) || /^(\.\.)?\//.test(short) || short.includes("\0")) {
    throw new SandboxError(`${JSON.stringify(given)} is no path within the workspace`, { code: "bad_path" });
  }
  return short;
}

module.exports = {
  APPARMOR,
  CAPABILITY,
  DOMAIN,
  PROFILE,
  bad,
  command,
  language,
  mounts,
  path,
  seconds,
  token,
  tokens,
  variables,
};
