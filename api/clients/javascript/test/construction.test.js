// SPDX-License-Identifier: Apache-2.0
// What is refused before any server is asked.
"use strict";

const assert = require("node:assert/strict");
const os = require("node:os");
const { test } = require("node:test");

const kernd = require("../index.js");

function refused(options, kind = kernd.SandboxError) {
  assert.throws(() => new kernd.Sandbox(options), kind, JSON.stringify(options));
}

test("safe by default; null is the default", () => {
  for (const sandbox of [new kernd.Sandbox(), new kernd.Sandbox({ timeoutS: null, network: null, capDrop: null })]) {
    assert.deepEqual(
      [sandbox.network, sandbox.timeoutS, sandbox.memoryMb, sandbox.pids, sandbox.capDrop, sandbox.mounts],
      [false, 30, 512, 256, ["ALL"], null],
    );
  }
});

test("limits", () => {
  for (const timeoutS of [0, -5, "30", true, Infinity, NaN]) {
    refused({ timeoutS });
  }
  for (const maxOutputBytes of [0, -1, 1.5]) {
    refused({ maxOutputBytes });
  }
});

test("names", () => {
  for (const name of ["ALL", "SYS_ADMIN", "CAP_NET_BIND_SERVICE", "DAC_OVERRIDE", "MKNOD"]) {
    new kernd.Sandbox({ capDrop: [name] });
  }
  const capabilities = ["--net", "-v /etc:/etc", "net_admin", "NET ADMIN", "NET;rm", "NET\n", "", "CAP_", "1NET"];
  for (const name of [...capabilities, "A".repeat(40), "NET_", "_NET", "NET__RAW", "ALL "]) {
    refused({ capDrop: [name] });
  }
  refused({ capDrop: "ALL" });
  for (const apparmor of ["unconfined", "docker-default", "a.b_c-1", "x".repeat(128), ".", ".."]) {
    new kernd.Sandbox({ apparmor });
  }
  for (const apparmor of ["-net", "a b", "prof;rm", "prof\n", "", "a/b", "ns:prof", "x".repeat(129), "café"]) {
    refused({ apparmor });
  }
  new kernd.Sandbox({ profiles: ["vcpu:heavy", "vgpio:leds", "vdisk:scratch"] });
  for (const name of ["--net", "vgpu:x", "vcpu:", "vcpu:bad name", "vdisk:../x", "vcpu:-lead", "", "vcpu:heavy\n"]) {
    refused({ profiles: [name] });
  }
  new kernd.Sandbox({ egressAllow: ["pypi.org", "files.pythonhosted.org"] });
  const domains = ["http://x.com", "x.com/p", "x.com:80", "*.x.com", "a,b.com", "localhost", "", "-x.com", "pypi.org\n"];
  for (const name of [...domains, "1.2.3.4"]) {
    refused({ egressAllow: [name] });
  }
  refused({ egressAllow: ["x.com"], network: true });
});

test("mounts", () => {
  const bad = [
    { "/": "/host" },
    { "/etc": "/x" },
    { "/tmp": "/" },
    { "/tmp": "/proc" },
    { "/tmp": "/foo/../bar" },
    { "/tmp": "relative" },
    { "relative/x": "/x" },
    { "/definitely-not-here": "/x" },
    { [os.homedir()]: "/home-x" },
    { "/tmp": ["/x", "rwx"] },
    { "/tmp": 5 },
  ];
  for (const mounts of bad) {
    refused({ mounts }, kernd.MountRefused);
  }
  new kernd.Sandbox({ mounts: { "/usr/share": ["/data", "ro"], "/tmp": "/x" } });
});

test("nothing works before open()", async () => {
  const sandbox = new kernd.Sandbox();
  const uses = [
    () => sandbox.runCode("1"),
    () => sandbox.run(["true"]),
    () => sandbox.kernel(),
    () => sandbox.readFile("x"),
    () => sandbox.listFiles(),
    () => sandbox.snapshot("/tmp/x"),
  ];
  for (const use of uses) {
    await assert.rejects(use, { code: "not_open" });
  }
});

test("what is exported", () => {
  assert.equal(kernd.version, require("../package.json").version);
  const names = ["ExecutionResult", "Kernel", "MountRefused", "Result", "Sandbox", "SandboxError", "Server"];
  assert.deepEqual(Object.keys(kernd).sort(), [...names, "runCode", "version", "withSandbox"].sort());
  assert.ok(new kernd.MountRefused("x") instanceof kernd.SandboxError);
});
