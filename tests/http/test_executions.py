# SPDX-License-Identifier: Apache-2.0
"""Executions by id: looking up, waiting, listing, input, signals, cancelling, raw output."""
import hashlib
import json
import threading
import time
import unittest

import census
import check
import harness
import kernelkit
import sessionkit
import streamkit
from streamkit import NDJSON, complete, output

OCTETS = "application/octet-stream"


class Async(streamkit.Case):
    def test_accepted_then_done(self):
        reply = self.daemon.post("/v1/runCode", {"code": "print(6 * 7); 'value'"},
                                 headers={"Prefer": "respond-async"})
        self.assertEqual(reply.status, 202)
        self.assertEqual(reply.header("Preference-Applied"), "respond-async")
        name = reply.header("X-Execution-Id")
        self.assertEqual(reply.header("Location"), f"/v1/executions/{name}")
        self.assertEqual(reply.json["id"], name)
        self.assertIn(reply.json["state"], ("queued", "running", "done"))
        value = self.ended(name)
        check.result(value)
        self.assertEqual((value["stdout"], value["results"][0]["data"]["text/plain"]),
                         ("42\n", "'value'"))
        self.assertEqual(value["queuePosition"], None)
        self.assertEqual(value["codeBytes"], 21)
        self.assertEqual(value["codeSha256"],
                         hashlib.sha256(b"print(6 * 7); 'value'").hexdigest())

    def test_async_with_a_wait(self):
        quick = self.daemon.post("/v1/run", {"command": ["echo", "x"]},
                                 headers={"Prefer": "wait=20, respond-async"})
        self.assertEqual((quick.status, quick.json["stdout"]), (200, "x\n"))
        slow = self.daemon.post("/v1/run", {"command": ["sleep", "30"]},
                                headers={"Prefer": "respond-async, wait=1"})
        self.assertEqual((slow.status, slow.json["state"]), (202, "running"))
        self.cancel(slow.json["id"])

    def test_a_preference_that_the_accept_header_rules_out(self):
        reply = self.daemon.post("/v1/run", {"command": ["true"]},
                                 headers={"Prefer": "respond-async", "Accept": NDJSON})
        self.assertEqual((reply.status, reply.media_type), (200, NDJSON))
        self.assertIsNone(reply.header("Preference-Applied"))
        for prefer in ("return=minimal", "wait=3", "x"):
            reply = self.daemon.post("/v1/run", {"command": ["true"]}, headers={"Prefer": prefer})
            self.assertEqual(reply.status, 200)

    def test_waiting(self):
        name = self.submit(["sleep", "1.5"])
        took, value = streamkit.measure(lambda: self.execution(name, wait=0.2))
        self.assertIn(value["state"], ("queued", "running"))
        self.assertGreaterEqual(took, 0.2)
        took, value = streamkit.measure(lambda: self.execution(name, wait=60))
        self.assertEqual(value["state"], "done")
        self.assertLess(took, harness.seconds(30))
        took, value = streamkit.measure(lambda: self.execution(name, wait=60))
        self.assertLess(took, harness.seconds(5))
        for bad in ("-1", "61", "x", "1e1"):
            reply = self.daemon.get(f"/v1/executions/{name}?waitS={bad}")
            self.assert_problem(reply, 422, "bad_value")

    def test_many_wait_for_one(self):
        name = self.submit(["sleep", "1"])
        values = harness.parallel(40, lambda i: self.execution(name, wait=(30, 0.3)[i % 2]))
        self.assertEqual({value["state"] for value in values[::2]}, {"done"})
        self.assertEqual(self.ended(name)["exitCode"], 0)


