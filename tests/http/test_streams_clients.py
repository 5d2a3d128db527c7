# SPDX-License-Identifier: Apache-2.0
"""Readers of streams: many, slow, stopped, gone."""
import resource
import socket
import threading
import time
import unittest

import census
import harness
import sessionkit
import streamkit
from streamkit import NDJSON, SSE, complete, output

MIB = 1 << 20


def sleeper(mark, seconds=8):
    """A command whose processes can be found by the mark."""
    return ["sh", "-c", f"sleep {seconds}; echo done", mark]


def started(mark):
    census.wait_until(lambda: census.with_argument(mark), harness.seconds(15), "the start")


class Gone(streamkit.Case):
    """A client that leaves gives back worker and box within a second or so."""

    def leave(self, connection, how):
        if how == "reset":
            connection.reset()
        elif how == "close":
            connection.close()
        else:
            connection.socket.shutdown(socket.SHUT_WR)
            self.addCleanup(connection.close)

    def start(self, mark, form, **options):
        """A request whose program runs by now."""
        connection = self.daemon.connect()
        connection.request("POST", "/v1/run", {
            **self.daemon.authorization(), "Accept": form, "Content-Type": "application/json"},
            harness.as_json({"command": sleeper(mark), **options}))
        started(mark)
        return connection

    def assert_ended(self, mark):
        census.wait_gone(lambda: census.with_argument(mark), harness.seconds(3), "the box")

    def test_however_it_leaves(self):
        for form in ("application/json", NDJSON, SSE):
            for how in ("reset", "close", "half-close"):
                with self.subTest(form=form, how=how):
                    mark = harness.new_mark()
                    self.leave(self.start(mark, form), how)
                    self.assert_ended(mark)
        self.idle()

    def test_one_that_reads_a_stream_leaves(self):
        for accept in (NDJSON, SSE):
            mark = harness.new_mark()
            stream = self.run_stream(["sh", "-c", "while echo tick; do sleep 0.02; done", mark],
                                     accept=accept)
            stream.until("stdout")
            name = stream.header("X-Execution-Id")
            stream.reset()
            self.assert_ended(mark)
            self.assertEqual(self.ended(name)["fault"]["type"], "cancelled")

    def test_one_that_stopped_reading_leaves(self):
        """The program writes more than any buffer on the way holds; nobody reads; then RST."""
        mark = harness.new_mark()
        stream = self.run_stream(["sh", "-c", "head -c 30000000 /dev/zero; sleep 60", mark])
        stream.until("started")
        census.wait_until(lambda: self.daemon.get(
            f"/v1/executions/{stream.header('X-Execution-Id')}/stdout",
            headers={"Range": "bytes=29999999-"}).status == 206, harness.seconds(20), "all output")
        self.assertTrue(census.with_argument(mark))
        stream.reset()
        self.assert_ended(mark)

    def test_what_goes_on_without_its_client(self):
        self.idle(limit=20)
        rows = ({"onDisconnect": "continue"}, {"id": "named-one"}, {})
        for number, (form, options) in enumerate((form, options) for form in
                                                 ("application/json", NDJSON) for options in rows):
            mark = harness.new_mark()
            headers = {"Idempotency-Key": mark} if not options else {}
            options = {**options, **({"id": f"named-{number}"} if "id" in options else {})}
            with self.subTest(form=form, options=options):
                self.idle()  # of what the tests before left behind
                connection = self.daemon.connect()
                connection.request("POST", "/v1/run", {
                    **self.daemon.authorization(), **headers, "Accept": form,
                    "Content-Type": "application/json"}, harness.as_json(
                        {"command": sleeper(mark, 1.5), **options}))
                started(mark)
                running = self.daemon.get("/v1/executions?state=running").json["items"]
                self.assertEqual(len(running), 1)
                connection.reset()
                value = self.ended(running[0]["id"])
                self.assertEqual((value["stdout"], value["fault"]), ("done\n", None))

    def test_a_named_one_can_be_told_to_end_with_its_client(self):
        mark = harness.new_mark()
        self.leave(self.start(mark, NDJSON, id="short-lived", onDisconnect="cancel"), "close")
        self.assert_ended(mark)
        self.assertEqual(self.ended("short-lived")["fault"]["type"], "cancelled")

    def test_a_follower_that_leaves_ends_nothing(self):
        name = self.submit(["sh", "-c", "sleep 1.5; echo done"])
        follower = self.events(name)
        follower.until("started")
        follower.reset()
        reply = self.daemon.connect()
        reply.request("GET", f"/v1/executions/{name}?waitS=30", self.daemon.authorization())
        reply.reset()
        self.assertEqual(self.ended(name)["stdout"], "done\n")

    def test_fifty_in_a_row_then_a_normal_call(self):
        for number in range(50):
            form = ("application/json", NDJSON, SSE)[number % 3]
            connection = self.daemon.connect()
            connection.request("POST", "/v1/run", {
                **self.daemon.authorization(), "Accept": form, "Content-Type": "application/json"},
                harness.as_json({"command": ["sleep", "60"], "timeoutS": 90}))
            if number % 2:
                connection.close()
            else:
                connection.reset()
        with self.within(2):
            self.assert_success(self.run_code("print(1)"), "1\n")
        self.idle()

    def test_fifty_at_once_then_a_normal_call(self):
        marks = [harness.new_mark() for _ in range(16)]
        connections = [self.start(mark, NDJSON) for mark in marks[:4]]
        connections += [self.run_stream(["sleep", "60"]).connection for _ in range(46)]
        for connection in connections:
            connection.reset()
        with self.within(2):
            self.assert_success(self.run_code("print(1)"), "1\n")
        self.idle()


