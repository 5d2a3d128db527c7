# SPDX-License-Identifier: Apache-2.0
"""Answers that come as events: forms, order, characters, silence."""
import re
import time
import unittest

import census
import harness
import streamkit
from streamkit import NDJSON, SSE, complete, output


class Forms(streamkit.Case):
    def test_which_form_an_accept_header_gets(self):
        json = "application/json"
        rows = {None: json, "*/*": json, "application/*": json, json: json, NDJSON: NDJSON,
                SSE: SSE, "text/*": SSE, f"{json};q=0.5, {NDJSON}": NDJSON,
                f"{NDJSON};q=0.2, {SSE};q=0.3": SSE, f"{json}, {SSE}": json,
                f"{json};q=0, */*;q=0.1": NDJSON, f"{SSE}, */*;q=0.1": SSE,
                f"{NDJSON.upper()}": NDJSON, f"text/html, {NDJSON};q=0.001": NDJSON,
                "nonsense": json}
        for accept, wanted in rows.items():
            with self.subTest(accept=accept):
                headers = {"Accept": accept} if accept else {}
                reply = self.daemon.post("/v1/run", {"command": ["true"]}, headers=headers)
                self.assertEqual((reply.status, reply.media_type), (200, wanted))
        for accept in ("text/html", f"{json};q=0", "application/xml, image/*"):
            reply = self.daemon.post("/v1/run", {"command": ["true"]}, headers={"Accept": accept})
            self.assert_problem(reply, 406, "not_acceptable")

    def test_the_events_of_a_cell(self):
        code = "print('out')\nimport sys\nprint('err', file=sys.stderr)\n" \
               "open('made', 'w').write('12')\n{'a': 1}"
        for accept in (NDJSON, SSE):
            with self.subTest(accept=accept), self.code_stream(code, accept) as stream:
                self.assertEqual(stream.status, 200)
                self.assertEqual(stream.header("Content-Type"), accept)
                events = complete(stream.all())
                kinds = [event["type"] for event in events]
                self.assertEqual(sorted(kinds), sorted(["queued", "started", "stdout", "stderr",
                                                        "result", "file", "exit"]))
                self.assertEqual((output(events), output(events, "stderr")), ("out\n", "err\n"))
                by_kind = {event["type"]: event for event in events}
                name = stream.header("X-Execution-Id")
                self.assertEqual(by_kind["queued"]["id"], name)
                self.assertEqual(by_kind["result"]["data"], {"text/plain": "{'a': 1}"})
                self.assertTrue(by_kind["result"]["isMain"])
                self.assertEqual([by_kind["file"][key] for key in ("path", "size", "change")],
                                 ["made", 2, "created"])
                last = by_kind["exit"]
                self.assertEqual((last["id"], last["exitCode"], last["fault"]), (name, 0, None))
                self.assertFalse({"stdout", "stderr", "results", "files"} & set(last))
                times = [event["time"] for event in events]
                self.assertEqual(times, sorted(times))

    def test_the_last_event_and_the_document_are_the_result(self):
        with self.run_stream(["sh", "-c", "echo x; echo y >&2; kill -9 $$"],
                             fetchFiles=["nothing"]) as stream:
            events = complete(stream.all())
        document = self.execution(events[-1]["id"])
        for key, value in events[-1].items():
            if key not in ("type", "seq", "time"):
                self.assertEqual(document[key], value, key)
        self.assertEqual((document["stdout"], document["stderr"]), ("x\n", "y\n"))
        self.assertEqual((document["exitCode"], document["signal"]), (137, "KILL"))
        self.assertEqual(document["fetched"], {"nothing": {"error": "not_found"}})

    def test_a_deadline_ends_a_stream_with_exit(self):
        with self.run_stream(["sh", "-c", "echo kept; sleep 60"], timeoutS=1) as stream:
            events = complete(stream.all())
        self.assertEqual(events[-1]["type"], "exit")
        self.assertEqual(events[-1]["fault"]["type"], "timeout")
        self.assertEqual(output(events), "kept\n")

    def test_refusals_are_no_streams(self):
        for body, status, code in (({"command": []}, 422, "bad_value"),
                                   ({"command": ["true"], "timeoutS": 1e9}, 422,
                                    "limit_exceeds_maximum"),
                                   ({"command": ["true"], "onDisconnect": "stay"}, 422,
                                    "bad_value")):
            reply = self.daemon.post("/v1/run", body, headers={"Accept": SSE})
            self.assert_problem(reply, status, code)

    def test_http_1_0_reads_to_the_close(self):
        body = harness.as_json({"command": ["sh", "-c", "echo a; sleep 0.1; echo b"]})
        for accept in (NDJSON, SSE):
            with self.daemon.connect() as connection:
                lines = ["POST /v1/run HTTP/1.0", f"Host: {connection.host}", f"Accept: {accept}",
                         f"Authorization: Bearer {self.daemon.token}",
                         "Content-Type: application/json", f"Content-Length: {len(body)}", "", ""]
                connection.send("\r\n".join(lines).encode() + body)
                reply = connection.reply()
            self.assertEqual((reply.status, reply.media_type), (200, accept))
            self.assertIsNone(reply.header("Transfer-Encoding"))
            mark = "\n\n" if accept == SSE else "\n"
            blocks = reply.body.decode().split(mark)
            self.assertEqual(blocks.pop(), "")
            self.assertIn("exit", blocks[-1])

    def test_over_the_unix_socket(self):
        with self.run_stream(["echo", "x"], via="unix") as stream:
            self.assertEqual(output(complete(stream.all())), "x\n")

    def test_the_connection_is_kept_behind_a_stream(self):
        with self.run_stream(["true"]) as stream:
            complete(stream.all())
            reply = stream.connection.exchange("GET", "/v1/version", self.daemon.authorization())
            self.assertEqual(reply.status, 200)


