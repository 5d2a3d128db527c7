# SPDX-License-Identifier: Apache-2.0
"""GET /metrics, read as Prometheus reads it; log lines in both forms."""
import re
import socket
import unittest

import census
import harness
import metricskit
import sessionkit
import wire


class Reader(unittest.TestCase):
    """The reader of these tests itself refuses what is wrong."""

    GOOD = ('# HELP a_total x\n# TYPE a_total counter\na_total{b="c"} 1\n'
            '# HELP h x\n# TYPE h histogram\nh_bucket{le="1"} 1\nh_bucket{le="+Inf"} 2\n'
            'h_sum 3\nh_count 2\n')

    def test_good(self):
        self.assertEqual(metricskit.parse(self.GOOD)["a_total"].value(b="c"), 1)

    def test_bad(self):
        for old, new in (("counter", "meter"), ("a_total counter", "a_total gauge"),
                         ('b="c"', 'b="c",b="d"'), ('b="c"', 'b="\\x"'), ('b="c"', 'b=c'),
                         ("_count 2", "_count 3"), ('{le="1"} 1', '{le="1"} 9'),
                         ('h_bucket{le="+Inf"} 2\n', ""), ("# HELP h x\n", ""),
                         ("# HELP h", "# HELP a_total"), ("h_sum 3\n", ""),
                         ('a_total{b="c"} 1\n', 'a_total{b="c"} 1\na_total{b="c"} 1\n'),
                         ("h_count 2\n", "h_count 2")):
            with self.subTest(new=new), self.assertRaises((metricskit.Bad, KeyError)):
                metricskit.parse(self.GOOD.replace(old, new))


class Metrics(sessionkit.Case):
    def read(self):
        reply = self.daemon.get("/metrics")
        self.assertEqual(reply.status, 200, reply)
        self.assertEqual(reply.header("Content-Type"), "text/plain; version=0.0.4; charset=utf-8")
        self.assertEqual(reply.header("Cache-Control"), "no-store")
        return metricskit.parse(reply.body.decode())

    def test_what_is_told(self):
        found = self.read()
        build = found["kernd_build_info"]
        ((_, labels), value), = build.samples.items()
        self.assertEqual((value, dict(labels)["engine"]), (1, harness.ENGINE or "bubblewrap"))
        for name in ("kernd_queue_length", "kernd_queue_limit", "kernd_callers", "kernd_executions_running",
                     "kernd_boxes", "kernd_kernels", "kernd_spare_takes_total", "kernd_forks_total",
                     "kernd_step_duration_seconds", "kernd_journal_bytes", "kernd_snapshot_bytes",
                     "kernd_store_writes_dropped_total", "kernd_http_connections"):
            self.assertIn(name, found)
        self.assertGreater(found["kernd_store_bytes"].value(), 4096)
        self.assertGreater(found["process_resident_memory_bytes"].value(), 1 << 20)
        self.assertGreater(found["process_open_fds"].value(), 5)
        self.assertGreaterEqual(found["process_max_fds"].value(),
                                found["process_open_fds"].value())
        self.assertGreaterEqual(found["kernd_http_requests_in_flight"].value(), 1)

    def test_outcomes_are_counted(self):
        def count(kind, fault):
            return self.read()["kernd_executions_total"].value(kind=kind, fault=fault)

        before = {key: count(*key) for key in (("runCode", "none"), ("run", "timeout"),
                                               ("run", "none"))}
        self.run_code("print(1)")
        self.run_command(["sh", "-c", "exit 3"])
        self.run_command(["sleep", "60"], timeoutS=0.2)
        for key, value in before.items():
            self.assertEqual(count(*key), value + 1, key)

    def test_requests_by_pattern_and_status(self):
        session = self.session()
        session.put("strictly private name", b"12345")
        self.assertEqual(session.content("strictly private name"), b"12345")
        self.assertEqual(self.daemon.get("/v1/sessions/nobody-knows").status, 404)
        self.assertEqual(self.daemon.get("/no/such/path?x=" + "y" * 50).status, 404)
        self.assertEqual(self.daemon.request("OPTIONS", "/v1/run").status, 204)
        self.assertEqual(self.daemon.get("/v1/version", token=False).status, 401)
        text = self.daemon.get("/metrics").body.decode()
        found = metricskit.parse(text)
        requests = found["kernd_http_requests_total"]
        files = {"route": "/v1/sessions/{id}/files/{path...}"}
        self.assertGreaterEqual(requests.value(method="PUT", status="201", **files), 1)
        self.assertGreaterEqual(requests.value(method="GET", status="200", **files), 1)
        self.assertGreaterEqual(
            requests.value(method="GET", route="/v1/sessions/{id}", status="404"), 1)
        self.assertGreaterEqual(requests.value(method="any", route="none", status="404"), 1)
        for private in ("private", "nobody-knows", "no/such", session.id, self.daemon.token):
            self.assertNotIn(private, text)
        times = found["kernd_http_request_duration_seconds"]
        self.assertGreaterEqual(times.value("_count", method="PUT", **files), 1)
        self.assertGreaterEqual(found["kernd_http_request_bytes_total"].value(), 5)
        self.assertGreaterEqual(found["kernd_http_response_bytes_total"].value(), 5)

    def test_counters_never_go_back_under_load(self):
        def work(number):
            if number % 2:
                return self.daemon.post("/v1/run", {"command": ["true"]}).status
            return self.read()

        before = self.read()
        harness.parallel(8, work)
        after = self.read()
        for name, family in before.items():
            if family.type != "gauge":
                for (suffix, labels), value in family.samples.items():
                    self.assertGreaterEqual(after[name].value(suffix, **dict(labels)), value, name)

    def test_kernels_and_boxes(self):
        session = self.session()
        self.assertEqual(session.post("kernels", {"language": "python"}).status, 201)
        found = self.read()
        self.assertEqual(found["kernd_kernels"].value(state="idle"), 1)
        self.assertEqual(found["kernd_boxes"].value(
            engine=harness.ENGINE or "bubblewrap", state="kernel"), 1)

    def test_neither_query_nor_other_methods(self):
        self.assertEqual(self.daemon.get("/metrics?name=x").status, 422)
        self.assertEqual(self.daemon.post("/metrics", {}).status, 405)


