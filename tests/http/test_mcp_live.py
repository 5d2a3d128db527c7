# SPDX-License-Identifier: Apache-2.0
"""Progress and cancellation of tool calls, in both eras."""
import unittest

import archivekit
import census
import harness
import mcpkit

# An interrupt that met Popen half-way would leave its child, which is the kernel's own affair then.
WAIT = """import os, signal, subprocess
print('begun', flush=True)
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
child = subprocess.Popen(['sleep', '300'], env={{**os.environ, 'MARK': '{mark}'}})
try:
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
    child.wait()
finally:
    child.kill()
"""


class Live(mcpkit.Case):
    def begin(self, client, mark, tool="run_code", **more):
        """A call on a connection of its own, whose program runs now: connection and request."""
        given = {"code": WAIT.format(mark=mark)} if tool == "run_code" else \
            {"command": f"MARK={mark} sleep 300"}
        params = {"name": tool, "arguments": given, **more}
        body = client.message("tools/call", params)
        connection = self.daemon.connect()
        headers = {"Content-Type": "application/json", **self.daemon.authorization(),
                   **client.headers("tools/call", params)}
        connection.request("POST", "/mcp", headers, harness.as_json(body))
        census.wait_until(lambda: census.with_environment(mark), harness.seconds(20), "the program")
        return connection, body

    def clients(self):
        return self.client(), self.client(mcpkit.STATELESS)

    def test_hang_up(self):
        for client in self.clients():
            for tool in ("run_code", "run_command"):
                for more in ({}, {"_meta": {"progressToken": 1}}):
                    with self.subTest(version=client.version, tool=tool, more=more):
                        mark = harness.new_mark()
                        connection, _ = self.begin(client, mark, tool, **more)
                        connection.close()
                        # A cell is interrupted first, and killed 2 s later if it goes on.
                        self.assert_gone(mark, 10)
            self.assertIn("7", client.text("run_code", code="7"))

    def cancel(self, client, number):
        reply = client.post({"jsonrpc": "2.0", "method": "notifications/cancelled",
                             "params": {"requestId": number, "reason": "test"}},
                            {"Mcp-Session-Id": client.session} if client.session else None)
        self.assertEqual(reply.status, 202)

    def test_cancelled(self):
        client, other = self.client(), self.client()
        client.call("run_code", code="kept = 5")
        for tool in ("run_code", "run_command"):
            mark = harness.new_mark()
            connection, body = self.begin(client, mark, tool)
            with connection:
                for who, number in ((other, body["id"]), (client, body["id"] + 1),
                                    (client, str(body["id"]))):
                    self.cancel(who, number)
                self.assertTrue(census.with_environment(mark))
                self.cancel(client, body["id"])
                reply = connection.reply("POST")
                self.assert_gone(mark)
            result = client.check(tool, reply.json["result"])
            self.assertEqual(result["structuredContent"]["fault"], "cancelled")
        self.assertIn("5", client.text("run_code", code="kept"))

    def test_snapshots_end(self):
        """One that would take minutes: the client hangs up or cancels it, or the session goes."""
        def sessions():
            return {row["id"] for row in self.daemon.get("/v1/sessions?limit=1000").json["items"]}
        client, before = self.client(), sessions()
        client.call("run_code", code=archivekit.LARGE)
        [session] = sessions() - before
        params = {"name": "snapshot", "arguments": {}}

        def delete():
            self.assertEqual(self.daemon.request("DELETE", f"/v1/sessions/{session}").status, 204)
        for end in ("hang up", "cancel", "delete"):
            with self.subTest(end=end):
                body = client.message("tools/call", params)
                with self.daemon.connect() as connection:
                    headers = {"Content-Type": "application/json", **self.daemon.authorization(),
                               **client.headers("tools/call", params)}
                    connection.request("POST", "/mcp", headers, harness.as_json(body))
                    census.wait_until(lambda: archivekit.is_packing(self.daemon),
                                      harness.seconds(20), "the snapshot's start")
                    if end == "cancel":
                        self.cancel(client, body["id"])
                    elif end == "delete":
                        delete()
                    if end != "hang up":
                        result = connection.reply("POST").json["result"]
                        self.assertTrue(result["isError"], result)
                census.wait_until(lambda: not archivekit.is_packing(self.daemon),
                                  harness.seconds(10), "the snapshot's end")
        self.assertEqual(self.daemon.get("/v1/snapshots").json["items"], [])

    def test_progress(self):
        for client in self.clients():
            params = {"name": "run_code", "_meta": {"progressToken": "tok\"en"}, "arguments": {
                "code": "import time\nfor i in range(60):\n print('line', i); time.sleep(0.03)"}}
            reply = client.post(client.message("tools/call", params),
                                client.headers("tools/call", params))
            self.assertEqual((reply.status, reply.header("Content-Type")),
                             (200, "text/event-stream"))
            *told, last = mcpkit.events(reply.body)
            self.assertTrue(2 <= len(told) <= 12, told)
            numbers = [message["params"]["progress"] for message in told]
            self.assertEqual(numbers, sorted(set(numbers)))
            for message in told:
                self.assertEqual(message["method"], "notifications/progress")
                self.assertEqual(message["params"]["progressToken"], "tok\"en")
                self.assertRegex(message["params"]["message"], r"^line \d+$")
            self.assertIn("line 59", client.check("run_code", last["result"])["content"][0]["text"])

    def test_no_stream_without_consent(self):
        client = self.client()
        params = {"name": "run_code", "arguments": {"code": "1"}, "_meta": {"progressToken": 1}}
        for accept in ("application/json", None):
            headers = {"Accept": accept or "application/json"}
            reply = client.post(client.message("tools/call", params), headers)
            self.assertEqual(reply.header("Content-Type"), "application/json")

    def test_many_at_once(self):
        client = self.client()
        client.tools()
        client.schemas = {tool["name"]: tool.get("outputSchema") for tool in client.tools()}

        def work(number):
            one = mcpkit.Client(self.daemon)
            one.session, one.schemas = client.session, client.schemas
            return one.call("run_code", code=str(number), kernel=number % 2 == 0)

        for number, result in enumerate(harness.parallel(12, work)):
            self.assertFalse(result["isError"], result)
            if number % 2 == 0:
                self.assertEqual(result["structuredContent"]["results"][0]["text"], str(number))


if __name__ == "__main__":
    unittest.main()