class Live(streamkit.Case):
    def test_events_come_while_the_program_runs(self):
        name = "live-" + harness.new_mark()
        with self.run_stream(["sh", "-c", "echo first; read line; echo $line"], id=name,
                             interactive=True) as stream:
            self.assertEqual(output(stream.until("stdout")), "first\n")
            reply = self.daemon.post(f"/v1/executions/{name}/stdin", b"second\n",
                                     media_type="application/octet-stream")
            self.assertEqual(reply.status, 204)
            self.assertEqual(output(stream.until("stdout")), "second\n")
            self.assertEqual(stream.until("exit")[-1]["exitCode"], 0)

    def test_lines_of_python_and_node_come_at_once(self):
        for language, code in (
                ("python", "print('tick'); import time; time.sleep(60)"),
                ("node", "console.log('tick'); setInterval(() => {}, 1000)"),
                ("bash", "echo tick; sleep 60")):
            with self.subTest(language=language), self.within(20), \
                    self.code_stream(code, language=language) as stream:
                self.assertEqual(output(stream.until("stdout")), "tick\n")
        self.idle()

    def test_silence_is_filled_with_pings(self):
        with self.run_stream(["sh", "-c", "echo a; sleep 11; echo b"]) as stream:
            events = stream.all()
        kinds = [event["type"] for event in events]
        self.assertIn("ping", kinds)
        self.assertLess(kinds.index("ping"), kinds.index("exit"))
        self.assertFalse(any("seq" in event for event in events if event["type"] == "ping"))
        self.assertEqual(output(complete(events)), "a\nb\n")


class Text(streamkit.Case):
    def test_characters_are_never_split(self):
        text = "é☃😀" * 40
        code = f"import sys\nfor byte in {text.encode()!r}:\n" \
               "    sys.stdout.buffer.write(bytes([byte])); sys.stdout.flush()\n"
        for accept in (NDJSON, SSE):
            with self.code_stream(code, accept) as stream:
                events = complete(stream.all())
            self.assertEqual(output(events), text)

    def test_bytes_that_are_no_text_are_repaired(self):
        code = "import os\n" \
               "for stream in (1, 2):\n" \
               "    os.write(stream, b'ok\\xff\\xfe\\x80end\\n'); os.write(stream, b'A\\xe2\\x82B\\n')\n" \
               "    os.write(stream, b'\\xed\\xa0\\x80x\\n'); os.write(stream, b'50%\\r100%\\rdone')\n"
        wanted = "ok\ufffd\ufffd\ufffdend\nA\ufffdB\n\ufffd\ufffd\ufffdx\n50%\r100%\rdone"
        with self.code_stream(code) as stream:
            events = complete(stream.all())
        self.assertEqual((output(events), output(events, "stderr")), (wanted, wanted))
        self.assertEqual((events[-1]["exitCode"], events[-1]["fault"]), (0, None))

    def test_half_a_character_at_the_end_is_told(self):
        with self.run_stream(["printf", "a\\342\\230"]) as stream:
            self.assertEqual(output(complete(stream.all())), "a\ufffd")

    def test_exact_bytes_as_base64(self):
        data = bytes(range(256)) * 20
        with self.run_stream(["cat"], stdin=harness.b64(data), stdoutEncoding="base64") as stream:
            events = complete(stream.all())
        self.assertEqual(output(events), data)
        # Who reads later, and from later on, reads the same.
        name = events[-1]["id"]
        for first in range(len(events)):
            query = f"?after={first - 1}" if first else ""
            self.assertEqual(self.events(name, query).all(), events[first:])

    def test_output_above_the_cap_is_told_and_dropped(self):
        with self.code_stream("for i in range(200000): print(i)", maxOutputBytes=4096) as stream:
            events = complete(stream.all())
        text = output(events)
        self.assertEqual(len(text), 4096)
        self.assertTrue(text.startswith("0\n1\n2\n"))
        self.assertEqual([(event["stream"], event["logOnly"]) for event in events
                          if event["type"] == "truncated"], [("stdout", False)])
        self.assertEqual((events[-1]["exitCode"], events[-1]["fault"]), (0, None))
        self.assertEqual(events[-1]["truncatedStreams"], ["stdout"])

    def test_offsets_are_those_of_raw_bytes(self):
        code = "import sys, time\nfor i in range(20):\n" \
               "    print('é' * i, flush=True); time.sleep(0.03)\n"
        with self.code_stream(code) as stream:
            events = complete(stream.all())
        raw = self.daemon.get(f"/v1/executions/{events[-1]['id']}/stdout").body
        for event in events:
            if event["type"] == "stdout":
                data = event["data"].encode()
                self.assertEqual(raw[event["offset"]:event["offset"] + len(data)], data)

    def test_names_of_files_in_events(self):
        code = "import os\nopen(b'\\xff name', 'w').close()\nopen('a/b'.replace('/', ' '), 'w').close()"
        with self.code_stream(code) as stream:
            files = [event for event in complete(stream.all()) if event["type"] == "file"]
        self.assertEqual(sorted(event["path"] for event in files), ["a b", "\ufffd name"])
        self.assertEqual([event["pathPercent"] for event in files if "pathPercent" in event],
                         ["%FF%20name"])