class Kept(streamkit.Case):
    def test_a_document_holds_the_start_of_much_output(self):
        code = "import sys\nsys.stdout.write('é' * 1000000)\nsys.stderr.write('e' * 1048577)"
        result = self.run_code(code)
        self.assertEqual(len(result["stdout"]), 1000000)
        self.assertNotIn("cutStreams", result)
        value = self.execution(result["id"])
        self.assertEqual(value["stdout"], "é" * 524288)
        self.assertEqual(value["stderr"], "e" * 1048576)
        self.assertFalse(value["truncated"])
        url = f"/v1/executions/{result['id']}/"
        self.assertEqual(value["cutStreams"], [
            {"stream": "stdout", "bytes": 2000000, "url": url + "stdout"},
            {"stream": "stderr", "bytes": 1048577, "url": url + "stderr"}])
        for cut in value["cutStreams"]:
            self.assertEqual(self.daemon.get(cut["url"]).body.decode(), result[cut["stream"]])

    def test_fetched_files_are_in_the_answer_and_small_ones_in_the_record(self):
        command = ["sh", "-c", "echo hi >small; head -c 2000000 /dev/zero >large"]
        result = self.run_command(command, fetchFiles=["small", "large", "none"])
        self.assertEqual(len(result["fetched"]["large"]["base64"]), 2666668)
        kept = self.execution(result["id"])["fetched"]
        self.assertEqual(kept, {"small": {"base64": "aGkK"}, "large": {"error": "not_kept"},
                                "none": {"error": "not_found"}})
        with self.run_stream(command, fetchFiles=["small", "large"]) as stream:
            last = complete(stream.all())[-1]
        self.assertEqual(len(last["fetched"]["large"]["base64"]), 2666668)

    def test_code_and_environment_are_not_kept(self):
        secret = harness.new_mark()
        self.daemon.secrets.append(secret)
        result = self.run_code(f"x = {secret!r}", env={"TOKEN": secret}, id="forgetful")
        self.assert_success(result)
        text = json.dumps(self.execution("forgetful"))
        text += self.daemon.get("/v1/executions/forgetful/events").body.decode()
        self.assertNotIn(secret, text)


class Lists(streamkit.Case):
    def test_pages_and_filters(self):
        names = [self.run_command(["true"])["id"] for _ in range(7)]
        running = self.submit(["sleep", "30"])
        found, cursor, pages = [], None, 0
        while True:
            target = "/v1/executions?limit=3" + (f"&cursor={cursor}" if cursor else "")
            page = self.daemon.get(target).json
            found += [item["id"] for item in page["items"]]
            pages, cursor = pages + 1, page["nextCursor"]
            if cursor is None:
                break
            # One that comes meanwhile moves nothing.
            self.run_command(["true"])
        self.assertEqual(len(set(found)), len(found))
        self.assertEqual(found[:8], [running, *reversed(names)])
        self.assertGreaterEqual(pages, 3)
        alive = self.daemon.get("/v1/executions?state=running").json["items"]
        self.assertEqual([item["id"] for item in alive], [running])
        self.assertNotIn("stdout", alive[0])
        done = self.daemon.get("/v1/executions?state=done&limit=1000").json["items"]
        self.assertNotIn(running, [item["id"] for item in done])
        self.assertTrue(all(item["state"] == "done" for item in done))
        self.assertEqual(self.daemon.get("/v1/executions?state=queued").json["items"], [])
        self.cancel(running)
        ended = self.ended(running)
        # What a list has no room for is where it says.
        row = next(item for item in self.daemon.get("/v1/executions").json["items"]
                   if item["id"] == running)
        self.assertEqual(row["fault"], {**ended["fault"], "evidence": None,
                                        "message": "GET /v1/executions/{id} has the details"})

    def test_of_a_session(self):
        with sessionkit.Session(self.daemon) as session:
            inside = session.run(["true"])
            self.run_command(["true"])
            items = self.daemon.get(f"/v1/executions?sessionId={session.id}").json["items"]
            self.assertEqual([item["id"] for item in items], [inside["id"]])
            self.assertEqual((items[0]["sessionId"], items[0]["kind"]), (session.id, "run"))
        self.assertEqual(self.daemon.get("/v1/executions?sessionId=none").json["items"], [])

    def test_bad_queries(self):
        for query, status, code in (("limit=0", 422, "bad_value"), ("limit=1001", 422, "bad_value"),
                                    ("state=over", 422, "bad_value"),
                                    ("cursor=nonsense", 400, "bad_cursor"),
                                    ("offset=3", 422, "unknown_field")):
            self.assert_problem(self.daemon.get(f"/v1/executions?{query}"), status, code)

    def test_what_is_not_there(self):
        for name in ("nobody", "exe_00000000000000000000", "x" * 64, "x" * 65, "-x", "a%20b"):
            for method, rest in (("GET", ""), ("DELETE", ""), ("GET", "/events"),
                                 ("GET", "/stdout"), ("POST", "/stdin"), ("POST", "/signal")):
                body = {"signal": "INT"} if rest == "/signal" else None
                reply = self.daemon.request(method, f"/v1/executions/{name}{rest}", body)
                self.assert_problem(reply, 404, "execution_not_found")