class Memory(harness.Case):
    def test_an_idle_server_is_small(self):
        """What only its start needed is given back."""
        if harness.SLOW != 1:
            return  # a sanitizer's own memory
        most = 8 << 10
        census.wait_until(
            lambda: int(census.status_field(self.daemon.pid, "VmRSS").split()[0]) < most,
            harness.seconds(30), f"an idle server below {most} KiB")
        self.assertEqual(self.daemon.run(["echo", "there"])["stdout"], "there\n")


class Log(sessionkit.Case):
    """Each form of the log, read by who knows that form alone."""

    daemon_arguments = ("--log-format", "text", "--log-level", "debug")
    LINE = re.compile(r'(\w+)=("(?:[^"\\]|\\.)*"|[^ "]*)(?: |\Z)')

    def fields(self, line):
        """A line as a dictionary; nothing of it is left over."""
        self.assertEqual(self.LINE.sub("", line), "", line)
        return {name: value.strip('"') for name, value in self.LINE.findall(line)}

    def rows(self):
        return [self.fields(line) for line in self.daemon.log().splitlines()]

    def wait_for_lines(self, ids):
        """The line about an exchange is written behind its answer."""
        census.wait_until(lambda: ids <= {row.get("id") for row in self.rows()}, harness.seconds(10),
                          "the log lines")

    def test_a_line_for_each_request(self):
        self.daemon.get("/v1/sessions/x?y=z", headers={"X-Request-Id": "my-id-1"})
        self.daemon.get("/v1/version", headers={"X-Request-Id": 'bad"\\id'})
        self.wait_for_lines({"my-id-1"})
        for row in self.rows():
            self.assertLessEqual({"time", "level", "event"}, set(row))
        own, = [row for row in self.rows() if row.get("id") == "my-id-1"]
        self.assertEqual((own["event"], own["method"], own["route"], str(own["status"])),
                         ("request", "GET", "/v1/sessions/{id}", "422"))

    def talk(self, hidden):
        """Requests with that word in every place where a caller has his own; their answers."""
        def ask(method, target, body=None, **options):
            return self.daemon.request(method, target, body, **options)

        own = {"env": {"A": hidden}, "stdin": hidden, "files": {hidden: hidden}, "secrets": {"s": hidden}}
        session = f"/v1/sessions/log-{self.log_format}"
        octets = {"media_type": sessionkit.OCTETS}
        yield ask("POST", "/v1/sessions", {"id": session[13:], "env": {"A": hidden},
                                           "labels": {"a": hidden}})
        yield ask("PUT", f"{session}/files/{hidden}", hidden.encode(), **octets)
        yield ask("GET", f"{session}/files/{hidden}")
        yield ask("POST", f"{session}/runCode", {"code": f"print('{hidden}'); 1/0", **own})
        yield ask("POST", f"{session}/kernels", {"language": "python", "id": "k"})
        yield ask("POST", f"{session}/kernels/k/cells", {"code": f"'{hidden}'", "stdin": hidden})
        yield ask("POST", "/v1/run", {"command": ["sh", "-c", f"echo {hidden} >&2; kill -9 $$"], **own})
        yield ask("POST", "/v1/run", {"command": [hidden], "timeoutS": 5})
        yield ask("POST", "/v1/run", {"command": ["true"], hidden: hidden})
        yield ask("POST", "/v1/run", ('{"code": "%s' % hidden).encode())
        yield ask("POST", f"/v1/{hidden}?{hidden}={hidden}", {}, headers={"User-Agent": hidden})
        yield ask("GET", f"/v1/sessions/{hidden}", headers={"Referer": hidden})
        yield ask("POST", "/mcp", {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
            "name": "run_command", "arguments": {"command": f"echo {hidden}"}}})
        for row in self.daemon.get("/v1/sessions").json["items"]:
            yield ask("DELETE", f"/v1/sessions/{row['id']}")

    def test_bytes_of_clients_are_escaped(self):
        """Also in what the library for HTTP has to say about requests that are none."""
        shown = harness.new_mark()
        for start in (f"GET /{shown}\x1b[2J\x07\n\n", f"{shown}\x1b]0;x\x07 / HTTP/1.1\r\n\r\n",
                      f"GET / HTTP/1.1\r\nHost: {shown}\x1b[31m\r\n\r\n",
                      f"GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: {shown}\x9b\r\n\r\n",
                      f"GET /{'x' * 40000} HTTP/1.1\r\n\r\n"):
            with self.daemon.connect(timeout=5) as connection:
                try:
                    connection.send(start.encode("latin-1"))
                    connection.socket.shutdown(socket.SHUT_WR)
                    connection.read_to_close()
                except OSError:
                    pass
        own = "after-" + shown
        self.daemon.get("/v1/version", headers={"X-Request-Id": own})
        self.wait_for_lines({own})  # reads every line
        with open(self.daemon.path("log"), "rb") as file:
            self.assertEqual(re.findall(rb"[\x00-\x09\x0b-\x1f\x7f-\x9f]", file.read()), [])

    @property
    def log_format(self):
        return self.daemon_arguments[1]

    def test_it_tells_of_all_and_nothing_that_is_theirs(self):
        hidden = "content" + harness.new_mark().replace("-", "")
        replies = list(self.talk(hidden))
        self.assertGreater(sum(reply.status < 300 for reply in replies), 8, replies)
        ids = [reply.header("X-Request-Id") for reply in replies]
        self.wait_for_lines(set(ids))
        told = [row for row in self.rows() if row.get("id") in ids and row["event"] == "request"]
        self.assertEqual([(row["id"], str(row["status"])) for row in told],
                         [(one, str(reply.status)) for one, reply in zip(ids, replies)])
        self.assertNotIn(hidden, self.daemon.log())


class JsonLog(Log):
    daemon_arguments = ("--log-format", "json", "--log-level", "debug")

    def fields(self, line):
        return wire.strict_json(line.encode())


if __name__ == "__main__":
    unittest.main()