class Sse(streamkit.Case):
    def test_a_browser_resumes_and_is_told_to_stop(self):
        with self.run_stream(["sh", "-c", "for i in 1 2 3; do echo $i; sleep 0.05; done"],
                             accept=SSE) as stream:
            events = complete(stream.all())
        name = stream.header("X-Execution-Id")
        for event in events[:-1]:
            with self.events(name, accept=SSE,
                             headers={"Last-Event-ID": str(event["seq"])}) as again:
                self.assertEqual(again.all(), events[event["seq"] + 1:])
        with self.events(name, "?after=0", accept=SSE,
                         headers={"Last-Event-ID": str(events[-1]["seq"])}) as over:
            self.assertEqual(over.status, 204)
        reply = self.daemon.get(f"/v1/executions/{name}/events",
                                headers={"Accept": SSE, "Last-Event-ID": "x"})
        self.assert_problem(reply, 400, "bad_header")

    def test_data_is_one_line(self):
        with self.run_stream(["printf", "a\\nb\\r\\nc\\rd\\n\\n"], accept=SSE) as stream:
            self.assertEqual(output(complete(stream.all())), "a\nb\r\nc\rd\n\n")
        raw = self.daemon.get(f"/v1/executions/{stream.header('X-Execution-Id')}/events",
                              headers={"Accept": SSE}).body.decode()
        for line in raw.split("\n"):
            self.assertRegex(line, re.compile(r"^((id|event|data): .*)?$"))


class Queue(streamkit.Case):
    daemon_arguments = ("--workers", "1", "--queue", "4")

    def test_position_and_queue_timeout(self):
        first = self.submit(["sleep", "30"])
        census.wait_until(lambda: self.execution(first)["state"] == "running", harness.seconds(10), "it")
        waiting = self.submit(["true"])
        value = self.execution(waiting)
        self.assertEqual((value["state"], value["queuePosition"]), ("queued", 0))
        with self.run_stream(["true"], queueTimeoutS=0.5) as stream:
            events = complete(stream.all())
        self.assertEqual([event["type"] for event in events], ["queued", "error"])
        self.assertEqual(events[0]["position"], 1)
        self.assertEqual((events[1]["code"], events[1]["status"]), ("queue_timeout", 503))
        reply = self.daemon.post("/v1/run", {"command": ["true"], "queueTimeoutS": 0.1})
        self.assert_problem(reply, 503, "queue_timeout")
        self.assertTrue(reply.header("X-Execution-Id"))
        # Waiting has eaten nothing of the time that it may take.
        late = self.submit(["sleep", "0.2"], timeoutS=1)
        time.sleep(1)
        self.cancel(first)
        self.assertEqual(self.ended(waiting)["exitCode"], 0)
        self.assertEqual(self.ended(late)["fault"], None)

    def test_one_in_the_queue_is_cancelled_at_once(self):
        first = self.submit(["sleep", "30"])
        with self.run_stream(["true"], id="queued-one") as stream:
            self.assertEqual(stream.next()["type"], "queued")
            with self.within(5):
                self.cancel("queued-one")
                last = complete([{"type": "queued", "seq": 0}, *stream.all()])[-1]
            self.assertEqual(last["fault"]["type"], "cancelled")
        self.assertEqual(self.execution(first)["state"], "running")
        self.cancel(first)
        self.idle()


if __name__ == "__main__":
    unittest.main()