class Events(streamkit.Case):
    def test_replay_from_every_seq(self):
        """A thousand events, from each of them on, in both forms."""
        code = "for i in range(1000):\n    display(i)\n    if i % 100 == 0: print(i, flush=True)\n"
        with self.code_stream(code) as stream:
            events = complete(stream.all())
        self.assertGreaterEqual(len(events), 1000)
        name = events[0]["id"]
        with self.daemon.connect() as connection:
            for after in range(-1, len(events), 1 if harness.SLOW == 1 else 13):
                sse = after % 50 == 7 and after < len(events) - 1
                accept = streamkit.SSE if sse else NDJSON
                query = f"?after={after}" if after >= 0 else ""
                reply = connection.exchange("GET", f"/v1/executions/{name}/events{query}",
                                            {**self.daemon.authorization(), "Accept": accept})
                self.assertEqual(reply.status, 200)
                if accept == NDJSON:
                    found = [json.loads(line) for line in reply.body.splitlines()]
                else:
                    found = [streamkit.parse_sse(block) for block in
                             reply.body.split(b"\n\n")[:-1]]
                self.assertEqual(found, events[after + 1:])

    def test_without_following(self):
        name = self.submit(["sh", "-c", "echo a; sleep 30"])
        census.wait_until(lambda: self.daemon.get(f"/v1/executions/{name}/stdout").body,
                          harness.seconds(10), "output")
        with self.within(5), self.events(name, "?follow=false") as stream:
            events = stream.all()
        self.assertEqual([event["type"] for event in events], ["queued", "started", "stdout"])
        with self.events(name, f"?follow=false&after={events[-1]['seq']}") as stream:
            self.assertEqual(stream.all(), [])
        self.cancel(name)
        with self.events(name, "?follow=true") as stream:
            self.assertEqual(complete(stream.all())[-1]["fault"]["type"], "cancelled")

    def test_following_from_behind_what_is_there(self):
        name = self.submit(["sh", "-c", "sleep 1; echo a"])
        with self.events(name, "?after=1") as stream:
            events = stream.all()
        self.assertEqual([event["seq"] for event in complete(events, first=2)][0], 2)
        self.assertEqual(self.events(name, "?after=1000").all(), [])

    def test_bad_queries(self):
        name = self.run_command(["true"])["id"]
        for query in ("after=-1", "after=x", "after=99999999999999999999", "follow=maybe"):
            self.assert_problem(self.daemon.get(f"/v1/executions/{name}/events?{query}"), 422,
                                "bad_value")
        reply = self.daemon.get(f"/v1/executions/{name}/events",
                                headers={"Accept": "application/json"})
        self.assert_problem(reply, 406, "not_acceptable")
        self.assertEqual(self.daemon.request("HEAD", f"/v1/executions/{name}/events").status, 200)


