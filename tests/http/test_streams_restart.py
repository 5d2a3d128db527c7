# SPDX-License-Identifier: Apache-2.0
"""Events and records across a server that is killed, or stopped, and started again."""
import json
import os
import struct
import threading
import unittest

import census
import check
import harness
import streamkit
from streamkit import NDJSON, SSE, complete, output

DISPLAYS = "for i in range(1000):\n    display(i)\n    if i % 100 == 0: print(i, flush=True)\n"


HEAD = struct.Struct("=IIIIQqQ")  # lib/journal/record.h
ID_BYTES = 72  # lib/journal/binder.c


def files_below(folder):
    return [os.path.join(parent, name) for parent, _, names in os.walk(folder) for name in names]


def content(path):
    with open(path, "rb") as file:
        return file.read()


def log_in(path, name):
    """The bytes of an execution's log in a file: all of its own, its pieces of a shared one."""
    data = content(path)
    if not os.path.basename(path).startswith("."):
        return data if path.endswith("/" + name) else b""
    log, at = b"", 0
    while at + HEAD.size <= len(data):
        piece = data[at + HEAD.size:at + HEAD.size + HEAD.unpack_from(data, at)[0]]
        if piece[:ID_BYTES].rstrip(b"\0") == name.encode():
            log += piece[ID_BYTES:]
        at += HEAD.size + len(piece)
    return log


class Killed(streamkit.Case):
    def replayed(self, name, after=None, accept=NDJSON):
        query = "" if after is None else f"?after={after}"
        reply = self.daemon.get(f"/v1/executions/{name}/events{query}", headers={"Accept": accept})
        self.assertEqual(reply.status, 200, reply)
        if accept == SSE:
            return [streamkit.parse_sse(block) for block in reply.body.split(b"\n\n")[:-1]]
        return [json.loads(line) for line in reply.body.splitlines()]

    def test_what_has_ended_reads_as_before(self):
        with self.code_stream(DISPLAYS) as stream:
            events = complete(stream.all())
        name = events[0]["id"]
        document = self.execution(name)
        with self.run_stream(["sh", "-c", "printf 'a\\377'; echo b >&2"],
                             stdoutEncoding="base64") as stream:
            exact = complete(stream.all())
        # What has ended is on disk within a moment.
        census.wait_until(lambda: self.on_disk(name) and self.on_disk(exact[0]["id"]),
                          harness.seconds(5), "the logs")
        self.restart()
        with self.daemon.connect() as connection:
            for after in range(-1, len(events), 1 if harness.SLOW == 1 else 13):
                query = f"?after={after}" if after >= 0 else ""
                reply = connection.exchange("GET", f"/v1/executions/{name}/events{query}",
                                            {**self.daemon.authorization(), "Accept": NDJSON})
                found = [json.loads(line) for line in reply.body.splitlines()]
                self.assertEqual(found, events[after + 1:])
        self.assertEqual(self.execution(name), document)
        self.assertEqual(self.replayed(exact[0]["id"], accept=SSE), exact)
        self.assertEqual(self.daemon.get(f"/v1/executions/{name}/stdout").body,
                         b"".join(b"%d\n" % i for i in range(0, 1000, 100)))

    def on_disk(self, name):
        """Whether the log of an ended execution is complete: its last record is there, in its own
        file or in one that short logs share."""
        return any(b'"finishedAt"' in log_in(path, name)
                   for path in files_below(self.daemon.path("state/journal")))

    def test_what_ran_is_lost_and_says_so(self):
        mark = harness.new_mark()
        with self.run_stream(["sh", "-c", "for i in $(seq 1000); do echo $i; sleep 0.01; done",
                              mark], id="cut-short") as stream:
            seen = []
            while len(seen) < 60:
                seen.append(stream.next())
            self.restart()
        census.wait_gone(lambda: census.with_argument(mark), harness.seconds(5), "the box")
        events = complete(self.replayed("cut-short"))
        last = events[-1]
        self.assertEqual((last["type"], last["code"]), ("error", "lost"))
        # Nothing that was told is gone, and nothing is made up.
        self.assertEqual(events[:len(seen)], seen)
        for first in range(1, len(events)):
            self.assertEqual(self.replayed("cut-short", first - 1), events[first:])
        # Who saw more than what is left is told the same.
        rest = self.replayed("cut-short", last["seq"] + 5)
        self.assertEqual([event["code"] for event in rest], ["lost"])
        value = self.execution("cut-short")
        self.assertEqual((value["state"], value["fault"]["type"]), ("done", "lost"))
        self.assertEqual((value["success"], value["exitCode"]), (False, None))
        raw = self.daemon.get("/v1/executions/cut-short/stdout").body.decode()
        self.assertEqual(raw, output(events))
        listed = self.daemon.get("/v1/executions?state=running").json["items"]
        self.assertEqual(listed, [])
        self.cancel("cut-short")
        reply = self.daemon.post("/v1/executions/cut-short/signal", {"signal": "INT"})
        self.assert_problem(reply, 409, "execution_done")
        reply = self.daemon.post("/v1/run", {"command": ["true"], "id": "cut-short"})
        self.assert_problem(reply, 409, "execution_exists")

    def test_every_place_in_a_long_one_that_was_cut_short(self):
        """A thousand events, then SIGKILL: whoever asks from any of them on is told the same."""
        code = "import time\nfor i in range(1000): display(i)\ntime.sleep(60)"
        with self.code_stream(code, id="cut-long") as stream:
            seen = stream.until("result")
            seen += [stream.next() for _ in range(999)]
            self.restart()
        self.assertEqual([event["type"] for event in seen], ["queued", "started"] + ["result"] * 1000)
        events = complete(self.replayed("cut-long"))
        # What was told before is there to the last event.
        self.assertEqual(events[:-1], seen)
        self.assertEqual((events[-1]["type"], events[-1]["code"]), ("error", "lost"))
        with self.daemon.connect() as connection:
            headers = {**self.daemon.authorization(), "Accept": NDJSON}
            target = "/v1/executions/cut-long/events?after="
            lines = connection.exchange("GET", target[:-len("?after=")], headers).body
            for event in events[:-1]:
                line, lines = lines.split(b"\n", 1)
                self.assertEqual(json.loads(line), event)
                if harness.SLOW > 1 and event["seq"] % 13:
                    continue
                reply = connection.exchange("GET", f"{target}{event['seq']}", headers)
                self.assertEqual((reply.status, reply.body), (200, lines))

    def test_what_was_told_is_there(self):
        """Output that a client has seen survives a SIGKILL that comes at once."""
        for accept in (NDJSON, SSE):
            with self.subTest(accept=accept):
                with self.run_stream(["sh", "-c", "echo one; echo two >&2; sleep 60"],
                                     accept=accept) as stream:
                    seen = stream.until("stdout")
                    if output(seen, "stderr") == "":
                        seen += stream.until("stderr")
                    self.restart()
                events = complete(self.replayed(seen[0]["id"]))
                self.assertEqual(events[:-1], seen)
                self.assertEqual(events[-1]["code"], "lost")

    def test_an_id_that_was_told_is_known(self):
        name = self.submit(["sleep", "60"])
        self.restart()
        value = self.execution(name)
        self.assertEqual((value["state"], value["fault"]["type"]), ("done", "lost"))

    def test_followers_see_a_cut_and_resume(self):
        name = self.submit(["sh", "-c", "while echo tick; do sleep 0.02; done"])
        cuts = []

        def follow():
            stream = self.events(name)
            try:
                stream.all()
                cuts.append("clean")
            except (AssertionError, OSError):
                cuts.append("cut")

        threads = [threading.Thread(target=follow) for _ in range(8)]
        for thread in threads:
            thread.start()
        census.wait_until(lambda: len(self.daemon.get(f"/v1/executions/{name}/stdout").body) > 50,
                          harness.seconds(10), "output")
        self.restart()
        for thread in threads:
            thread.join()
        self.assertEqual(cuts, ["cut"] * 8)
        self.assertEqual(complete(self.replayed(name))[-1]["code"], "lost")

    def test_it_was_silent_for_long(self):
        """What a program said long before the end of the server is there."""
        name = self.submit(["sh", "-c", "echo early; sleep 60"])
        census.wait_until(lambda: any(b"early" in log_in(path, name)
                                      for path in files_below(self.daemon.path("state/journal"))),
                          harness.seconds(5), "a saved log")
        self.restart()
        events = complete(self.replayed(name))
        self.assertEqual([event["type"] for event in events],
                         ["queued", "started", "stdout", "error"])


