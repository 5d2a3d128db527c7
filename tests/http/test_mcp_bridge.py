# SPDX-License-Identifier: Apache-2.0
"""`kernd mcp`: the protocol on standard input and output."""
import json
import os
import signal
import subprocess
import unittest

import census
import harness
import mcpkit

CALL = {"name": "run_code", "arguments": {"code": "print(6 * 7)"}}


class Bridge:
    """A process of `kernd mcp`, as a client has it."""

    def __init__(self, daemon, *arguments):
        user = {"user": daemon.user, "group": "nogroup", "extra_groups": []} if daemon.user else {}
        self.process = subprocess.Popen(
            [harness.KERND, "mcp", *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, cwd="/", env={"PATH": os.environ["PATH"], "HOME": daemon.home},
            **user)
        self.last = 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.communicate()

    def write(self, message):
        text = message if isinstance(message, bytes) else json.dumps(message).encode()
        self.process.stdin.write(text + b"\n")
        self.process.stdin.flush()

    def read(self):
        return json.loads(self.process.stdout.readline())

    def ask(self, method, params=None):
        self.last += 1
        self.write({"jsonrpc": "2.0", "id": self.last, "method": method, "params": params or {}})
        answer = self.read()
        assert answer["id"] == self.last, answer
        return answer

    def end(self):
        """The end of input: what is still written, the exit status."""
        out, error = self.process.communicate(timeout=harness.seconds(20))
        return out, error, self.process.returncode


class Carrying(mcpkit.Case):
    def bridge(self):
        return Bridge(self.daemon, "--socket", self.daemon.socket_path)

    def test_conversation(self):
        with self.bridge() as bridge:
            result = bridge.ask("initialize", {"protocolVersion": "2025-06-18"})["result"]
            self.assertEqual(result["protocolVersion"], "2025-06-18")
            bridge.write({"jsonrpc": "2.0", "method": "notifications/initialized"})
            self.assertEqual(len(bridge.ask("tools/list")["result"]["tools"]), 11)
            text = bridge.ask("tools/call", CALL)["result"]["content"][0]["text"]
            self.assertIn("42", text)
            bridge.ask("tools/call", {"name": "run_code", "arguments": {"code": "x = 'é\\n☃'"}})
            text = bridge.ask("tools/call", {"name": "run_code", "arguments": {"code": "x"}})
            self.assertIn("☃", json.dumps(text, ensure_ascii=False))
            self.assertEqual(bridge.ask("nope")["error"]["code"], -32601)
            self.assertEqual(bridge.end(), (b"", b"", 0))

    def test_stateless(self):
        client = mcpkit.Client(self.daemon, mcpkit.STATELESS)
        with self.bridge() as bridge:
            for method, params in (("server/discover", {}), ("tools/list", {}),
                                   ("tools/call", CALL), ("tools/call", {"name": "é"})):
                message = client.message(method, params)
                bridge.write(message)
                answer = bridge.read()
                self.assertEqual(answer["id"], message["id"])
                if params.get("name") == "é":
                    self.assertEqual(answer["error"]["code"], -32602)
                else:
                    self.assertEqual(answer["result"]["resultType"], "complete")
            bridge.write(client.message("ping"))
            self.assertEqual(bridge.read()["error"]["code"], -32601)

    def test_malformed_lines(self):
        with self.bridge() as bridge:
            bridge.write(b"{")
            self.assertEqual(bridge.read()["error"]["code"], -32700)
            bridge.write(b"   \r\n\n5")
            self.assertEqual(bridge.read()["error"]["code"], -32700)
            bridge.write(b'{"jsonrpc":"2.0","id":9}')
            self.assertEqual(bridge.read()["error"]["code"], -32600)
            bridge.write(b'"' + b"a" * (17 << 20) + b'"')
            self.assertEqual(bridge.read()["error"]["code"], -32700)
            self.assertEqual(bridge.ask("ping")["result"], {})

    def test_progress_and_cancellation(self):
        mark = harness.new_mark()
        with self.bridge() as bridge:
            bridge.write({"jsonrpc": "2.0", "id": "a", "method": "tools/call", "params": {
                "name": "run_command", "_meta": {"progressToken": 5},
                "arguments": {"command": f"echo begun; MARK={mark} sleep 300"}}})
            told = bridge.read()
            self.assertEqual((told["method"], told["params"]["progressToken"],
                              told["params"]["message"]), ("notifications/progress", 5, "begun"))
            self.assertEqual(bridge.ask("ping")["result"], {})
            bridge.write({"jsonrpc": "2.0", "method": "notifications/cancelled",
                          "params": {"requestId": "a"}})
            result = bridge.read()
            self.assertEqual(result["id"], "a")
            self.assertEqual(result["result"]["structuredContent"]["fault"], "cancelled")
            self.assert_gone(mark)

    def test_killed_client(self):
        mark = harness.new_mark()
        with self.bridge() as bridge:
            bridge.write({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
                "name": "run_command", "arguments": {"command": f"MARK={mark} sleep 300"}}})
            census.wait_until(lambda: census.with_environment(mark), harness.seconds(20), "it")
        self.assert_gone(mark)

    def test_answers_after_the_end_of_input(self):
        with self.bridge() as bridge:
            bridge.process.stdin.write(json.dumps(
                {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": CALL}).encode())
            out, _, code = bridge.end()
            self.assertEqual(code, 0)
            self.assertIn("42", json.loads(out)["result"]["content"][0]["text"])

    def test_nobody_there(self):
        with Bridge(self.daemon, "--socket", self.daemon.path("none")) as bridge:
            self.assertEqual(bridge.ask("ping")["error"]["code"], -32603)


class Starting(unittest.TestCase):
    def test_on_demand_and_again(self):
        daemon = harness.Daemon()
        self.addCleanup(daemon.remove)
        daemon.port = 0
        options = daemon.command()[len(daemon.wrapper) + 2:]
        options = [option for option in options if option not in ("--user", daemon.user)]
        os.chown(daemon.home, os.stat(daemon.state).st_uid, -1)
        pids = set()
        with Bridge(daemon, *options) as bridge:
            for _ in range(2):
                result = bridge.ask("tools/call", CALL)["result"]
                self.assertIn("42", result["content"][0]["text"])
                with open(os.path.join(daemon.state, "lock"), encoding="ascii") as file:
                    pid = int(file.read())
                self.assertNotIn(pid, pids)
                pids.add(pid)
                os.kill(pid, signal.SIGTERM)
                census.wait_until(lambda pid=pid: ended(pid),
                                  harness.seconds(20), "the end of the server")
            out, error, code = bridge.end()
            self.assertEqual((out, error, code), (b"", b"", 0))


def ended(pid):
    """Perhaps not yet collected by its parent, the bridge."""
    return (census.stat(pid) or "Z")[0] == "Z"


if __name__ == "__main__":
    unittest.main()