class Raw(streamkit.Case):
    def test_bytes_and_ranges(self):
        data = bytes(range(256)) * 700
        result = self.daemon.result("/v1/run", {"command": ["sh", "-c", "tee /dev/stderr"],
                                                "stdin": harness.b64(data)})
        for stream in ("stdout", "stderr"):
            target = f"/v1/executions/{result['id']}/{stream}"
            reply = self.daemon.get(target)
            self.assertEqual((reply.status, reply.media_type), (200, OCTETS))
            self.assertEqual(reply.header("Content-Length"), str(len(data)))
            self.assertEqual(reply.body, data)
            head = self.daemon.request("HEAD", target)
            self.assertEqual(head.header("Content-Length"), str(len(data)))
            for text, start, end in (("0-0", 0, 1), ("5-99999", 5, 100000), ("179000-", 179000, None),
                                     ("-3", -3, None), ("100-9999999", 100, None)):
                part = self.daemon.get(target, headers={"Range": f"bytes={text}"})
                self.assertEqual((part.status, part.body), (206, data[start:end]))
                self.assertRegex(part.header("Content-Range"), rf"^bytes \d+-\d+/{len(data)}$")
            reply = self.daemon.get(target, headers={"Range": f"bytes={len(data)}-"})
            self.assert_problem(reply, 416, "range_not_satisfiable")
            self.assertEqual(reply.header("Content-Range"), f"bytes */{len(data)}")

    def test_nothing_written(self):
        target = f"/v1/executions/{self.run_command(['true'])['id']}/stderr"
        reply = self.daemon.get(target)
        self.assertEqual((reply.status, reply.body), (200, b""))
        self.assert_problem(self.daemon.get(target, headers={"Range": "bytes=0-"}), 416,
                            "range_not_satisfiable")

    def test_of_a_running_one(self):
        name = self.submit(["sh", "-c", "echo so far; sleep 30"])
        census.wait_until(lambda: self.daemon.get(f"/v1/executions/{name}/stdout").body
                          == b"so far\n", harness.seconds(10), "output")
        self.cancel(name)


