#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""kernd over HTTP beside kern-sandbox's Node binding, both with the same kern and image, in one run.

    tests/bench/side_by_side.py --kern FILE --binding DIR [--rounds 20] [--seconds 3]

The binding's directory holds its package.json. The two take every row in turn, kernd first in even
rounds and last in odd ones; a row is the median of its rounds, in milliseconds, and throughput in
calls a second. Both have their defaults: a session of 512 MiB and 256 processes without a network,
whose changed files are told; kernd has its spares, as users have. The binding is called within the
program that uses it; kernd is asked over its Unix socket by a client that costs next to nothing
(Caller, which parses the answer's JSON; load.c for throughput): what a library for HTTP adds beyond is
not measured. The runtime directories of both are in memory, as $XDG_RUNTIME_DIR is; workspaces and
kernd's state are on disk. Exit code 1 when the binding is ahead in a row.
"""
import argparse
import json
import os
import pwd
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "http"))
import harness  # noqa: E402
import imagekit  # noqa: E402
import shapes  # noqa: E402

# Reads a row's name a line and answers with the milliseconds it took, or the calls in that time.
DRIVER = r"""
const { Sandbox } = require(process.argv[1]);
const CODE = { python: "1+1", bash: "echo 2", node: "console.log(2)" };
(async () => {
  const make = async () => { const s = new Sandbox({ image: "python:3.12-slim" }); await s.open(); return s; };
  const box = await make();
  const kernel = await box.kernel();
  await kernel.runCode("1+1");
  const rows = {
    run: () => box.run(["true"]),
    runCode: (language) => box.runCode(CODE[language], { language }),
    cell: () => kernel.runCode("1+1"),
    open: async () => { const s = await make(); await s.runCode("1+1"); await s.close(); },
  };
  const lines = require("readline").createInterface({ input: process.stdin });
  console.log("ready");
  for await (const line of lines) {
    const [name, argument, seconds, work] = line.split(" ");
    const begun = process.hrtime.bigint();
    const passed = () => Number(process.hrtime.bigint() - begun) / 1e6;
    if (name === "load") {
      let calls = 0;
      const call = work === "run" ? () => box.run(["true"]) : () => box.runCode(CODE[work], { language: work });
      const caller = async () => { while (passed() < seconds * 1000) { await call(); calls++; } };
      await Promise.all(Array.from({ length: Number(argument) }, caller));
      console.log(calls / passed() * 1000);
    } else {
      await rows[name](argument);
      console.log(passed());
    }
  }
  await kernel.close(); await box.close();
  process.exit(0);
})().catch((error) => { console.error(error); process.exit(1); });
"""
MEMORY = "/dev/shm"
CODE = {"python": '{"code":"1+1","language":"python"}',
        "bash": '{"code":"echo 2","language":"bash"}',
        "node": '{"code":"console.log(2)","language":"node"}'}
RUN = '{"command":["true"]}'
CELL = '{"code":"1+1"}'
LENGTH = re.compile(rb"(?i)\r\ncontent-length: *(\d+)")
ROWS = (("run true", "run -"), ("runCode python", "runCode python"),
        ("runCode bash", "runCode bash"), ("runCode node", "runCode node"),
        ("kernel cell", "cell -"), ("first answer after open", "open -"))
LOADS = (("run true, 1 caller", 1, "run"), ("run true, 4 callers", 4, "run"),
         ("run true, 16 callers", 16, "run"), ("runCode python, 4 callers", 4, "python"))


def private(parent, name):
    """A directory of the user the daemon and the binding run as."""
    place = os.path.join(parent, name)
    os.mkdir(place, 0o700)
    if os.geteuid() == 0:
        account = pwd.getpwnam(harness.USER)
        os.chown(place, account.pw_uid, account.pw_gid)
    return place


class Binding:
    """The Node program, as the user the daemon runs as."""

    def __init__(self, options, cache, home, runtime):
        account = pwd.getpwnam(harness.USER) if os.geteuid() == 0 else None
        who = {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []} if account else {}
        self.process = subprocess.Popen(
            [shutil.which("node"), "-e", DRIVER, os.path.abspath(options.binding)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd="/",
            env={"PATH": os.environ["PATH"], "KERN_BIN": options.kern, "XDG_CACHE_HOME": cache,
                 "HOME": home, "TMPDIR": private(home, "tmp"), "KERN_ALLOW_UNCAPPED": "1",
                 "XDG_RUNTIME_DIR": private(runtime, "binding")}, **who)
        self.answer()

    def answer(self):
        line = self.process.stdout.readline()
        if not line:
            sys.exit("the binding's program ended")
        return line.strip()

    def take(self, row):
        self.process.stdin.write(row + "\n")
        self.process.stdin.flush()
        return float(self.answer())

    def load(self, callers, work, seconds):
        return self.take(f"load {callers} {seconds} {work}")

    def close(self):
        self.process.stdin.close()
        self.process.wait(20)


class Caller:
    """A keep-alive connection whose client costs next to nothing: what is measured is the server.
    A request is built once and sent in one piece, the answer's body is parsed."""

    def __init__(self, daemon):
        self.socket = daemon.connect("unix").socket
        self.head = "Host: localhost\r\nContent-Type: application/json\r\n"
        self.built = {}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def request(self, method, target, body):
        key = (method, target, body)
        if key not in self.built:
            self.built[key] = f"{method} {target} HTTP/1.1\r\n{self.head}" \
                              f"Content-Length: {len(body)}\r\n\r\n{body}".encode()
        return self.built[key]

    def ask(self, method, target, body=""):
        self.socket.sendall(self.request(method, target, body))
        data = b""
        while b"\r\n\r\n" not in data:
            data += self.more(target)
        head, _, answer = data.partition(b"\r\n\r\n")
        length = LENGTH.search(head)
        while length and len(answer) < int(length[1]):
            answer += self.more(target)
        if not head.startswith(b"HTTP/1.1 2"):
            sys.exit(f"{target}: {head} {answer}")
        return json.loads(answer) if answer else None

    def more(self, target):
        piece = self.socket.recv(1 << 16)
        if not piece:
            sys.exit(f"{target}: the connection ended")
        return piece


class Server:
    """The same rows over keep-alive connections."""

    def __init__(self, daemon):
        self.daemon = daemon
        self.caller = Caller(daemon)
        self.session = self.ask("POST", "/v1/sessions", "{}")["id"]
        kernel = self.ask("POST", f"/v1/sessions/{self.session}/kernels", '{"language":"python"}')
        self.cells = f"/v1/sessions/{self.session}/kernels/{kernel['id']}/cells"
        self.run = f"/v1/sessions/{self.session}/run"

    def ask(self, method, target, body=""):
        return self.caller.ask(method, target, body)

    def take(self, row):
        name, argument = row.split()
        begun = time.perf_counter()
        if name == "run":
            self.ask("POST", self.run, RUN)
        elif name == "runCode":
            self.ask("POST", f"{self.run}Code", CODE[argument])
        elif name == "cell":
            self.ask("POST", self.cells, CELL)
        else:
            made = f"/v1/sessions/{self.ask('POST', '/v1/sessions', '{}')['id']}"
            self.ask("POST", f"{made}/runCode", CODE["python"])
            self.ask("DELETE", made)
        return (time.perf_counter() - begun) * 1000

    def load(self, callers, work, seconds):
        target, body = (self.run, RUN) if work == "run" else (f"{self.run}Code", CODE[work])
        return shapes.load(self.daemon, target, json.loads(body), "callers", callers, seconds, via="unix")[1]

    def close(self):
        self.caller.socket.close()
        with Caller(self.daemon) as caller:  # the server closes connections that are silent for long
            caller.ask("DELETE", f"/v1/sessions/{self.session}")


def take_turns(contenders, row, rounds):
    """The times of each, one round of all of them after the other; who begins goes round. The first
    round warms up and is not counted."""
    times = [[] for _ in contenders]
    for number in range(rounds + 1):
        for at in range(len(contenders)):
            one = (at + number) % len(contenders)
            times[one].append(contenders[one].take(row))
    return [taken[1:] for taken in times]


def load_in_turns(contenders, callers, work, seconds):
    """Calls a second of each, over two windows: there and back, so that drift is everybody's."""
    order = [*range(len(contenders)), *reversed(range(len(contenders)))]
    rates = [[] for _ in contenders]
    for one in order:
        rates[one].append(contenders[one].load(callers, work, seconds / 2))
    return [statistics.mean(found) for found in rates]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kern", required=True)
    parser.add_argument("--binding", required=True)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=3)
    options = parser.parse_args()
    cache = imagekit.cache(options.kern, harness.USER if os.geteuid() == 0 else None)
    harness.SPARES = "32"  # the default, as users have it
    daemon = harness.Daemon(arguments=["--engine", "kern", "--kern", options.kern, "--image-cache",
                                       cache, "--log-level", "warning"])
    behind = False
    with tempfile.TemporaryDirectory() as home, tempfile.TemporaryDirectory(dir=MEMORY) as runtime:
        for place in (home, runtime):
            os.chmod(place, 0o755)
        daemon.runtime = private(runtime, "kernd")
        daemon.socket_path = os.path.join(daemon.runtime, "kernd.sock")
        daemon.start()
        server, binding = Server(daemon), Binding(options, cache, home, runtime)
        print(f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")
        print(f"{'row':32} {'kernd':>9} {'binding':>9}")
        for label, row in ROWS:
            ours, theirs = map(statistics.median, take_turns((server, binding), row, options.rounds))
            behind = behind or ours > theirs
            print(f"{label + ', ms':32} {ours:9.2f} {theirs:9.2f}", flush=True)
        for label, callers, work in LOADS:
            ours, theirs = load_in_turns((server, binding), callers, work, options.seconds)
            behind = behind or ours < theirs
            print(f"{label + ', 1/s':32} {ours:9.1f} {theirs:9.1f}", flush=True)
        binding.close()
        server.close()
        daemon.stop()
    return 1 if behind else 0


if __name__ == "__main__":
    sys.exit(main())