class Stopped(streamkit.Case):
    def test_a_stop_ends_streams_with_their_last_event(self):
        streams = [self.run_stream(["sh", "-c", "echo up; sleep 60"], accept=(NDJSON, SSE)[i % 2])
                   for i in range(6)]
        for stream in streams:
            stream.until("stdout")
        found = [None] * len(streams)

        def read(i):
            found[i] = streams[i].all()[-1]

        threads = [threading.Thread(target=read, args=(i,)) for i in range(len(streams))]
        for thread in threads:
            thread.start()
        self.daemon.finish()
        for thread in threads:
            thread.join()
        self.assertEqual({event["type"] for event in found}, {"exit"})
        self.assertEqual({event["fault"]["type"] for event in found}, {"cancelled"})
        self.start_again()
        for event in found:
            self.assertEqual(check.result(self.execution(event["id"]))["fault"], event["fault"])
            with self.events(event["id"]) as again:
                self.assertEqual(complete(again.all())[-1], event)
        self.daemon.finish()
        for path in files_below(self.daemon.path("state/journal")):
            os.unlink(path)
        self.start_again()
        self.assert_expired(found[0])

    def start_again(self):
        os.truncate(self.daemon.path("out"), 0)
        self.daemon.start()

    def assert_expired(self, event):
        """Its log is gone, as it is after seven days: the record still tells how it ended."""
        target = f"/v1/executions/{event['id']}"
        for part in ("events", "events?after=1&follow=true", "stdout", "stderr"):
            reply = self.daemon.get(f"{target}/{part}")
            self.assert_problem(reply, 410, "events_expired")
            self.assertIn("GET /v1/executions/{id}", reply.json["remediation"])
        value = self.execution(event["id"])
        self.assertEqual((value["fault"]["type"], value["exitCode"], value["truncated"]),
                         ("cancelled", event["exitCode"], True))


if __name__ == "__main__":
    unittest.main()