class Input(streamkit.Case):
    def put(self, name, data, query=""):
        return self.daemon.post(f"/v1/executions/{name}/stdin{query}", data, media_type=OCTETS)

    def test_a_conversation(self):
        with self.run_stream(["sh", "-c", "while read line; do echo \"<$line>\"; done; echo bye"],
                             interactive=True, id="talk") as stream:
            stream.until("started")
            for word in ("one", "two", "three"):
                self.assertEqual(self.put("talk", word.encode() + b"\n").status, 204)
                self.assertEqual(output(stream.until("stdout")), f"<{word}>\n")
            self.assertEqual(self.put("talk", b"last\n", "?eof=true").status, 204)
            rest = stream.all()
        self.assertEqual(output(rest), "<last>\nbye\n")
        self.assert_problem(self.put("talk", b"x"), 409, "execution_done")

    def test_what_was_given_at_the_start_comes_first(self):
        name = self.submit(["cat"], interactive=True, stdin="a")
        self.assertEqual(self.put(name, b"b").status, 204)
        self.assertEqual(self.put(name, None, "?eof=true").status, 204)
        self.assertEqual(self.ended(name)["stdout"], "ab")
        self.assert_problem(self.put(name, b""), 409, "execution_done")

    def test_behind_the_end_of_input(self):
        name = self.submit(["sh", "-c", "cat; sleep 30"], interactive=True)
        self.assertEqual(self.put(name, b"", "?eof=true").status, 204)
        self.assert_problem(self.put(name, b"x"), 409, "conflict")
        self.cancel(name)

    def test_before_its_start(self):
        """Who chose the id may write as soon as the execution is known: that is never its end."""
        def talk(number):
            name = f"early-{number}"
            asking = threading.Thread(target=self.submit, args=(["cat"],),
                                      kwargs={"interactive": True, "id": name})
            asking.start()
            while (reply := self.put(name, b"x", "?eof=true")).status == 404:
                pass
            asking.join()
            return reply.status, self.ended(name)["stdout"]
        for one in harness.parallel(4, lambda i: [talk(f"{i}-{k}") for k in range(10)]):
            self.assertEqual(one, [(204, "x")] * 10)

    def test_one_that_takes_none(self):
        name = self.submit(["sleep", "30"])
        self.assert_problem(self.put(name, b"x"), 409, "conflict")
        self.cancel(name)

    def test_too_much_at_once(self):
        name = self.submit(["sleep", "30"], interactive=True)
        self.assert_problem(self.put(name, b"x" * ((1 << 20) + 1)), 413, "body_too_large")

        def full():
            reply = self.put(name, b"x" * 500000)
            return reply if reply.status != 204 else None
        reply = census.wait_until(full, harness.seconds(10), "a full pipe")
        self.assert_problem(reply, 429, "too_many_requests")
        self.cancel(name)
        self.assertEqual(self.ended(name)["fault"]["type"], "cancelled")

    def test_large_input_in_pieces(self):
        data = bytes(range(256)) * 8192
        name = self.submit(["sh", "-c", "sha256sum"], interactive=True)
        at = 0
        while at < len(data):
            reply = self.put(name, data[at:at + 300000])
            self.assertIn(reply.status, (204, 429))
            at += 300000 if reply.status == 204 else 0
        self.assertEqual(self.put(name, None, "?eof=1").status, 204)
        self.assertEqual(self.ended(name)["stdout"].split()[0], hashlib.sha256(data).hexdigest())

    def test_an_interactive_cell(self):
        name = "asking"
        with self.code_stream("name = input('who? ')\nprint('hello', name)", interactive=True,
                              id=name) as stream:
            self.assertEqual(output(stream.until("stdout")), "who? ")
            self.assertEqual(self.put(name, b"bob\n").status, 204)
            self.assertEqual(output(complete([{"type": "queued", "seq": 0}] and stream.all(), 3)),
                             "hello bob\n")

    def test_the_deadline_holds_with_open_input(self):
        with self.within(10):
            result = self.daemon.result("/v1/run", {"command": ["cat"], "interactive": True,
                                                    "timeoutS": 1})
        self.assert_fault(result, "timeout")


class Signals(streamkit.Case):
    def signal(self, name, text):
        return self.daemon.post(f"/v1/executions/{name}/signal", {"signal": text})

    def test_a_handler_in_the_program(self):
        code = "import os, signal, sys, time\n" \
               "signal.signal(signal.SIGUSR1, lambda *_: os.write(1, b'usr1\\n'))\n" \
               "signal.signal(signal.SIGTERM, lambda *_: sys.exit(7))\n" \
               "os.write(1, b'ready\\n')\nwhile True: time.sleep(0.1)\n"
        with self.code_stream(code, id="handler") as stream:
            stream.until("stdout")
            self.assertEqual(self.signal("handler", "USR1").status, 204)
            self.assertEqual(output(stream.until("stdout")), "usr1\n")
            self.assertEqual(self.signal("handler", "SIGTERM").status, 204)
            last = stream.all()[-1]
        self.assertEqual((last["exitCode"], last["fault"]), (7, None))
        self.assert_problem(self.signal("handler", "TERM"), 409, "execution_done")

    def test_a_keyboard_interrupt(self):
        with self.code_stream("print('go', flush=True)\nwhile True: pass", id="loop") as stream:
            stream.until("stdout")
            self.assertEqual(self.signal("loop", "INT").status, 204)
            events = stream.all()
        self.assertIn("KeyboardInterrupt", output(events, "stderr"))
        self.assertIsNone(events[-1]["fault"])

    def test_killed_by_its_caller_is_its_own_end(self):
        name = self.submit(["sleep", "30"])
        census.wait_until(lambda: self.signal(name, "KILL").status == 204, harness.seconds(10), "")
        value = self.ended(name)
        self.assertEqual((value["exitCode"], value["signal"], value["fault"]), (137, "KILL", None))

    def test_bad_signals(self):
        name = self.submit(["sleep", "30"])
        for text in ("", "SIG", "FOO", "int", "9", "RTMIN", "INT\0"):
            self.assert_problem(self.signal(name, text), 422, "bad_value", "/signal")
        self.assert_problem(self.daemon.post(f"/v1/executions/{name}/signal", {}), 422, "bad_value")
        self.assert_problem(self.daemon.post(f"/v1/executions/{name}/signal",
                                             {"signal": "INT", "pid": 1}), 422, "unknown_field")
        self.cancel(name)


