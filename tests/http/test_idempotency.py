# SPDX-License-Identifier: Apache-2.0
"""Idempotency-Key: whatever happens, a request is done once."""
import json
import unittest

import census
import harness
import sessionkit
import speckit
import streamkit
from streamkit import NDJSON, SSE, complete, output

NOW = ["sh", "-c", "cat /proc/sys/kernel/random/uuid"]


def key(text):
    return {"Idempotency-Key": text}


class Keys(sessionkit.Case, streamkit.Case):
    def test_the_stored_answer(self):
        first = self.daemon.post("/v1/run", {"command": NOW}, headers=key("one"))
        self.assertIsNone(first.header("Idempotency-Replayed"))
        again = self.daemon.post("/v1/run", {"command": NOW}, headers=key("one"))
        quoted = self.daemon.post("/v1/run", {"command": NOW}, headers=key('"one"'))
        for reply in (again, quoted):
            self.assertEqual((reply.status, reply.header("Idempotency-Replayed")), (200, "true"))
            self.assertEqual(reply.json, first.json)
            self.assertEqual(reply.header("X-Execution-Id"), first.json["id"])
        other = self.daemon.post("/v1/run", {"command": NOW}, headers=key("two"))
        self.assertNotEqual(other.json["stdout"], first.json["stdout"])

    def test_in_every_form(self):
        first = self.daemon.post("/v1/run", {"command": NOW}, headers=key("forms"))
        text = first.json["stdout"]
        for accept in (NDJSON, SSE):
            with self.run_stream(NOW, accept=accept, headers=key("forms")) as stream:
                self.assertEqual(stream.header("Idempotency-Replayed"), "true")
                self.assertEqual(output(complete(stream.all())), text)
        reply = self.daemon.post("/v1/run", {"command": NOW},
                                 headers={**key("forms"), "Prefer": "respond-async"})
        self.assertEqual((reply.status, reply.json["stdout"]), (202, text))
        with self.run_stream(NOW, headers=key("streamed")) as stream:
            text = output(complete(stream.all()))
        again = self.daemon.post("/v1/run", {"command": NOW}, headers=key("streamed"))
        self.assertEqual(again.json["stdout"], text)

    def test_another_request(self):
        self.daemon.post("/v1/run", {"command": ["true"]}, headers=key("mine"))
        for target, body in (("/v1/run", {"command": ["false"]}),
                             ("/v1/run", {"command": ["true"], "timeoutS": 5}),
                             ("/v1/runCode", {"code": "1"})):
            reply = self.daemon.post(target, body, headers=key("mine"))
            self.assert_problem(reply, 422, "idempotency_mismatch")

    def test_while_the_first_is_under_way(self):
        mark = harness.new_mark()
        body = {"command": ["sh", "-c", "sleep 1.5; echo once", mark]}
        with self.stream("POST", "/v1/run", body, headers=key("slow")) as stream:
            stream.until("started")
            for headers in ({}, {"Accept": NDJSON}, {"Prefer": "respond-async"}):
                reply = self.daemon.post("/v1/run", body, headers={**key("slow"), **headers})
                self.assert_problem(reply, 409, "idempotency_in_flight")
                self.assertEqual(reply.header("Location"),
                                 "/v1/executions/" + stream.header("X-Execution-Id"))
                self.assertGreaterEqual(int(reply.header("Retry-After")), 1)
            complete(stream.all(), first=2)
        reply = self.daemon.post("/v1/run", body, headers=key("slow"))
        self.assertEqual((reply.status, reply.json["stdout"]), (200, "once\n"))

    def test_many_at_once_run_once(self):
        def call(_):
            return self.daemon.post("/v1/run", {"command": NOW}, headers=key("crowd"))

        answers = harness.parallel(24, call)
        self.assertLessEqual({reply.status for reply in answers}, {200, 409})
        outputs = {reply.json["stdout"] for reply in answers if reply.status == 200}
        outputs.add(call(0).json["stdout"])
        self.assertEqual(len(outputs), 1)

    def test_what_was_refused_may_be_tried_again(self):
        bad = self.daemon.post("/v1/run", {"command": []}, headers=key("again"))
        self.assert_problem(bad, 422, "bad_value")
        good = self.daemon.post("/v1/run", {"command": ["true"]}, headers=key("again"))
        self.assertEqual(good.status, 200)
        self.assertIsNone(good.header("Idempotency-Replayed"))

    def test_a_program_that_fails_is_an_answer(self):
        body = {"command": ["sh", "-c", "cat /proc/sys/kernel/random/uuid; exit 3"]}
        first = self.daemon.post("/v1/run", body, headers=key("failing"))
        again = self.daemon.post("/v1/run", body, headers=key("failing"))
        self.assertEqual((again.json["exitCode"], again.json["stdout"]),
                         (3, first.json["stdout"]))

    def test_bad_keys(self):
        for text in ("", '""', "x" * 256, "a\tb", "caf\xe9"):
            reply = self.daemon.post("/v1/run", {"command": ["true"]}, headers=key(text))
            self.assert_problem(reply, 400, "bad_header")
        self.assertEqual(self.daemon.post("/v1/run", {"command": ["true"]},
                                          headers=key("x" * 255)).status, 200)

    def test_reading_needs_none(self):
        for _ in range(2):
            reply = self.daemon.get("/v1/version", headers=key("read"))
            self.assertEqual(reply.status, 200)
            self.assertIsNone(reply.header("Idempotency-Replayed"))

    def test_from_another_process_over_the_socket(self):
        """The user's programs share their keys: a repetition may come from a new process."""
        first = self.daemon.post("/v1/run", {"command": NOW}, headers=key("shared"))
        again = self.daemon.post("/v1/run", {"command": NOW}, headers=key("shared"), via="unix")
        self.assertEqual(again.json["stdout"], first.json["stdout"])

    def test_a_session_is_made_once(self):
        made = [self.daemon.post("/v1/sessions", {"labels": {"a": "b"}}, headers=key("session"))
                for _ in range(3)]
        self.assertEqual([reply.status for reply in made], [201] * 3)
        self.assertEqual(len({reply.json["id"] for reply in made}), 1)
        self.assertEqual([reply.header("Idempotency-Replayed") for reply in made],
                         [None, "true", "true"])
        self.assertEqual(made[1].header("Location"), made[0].header("Location"))
        self.assertEqual(made[1].body, made[0].body)
        self.assertEqual(len(self.daemon.get("/v1/sessions").json["items"]), 1)
        path = made[0].header("Location")
        forks = [self.daemon.post(f"{path}/fork", {}, headers=key("fork")) for _ in range(2)]
        self.assertEqual(forks[0].json["id"], forks[1].json["id"])
        code = {"command": ["sh", "-c", "echo x >>log; cat log"]}
        runs = [self.daemon.post(f"{path}/run", code, headers=key("append")) for _ in range(3)]
        self.assertEqual({reply.json["stdout"] for reply in runs}, {"x\n"})
        for name in (made[0].json["id"], forks[0].json["id"]):
            self.daemon.request("DELETE", f"/v1/sessions/{name}")