class GoneFromSession(sessionkit.Case, streamkit.Case):
    def test_its_call_ends_and_the_session_is_usable(self):
        session = self.session()
        for accept in ("application/json", NDJSON):
            with self.subTest(accept=accept):
                mark = harness.new_mark()
                connection = self.daemon.connect()
                connection.request("POST", f"{session.path}/runCode", {
                    **self.daemon.authorization(), "Accept": accept,
                    "Content-Type": "application/json"}, harness.as_json({
                        "code": "import subprocess as s; s.run(['sleep', '8']); open('late', 'w')",
                        "language": "python", "env": {"MARK": mark}}))
                census.wait_until(lambda: census.with_environment(mark), harness.seconds(15),
                                  "the start")
                connection.reset()
                with self.within(2):
                    self.assert_success(session.run(["echo", "usable"]), "usable\n")
                census.wait_gone(lambda: census.with_environment(mark), harness.seconds(3),
                                 "the box")
                census.wait_until(lambda: session.get()["executions"] == [], harness.seconds(3),
                                  "the end of the call, which is told behind that of its box")
                self.assertEqual(session.names(), [])


class Readers(streamkit.Case):
    # Two hundred clients wait at once, and descriptors cost nothing.
    daemon_arguments = ("--connections", "600")

    @classmethod
    def setUpClass(cls):
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, 4096)), hard))
        super().setUpClass()

    def test_two_hundred_follow_one(self):
        line = "x" * 40
        name = self.submit(["sh", "-c", f"read go; for i in $(seq 300); do echo $i {line}; "
                            "test $((i % 30)) != 0 || sleep 0.05; done"], interactive=True)
        census.wait_until(lambda: self.execution(name)["state"] == "running",
                          harness.seconds(10), "a run")
        followers = [self.events(name, accept=(NDJSON, SSE)[i % 2]) for i in range(200)]
        reply = self.daemon.post(f"/v1/executions/{name}/stdin", b"go\n",
                                 media_type="application/octet-stream")
        self.assertEqual(reply.status, 204)
        found, failures = [None] * len(followers), []

        def read(start):
            try:
                for index in range(start, len(followers), 8):
                    found[index] = complete(followers[index].all())
            except Exception as error:  # pylint: disable=broad-except
                failures.append(error)

        threads = [threading.Thread(target=read, args=(start,)) for start in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(failures, [])
        self.assertTrue(all(events == found[0] for events in found))
        self.assertEqual(output(found[0]), "".join(f"{i} {line}\n" for i in range(1, 301)))
        for follower in followers:
            follower.connection.close()

    def test_a_slow_reader_of_much_output(self):
        """64 MiB, read at a kilobyte a second: neither the program nor the memory notice."""
        self.run_command(["true"])
        code = streamkit.writer(64)
        alone = self.run_code(code, trackFiles=False)
        self.assertEqual(len(alone["stdout"]), 64 * MIB)
        plain_s = alone["usage"]["wallMs"] / 1e3
        del alone
        slow = self.beside_a_slow_reader(code, trackFiles=False)
        self.assertEqual((slow.end["exitCode"], slow.end["truncated"]), (0, False))
        self.assertEqual(slow.end["cutStreams"][0]["bytes"], 64 * MIB)
        self.assertLess(slow.wall_s, 3 * plain_s + harness.seconds(5), "the box was held up")
        # The result itself, as for a caller who waits, and little for the reader.
        self.assert_grown_less(slow.grown_mb, 64 + 64)
        name = slow.end["id"]
        self.assertEqual(len(self.daemon.get(f"/v1/executions/{name}/stdout").body), 64 * MIB)

    def test_a_log_that_is_full_says_so(self):
        """What does not fit into the log is in the answer, and the program does not notice."""
        code = "import os\n" \
               "for i in range(3 * 1024): os.write(1, b'0123456789abcdef' * 4096)\n"
        with self.code_stream(code, maxOutputBytes=256 * MIB, trackFiles=False,
                              timeoutS=60) as stream:
            at, full = 0, []
            while (event := stream.next())["type"] not in ("exit", "error"):
                if event["type"] == "stdout":
                    self.assertEqual((event["offset"], full), (at, []))
                    at += len(event["data"])
                elif event["type"] == "truncated":
                    full.append((event["stream"], event["logOnly"]))
        self.assertEqual(full, [("stdout", True)])
        self.assertEqual((event["exitCode"], event["truncated"]), (0, False))
        self.assertGreater(at, 128 * MIB)
        value = self.execution(event["id"])
        self.assertEqual(value["cutStreams"][0]["bytes"], 192 * MIB)

    def test_readers_that_never_read(self):
        """Twenty stopped readers of 16 MiB each: the others and the memory don't notice."""
        self.run_command(["true"])
        name = self.submit(["sh", "-c", "head -c 16777216 /dev/zero | tr '\\0' x"])
        self.ended(name)
        before = self.resident_mb()
        stopped = [self.events(name) for _ in range(20)]
        with self.events(name) as reader:
            self.assertEqual(len(output(complete(reader.all()))), 16 * MIB)
        with self.within(2):
            self.assert_success(self.run_code("print(1)"), "1\n")
        self.assert_grown_less(self.resident_mb() - before, 48)
        for stream in stopped:
            stream.reset()

    def test_a_stopped_reader_goes_on_where_it_was(self):
        with self.run_stream(["sh", "-c", "head -c 4000000 /dev/zero | tr '\\0' y; echo end"]) \
                as stream:
            time.sleep(1.5)  # everything on the way is full by now; if not, the test is weaker
            events = complete(stream.all())
        self.assertEqual(output(events), "y" * 4000000 + "end\n")


class Races(streamkit.Case):
    def test_a_deadline_that_meets_the_end(self):
        """Each call has one outcome: a normal end, or a timeout."""
        def call(i):
            return self.daemon.post("/v1/runCode", {"code": "exit 0", "language": "bash",
                                                    "timeoutS": 0.001 * (1 + i % 25)})

        outcomes = {}
        rounds = 500 if harness.SLOW == 1 else 200
        for start in range(0, rounds, 20):
            for reply in harness.parallel(20, lambda i: call(start + i)):
                self.assertEqual(reply.status, 200, reply)
                value = reply.json
                fault = (value["fault"] or {}).get("type")
                self.assertIn((fault, value["exitCode"]), ((None, 0), ("timeout", None),
                                                           ("timeout", 137)))
                outcomes[fault] = outcomes.get(fault, 0) + 1
        self.assertEqual(sum(outcomes.values()), rounds)
        self.assertTrue(self.daemon.alive())

    def test_a_deadline_that_meets_the_end_of_a_stream(self):
        def call(i):
            with self.run_stream(["true"], timeoutS=0.001 * (1 + i % 25)) as stream:
                return complete(stream.all()), stream.header("X-Execution-Id")

        for start in range(0, 100, 20):
            for events, name in harness.parallel(20, lambda i: call(start + i)):
                last = events[-1]
                self.assertEqual(last["type"], "exit")
                self.assertIn((last["fault"] or {}).get("type"), (None, "timeout"))
                value = self.execution(name)
                self.assertEqual((value["fault"], value["exitCode"]),
                                 (last["fault"], last["exitCode"]))

    def test_cancel_that_meets_the_end(self):
        def call(i):
            name = self.submit(["sleep", str(0.002 * (i % 20))])
            self.cancel(name)
            value = self.ended(name)
            self.cancel(name)
            events = complete(self.events(name).all())
            self.assertEqual(events[-1]["fault"], value["fault"])
            return (value["fault"] or {}).get("type")

        outcomes = {outcome for start in range(3) for outcome in harness.parallel(20, call)}
        self.assertLessEqual(outcomes, {None, "cancelled"})
        self.idle()

    def test_clients_that_leave_while_it_ends(self):
        def call(i):
            stream = self.run_stream(["sleep", str(0.001 * (i % 30))],
                                     accept=("application/json", NDJSON, SSE)[i % 3])
            time.sleep(0.001 * (i % 7))
            stream.reset()

        for _ in range(3):
            harness.parallel(20, call)
        self.idle()
        self.assert_success(self.run_code("print(1)"), "1\n")


if __name__ == "__main__":
    unittest.main()