class Cancelled(streamkit.Case):
    def test_cancel_is_repeatable(self):
        mark = harness.new_mark()
        name = self.submit(["sh", "-c", "echo before; sleep 60", mark])
        census.wait_until(lambda: census.with_argument(mark), harness.seconds(10), "the start")
        with self.within(5):
            for _ in range(3):
                self.cancel(name)
            value = self.ended(name)
        self.assertEqual(value["fault"]["type"], "cancelled")
        self.assertIn(value["stdout"], ("before\n", ""))
        self.assertFalse(value["success"])
        census.wait_gone(lambda: census.with_argument(mark), harness.seconds(3), "the box")
        self.cancel(name)
        self.assertEqual(self.execution(name), value)

    def test_the_one_who_waits_is_told(self):
        found = []
        thread = threading.Thread(target=lambda: found.append(
            self.daemon.post("/v1/run", {"command": ["sleep", "60"], "id": "waited-for"})))
        thread.start()
        census.wait_until(lambda: self.daemon.get("/v1/executions/waited-for").status == 200,
                          harness.seconds(10), "the execution")
        self.cancel("waited-for")
        thread.join()
        self.assertEqual((found[0].status, found[0].json["fault"]["type"]), (200, "cancelled"))


class Named(streamkit.Case):
    def test_the_same_request_follows(self):
        body = {"command": ["sh", "-c", "sleep 1; date +%N"], "id": "twin"}
        answers = harness.parallel(3, lambda i: self.daemon.post(
            "/v1/run", body, headers={"Accept": NDJSON if i == 2 else "application/json"}))
        later = self.daemon.post("/v1/run", body)
        self.assertEqual([answer.status for answer in answers], [200] * 3)
        self.assertEqual(later.json, answers[0].json)
        streamed = [json.loads(line) for line in answers[2].body.splitlines()]
        outputs = {answers[0].json["stdout"], answers[1].json["stdout"], later.json["stdout"],
                   output(complete(streamed))}
        self.assertEqual(len(outputs), 1)
        again = self.daemon.post("/v1/run", body, headers={"Accept": NDJSON})
        self.assertEqual([json.loads(line) for line in again.body.splitlines()], streamed)
        again = self.daemon.post("/v1/run", body, headers={"Prefer": "respond-async"})
        self.assertEqual((again.status, again.json["state"]), (202, "done"))

    def test_another_request_is_refused(self):
        self.run_command(["true"], id="taken")
        for target, body in (("/v1/run", {"command": ["false"], "id": "taken"}),
                             ("/v1/runCode", {"code": "1", "id": "taken"}),
                             ("/v1/run", {"command": ["true"], "id": "taken", "timeoutS": 9})):
            self.assert_problem(self.daemon.post(target, body), 409, "execution_exists")

    def test_ids(self):
        for name in ("a", "Z9._-x", "x" * 64):
            self.assertEqual(self.run_command(["true"], id=name)["id"], name)
        for name in ("", ".a", "-a", "a/b", "a b", "é", "x" * 65, 5, "a\0"):
            reply = self.daemon.post("/v1/run", {"command": ["true"], "id": name})
            self.assert_problem(reply, 422, "bad_value", "/id")