class Unrun(streamkit.Case):
    daemon_arguments = ("--workers", "1", "--queue", "1")

    def test_what_never_ran_may_be_tried_again(self):
        busy = self.submit(["sleep", "60"])
        body = {"command": ["echo", "ran"], "queueTimeoutS": 0.2}
        late = self.daemon.post("/v1/run", body, headers=key("late"))
        self.assert_problem(late, 503, "queue_timeout")
        waiting = self.submit(["true"])
        full = self.daemon.post("/v1/run", {"command": ["echo", "full"]}, headers=key("full"))
        self.assert_problem(full, 503, "queue_full")
        self.cancel(busy)
        self.ended(waiting)
        for name, body, wanted in (("late", body, "ran\n"),
                                   ("full", {"command": ["echo", "full"]}, "full\n")):
            reply = self.daemon.post("/v1/run", body, headers=key(name))
            self.assertEqual((reply.status, reply.json["stdout"]), (200, wanted))
            self.assertIsNone(reply.header("Idempotency-Replayed"))


class Restarted(streamkit.Case):
    def test_answers_outlive_the_server(self):
        first = self.daemon.post("/v1/run", {"command": NOW}, headers=key("kept"))
        session = self.daemon.post("/v1/sessions", {}, headers=key("session"))
        census.wait_until(lambda: self.daemon.get("/v1/stats").json["queued"] == 0,
                          harness.seconds(5), "")
        self.daemon.finish()
        with open(self.daemon.path("out"), "w", encoding="ascii"):
            pass
        self.daemon.start()
        again = self.daemon.post("/v1/run", {"command": NOW}, headers=key("kept"))
        self.assertEqual((again.json["stdout"], again.header("Idempotency-Replayed")),
                         (first.json["stdout"], "true"))
        same = self.daemon.post("/v1/sessions", {}, headers=key("session"))
        self.assertEqual(same.json["id"], session.json["id"])
        reply = self.daemon.post("/v1/run", {"command": ["true"]}, headers=key("kept"))
        self.assert_problem(reply, 422, "idempotency_mismatch")
        self.daemon.request("DELETE", session.header("Location"))

    def test_a_killed_server_never_runs_it_a_second_time(self):
        mark = harness.new_mark()
        body = {"command": ["sh", "-c", "echo begun; sleep 60", mark]}
        with self.stream("POST", "/v1/run", body, headers=key("killed")) as stream:
            stream.until("stdout")
            self.restart()
        census.wait_gone(lambda: census.with_argument(mark), harness.seconds(5), "the box")
        reply = self.daemon.post("/v1/run", body, headers=key("killed"))
        self.assertEqual((reply.status, reply.header("Idempotency-Replayed")), (200, "true"))
        self.assertEqual(reply.json["fault"]["type"], "lost")
        # As far as it goes it is a result like any other.
        spec = speckit.Spec(self.daemon.get("/openapi.json").json)
        for schema in ("Result", "Execution"):
            schema = spec.document["components"]["schemas"][schema]
            self.assertEqual(list(spec.faults(schema, reply.json)), [])
        self.assertEqual((reply.json["stdout"], reply.json["truncated"], reply.json["success"]),
                         ("", True, False))
        with self.stream("POST", "/v1/run", body,
                         headers={**key("killed"), "Accept": NDJSON}) as stream:
            events = stream.all()
        # What it said in its first moments may be lost with it; the end is told in any case.
        self.assertIn(output(events), ("begun\n", ""))
        self.assertEqual((events[-1]["type"], events[-1]["code"]), ("error", "lost"))
        self.assertEqual(census.with_argument(mark), [])
        self.assertEqual(self.daemon.get("/v1/executions?state=running").json["items"], [])

    def test_killed_at_any_moment(self):
        """Whenever it is killed: a repetition runs nothing that has run before."""
        for number in range(6):
            mark = f"moment-{number}-{harness.new_mark()}"
            body = {"command": ["sh", "-c", "sleep 0.4; cat /proc/sys/kernel/random/uuid", mark]}
            connection = self.daemon.connect()
            connection.request("POST", "/v1/run", {
                **self.daemon.authorization(), **key(mark), "Content-Type": "application/json"},
                harness.as_json(body))
            if number:
                census.wait_until(lambda: census.with_argument(mark), harness.seconds(10), "start")
            self.restart()
            connection.close()
            census.wait_gone(lambda: census.with_argument(mark), harness.seconds(5), "the box")
            answers = [self.daemon.post("/v1/run", body, headers=key(mark)) for _ in range(2)]
            for reply in answers:
                self.assertIn(reply.status, (200, 500))
                if reply.status == 500:
                    self.assertEqual(reply.json["code"], "lost")
            if number and answers[0].status == 200:
                self.assertEqual(answers[0].header("Idempotency-Replayed"), "true")
            self.assertEqual(answers[0].json.get("stdout"), answers[1].json.get("stdout"))