class Failed(streamkit.Case):
    daemon_arguments = ("--workers", "1")

    def test_what_the_server_could_not_do(self):
        busy = self.submit(["sleep", "30"])
        name = self.submit(["true"], queueTimeoutS=0.1)
        value = check.result(self.ended(name))
        self.assertEqual((value["error"]["code"], value["error"]["status"]),
                         ("queue_timeout", 503))
        self.assertEqual((value["success"], value["exitCode"], value["fault"]["type"]),
                         (False, None, "startup_failed"))
        last = complete(self.events(name).all())[-1]
        self.assertEqual((last["type"], last["code"]), ("error", "queue_timeout"))
        self.cancel(busy)


class OfSession(sessionkit.Case, streamkit.Case):
    """What a session tells of the executions in it."""

    def told(self, session):
        return [(row["id"], row["kind"], row["state"], row["startedAt"] is not None)
                for row in session.get()["executions"]]

    def test_runs_and_cells_that_have_not_ended(self):
        session = self.session()
        kernel = kernelkit.Kernel(self.daemon, session.id)
        self.assertEqual(session.get()["executions"], [])
        reply = session.post("run", {"command": ["sleep", "60"], "detach": True, "id": "server"})
        self.assertEqual(reply.status, 202, reply)
        for name in ("cell-1", "cell-2"):
            reply = self.daemon.post(f"{kernel.path}/cells", {"code": "import time; time.sleep(60)", "id": name},
                                     headers={"Prefer": "respond-async"})
            self.assertEqual(reply.status, 202, reply)
        expected = [("server", "run", "running", True), ("cell-1", "cell", "running", True),
                    ("cell-2", "cell", "queued", False)]
        census.wait_until(lambda: self.told(session) == expected, harness.seconds(10),
                          "two that run")
        row = session.get()["executions"][0]
        self.assertEqual(self.execution("server")["startedAt"], row["startedAt"])
        page = self.daemon.get("/v1/sessions").json["items"]
        self.assertEqual([len(item["executions"]) for item in page if item["id"] == session.id],
                         [3])
        for name in ("cell-2", "cell-1", "server"):
            self.cancel(name)
            self.ended(name)
        self.assertEqual(self.told(session), [])


class Detached(sessionkit.Case, streamkit.Case):
    def test_it_needs_a_session(self):
        reply = self.daemon.post("/v1/run", {"command": ["true"], "detach": True})
        self.assert_problem(reply, 422, "bad_value", "/detach")

    def test_a_background_server_of_a_session(self):
        session = self.session()
        session.put("page", b"hello")
        reply = session.post("run", {"command": ["python3", "-u", "-m", "http.server", "-b",
                                                 "127.0.0.1", "8123"],
                                     "detach": True, "timeoutS": 1})
        self.assertEqual(reply.status, 202)
        name = reply.json["id"]
        # It outlives the client, its timeoutS, and other calls.
        time.sleep(1.5)
        self.assertEqual(self.execution(name)["state"], "running")
        self.assert_success(session.run(["cat", "page"]), "hello")
        self.assertEqual(session.get()["runningExecutions"], 1)
        with self.events(name) as stream:
            stream.until("started")
        self.daemon.post(f"/v1/executions/{name}/signal", {"signal": "INT"})
        self.assertEqual(self.ended(name)["state"], "done")

    def test_there_is_a_limit(self):
        session = self.session()
        for _ in range(16):  # those of the test before may still be taken down
            census.wait_until(
                lambda: session.post("run", {"command": ["sleep", "600"],
                                             "detach": True}).status == 202,
                harness.seconds(15), "room for another background program")
        reply = session.post("run", {"command": ["sleep", "600"], "detach": True})
        self.assert_problem(reply, 429, "too_many_requests")
        self.assert_success(session.run(["true"]))

    def test_it_ends_with_its_session(self):
        mark = harness.new_mark()
        session = sessionkit.Session(self.daemon)
        self.addCleanup(session.delete)
        names = [session.post("run", {"command": ["sh", "-c", "echo up; sleep 600", mark],
                                      "detach": True}).json["id"] for _ in range(3)]
        census.wait_until(lambda: len(census.with_argument(mark)) >= 3, harness.seconds(15), "")
        session.delete()
        for name in names:
            self.assertEqual(self.ended(name)["fault"]["type"], "cancelled")
        census.wait_gone(lambda: census.with_argument(mark), harness.seconds(5), "boxes")

    def test_followed_from_its_start(self):
        session = self.session()
        with self.stream("POST", f"{session.path}/run",
                         {"command": ["sh", "-c", "echo up; sleep 600"], "detach": True}) as stream:
            stream.until("stdout")
            name = stream.header("X-Execution-Id")
        self.assertEqual(self.execution(name)["state"], "running")
        self.cancel(name)
        self.ended(name)


class InSessions(sessionkit.Case, streamkit.Case):
    def test_the_same_forms(self):
        session = self.session()
        for what, body in (("run", {"command": ["echo", "x"]}), ("runCode", {"code": "print('x')"})):
            with self.stream("POST", f"{session.path}/{what}", body) as stream:
                events = complete(stream.all())
            self.assertEqual(output(events), "x\n")
            self.assertEqual(events[-1]["sessionId"], session.id)
            reply = session.post(what, body, headers={"Prefer": "respond-async"})
            self.assertEqual(reply.status, 202)
            value = self.ended(reply.json["id"])
            self.assertEqual((value["stdout"], value["sessionId"]), ("x\n", session.id))

    def test_a_setup_has_the_forms_too(self):
        session = self.session()
        body = {"command": "echo out; echo x >made"}
        for accept in (NDJSON, streamkit.SSE):
            with self.stream("POST", f"{session.path}/setup", body, accept=accept) as stream:
                events = complete(stream.all())
            self.assertEqual(output(events), "out\n")
            self.assertEqual((events[-1]["kind"], events[-1]["sessionId"]), ("setup", session.id))
        reply = session.post("setup", body, headers={"Prefer": "respond-async"})
        self.assertEqual((reply.status, reply.json["kind"]), (202, "setup"))
        self.assertEqual(self.ended(reply.json["id"])["stdout"], "out\n")
        self.assertEqual(session.content("made"), b"x\n")

    def test_a_session_that_is_made_tells_its_setup(self):
        with self.stream("POST", "/v1/sessions", {"setup": "echo making"}) as stream:
            events = complete(stream.all())
        self.assertEqual(output(events), "making\n")
        path = f"/v1/sessions/{events[-1]['sessionId']}"
        self.assertEqual(self.daemon.get(path).json["state"], "ready")
        self.daemon.request("DELETE", path)
        with self.stream("POST", "/v1/sessions", {"setup": "echo no; exit 3"}) as stream:
            events = complete(stream.all())
        self.assertEqual((output(events), events[-1]["exitCode"]), ("no\n", 3))
        self.assertEqual(self.daemon.get(f"/v1/sessions/{events[-1]['sessionId']}").status, 404)
        reply = self.daemon.post("/v1/sessions", {}, headers={"Accept": NDJSON})
        self.assert_problem(reply, 406, "not_acceptable")

    def test_a_client_that_leaves(self):
        session = self.session()
        mark = harness.new_mark()
        stream = self.stream("POST", f"{session.path}/run",
                             {"command": ["sh", "-c", "sleep 8; touch late", mark]})
        census.wait_until(lambda: census.with_argument(mark), harness.seconds(10), "the start")
        stream.reset()
        census.wait_gone(lambda: census.with_argument(mark), harness.seconds(3), "the box")
        self.assertEqual(session.names(), [])
        self.assert_success(session.run(["true"]))


if __name__ == "__main__":
    unittest.main()