class Batch(streamkit.Case):
    def lines(self, items, headers=None, **options):
        reply = self.daemon.post("/v1/batch", {"items": items, **options},
                                 headers={"Accept": NDJSON, **(headers or {})})
        self.assertEqual((reply.status, reply.media_type), (200, NDJSON))
        return [json.loads(line) for line in reply.body.splitlines()]

    def test_each_item_is_done_once(self):
        items = [{"command": NOW}, {"code": "import uuid; print(uuid.uuid4())"}, {"command": []}]
        first, again = (sorted(self.lines(items, key("batch")), key=lambda line: line["index"])
                        for _ in range(2))
        self.assertEqual([line["status"] for line in first], [200, 200, 422])
        for one, other in zip(first[:2], again[:2]):
            self.assertEqual(one, other)
        reply = self.daemon.post("/v1/batch", {"items": items[:1]}, headers=key("batch"))
        self.assert_problem(reply, 422, "idempotency_mismatch")

    def test_what_a_killed_server_had_not_begun_is_done(self):
        marks = [harness.new_mark() for _ in range(3)]
        items = [{"command": ["sh", "-c", "sleep 2; echo $0", mark]} for mark in marks]
        connection = self.daemon.connect()
        connection.request("POST", "/v1/batch", {
            **self.daemon.authorization(), **key("interrupted"), "Content-Type": "application/json"},
            harness.as_json({"items": items, "concurrency": 1}))
        census.wait_until(lambda: census.with_argument(marks[0]), harness.seconds(10), "start")
        self.restart()
        connection.close()
        lines = sorted(self.lines(items, key("interrupted"), concurrency=1),
                       key=lambda line: line["index"])
        self.assertEqual((lines[0]["result"]["fault"] or {}).get("type"), "lost")
        self.assertEqual([line["result"]["stdout"] for line in lines[1:]],
                         [mark + "\n" for mark in marks[1:]])


if __name__ == "__main__":
    unittest.main()
