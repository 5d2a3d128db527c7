# SPDX-License-Identifier: Apache-2.0
"""Many runs for one call."""
import json
import time
import unittest

import census
import check
import harness
import streamkit
from streamkit import NDJSON, SSE


class Batches(streamkit.Case):
    def batch(self, items, headers=None, **options):
        return self.daemon.post("/v1/batch", {"items": items, **options}, headers=headers)

    def test_in_their_order(self):
        items = [{"command": ["sh", "-c", f"sleep 0.{9 - i}; echo {i}"]} for i in range(6)]
        reply = self.batch(items)
        self.assertEqual(reply.status, 200)
        found = reply.json["items"]
        self.assertEqual([item["index"] for item in found], list(range(6)))
        self.assertEqual([check.result(item["result"])["stdout"] for item in found],
                         [f"{i}\n" for i in range(6)])

    def test_as_they_end(self):
        items = [{"command": ["sh", "-c", "sleep 1.5; echo slow"]}, {"command": ["echo", "quick"]}]
        connection = self.daemon.connect()
        connection.request("POST", "/v1/batch", {
            **self.daemon.authorization(), "Accept": NDJSON, "Content-Type": "application/json"},
            harness.as_json({"items": items}))
        with connection:
            reply = connection.reply()
        lines = [json.loads(line) for line in reply.body.splitlines()]
        self.assertEqual([line["result"]["stdout"] for line in lines], ["quick\n", "slow\n"])
        self.assertEqual([line["index"] for line in lines], [1, 0])

    def test_one_failure_hides_no_other(self):
        items = [{"command": ["echo", "a"]}, {"command": ["no such program"]}, {"code": "1/0"},
                 {"command": ["true"], "timeoutS": 1e9}, {"command": ["true"], "nonsense": 1},
                 {}, {"command": ["true"], "code": "1"}, {"command": ["sleep", "9"], "timeoutS": 0.5},
                 {"code": "print(2)", "language": "bash; "}, {"code": "echo z", "language": "bash"}]
        for headers in ({}, {"Accept": NDJSON}):
            reply = self.batch(items, headers=headers)
            found = reply.json["items"] if not headers else sorted(
                (json.loads(line) for line in reply.body.splitlines()),
                key=lambda line: line["index"])
            self.assertEqual([item["status"] for item in found],
                             [200, 200, 200, 422, 422, 422, 422, 200, 422, 200])
            self.assertEqual(found[0]["result"]["stdout"], "a\n")
            self.assertEqual(found[1]["result"]["exitCode"], 127)
            self.assertIn("ZeroDivisionError", found[2]["result"]["stderr"])
            self.assertEqual(found[3]["problem"]["code"], "limit_exceeds_maximum")
            self.assertEqual(found[4]["problem"]["errors"][0]["pointer"], "/items/4/nonsense")
            self.assertEqual(found[7]["result"]["fault"]["type"], "timeout")
            self.assertEqual(found[9]["result"]["stdout"], "z\n")

    def test_concurrency(self):
        code = "import time; print(time.time()); time.sleep(0.3); print(time.time())"
        for concurrency in (1, 3):
            items = self.batch([{"code": code}] * 6, concurrency=concurrency).json["items"]
            spans = [tuple(map(float, item["result"]["stdout"].split())) for item in items]
            most = max(sum(start <= at < end for start, end in spans) for at, _ in spans)
            self.assertLessEqual(most, concurrency)

    def test_the_largest(self):
        items = self.batch([{"command": ["true"]}] * 256, concurrency=64).json["items"]
        self.assertEqual({item["status"] for item in items}, {200})
        self.assertEqual(len({item["result"]["id"] for item in items}), 256)

    def test_bad_batches(self):
        for body, pointer in (({}, "/items"), ({"items": []}, "/items"), ({"items": {}}, "/items"),
                              ({"items": [{"command": ["true"]}] * 257}, "/items"),
                              ({"items": [1]}, "/items/0"),
                              ({"items": [{"command": ["true"]}], "concurrency": 0}, "/concurrency"),
                              ({"items": [{"command": ["true"]}], "concurrency": 65},
                               "/concurrency")):
            self.assert_problem(self.daemon.post("/v1/batch", body), 422, "bad_value", pointer)
        reply = self.batch([{"command": ["true"]}], headers={"Accept": SSE})
        self.assert_problem(reply, 406, "not_acceptable")

    def test_items_are_executions(self):
        found = self.batch([{"command": ["echo", "x"], "id": "batch-item"}]).json["items"]
        self.assertEqual(found[0]["result"]["id"], "batch-item")
        self.assertEqual(self.execution("batch-item")["stdout"], "x\n")
        again = self.batch([{"command": ["echo", "x"], "id": "batch-item"},
                            {"command": ["echo", "y"], "id": "batch-item"}]).json["items"]
        self.assertEqual([item["status"] for item in again], [200, 409])

    def test_a_client_that_leaves(self):
        for form in ("application/json", NDJSON):
            mark = harness.new_mark()
            items = [{"command": ["sh", "-c", "sleep 30", mark]}] * 20
            connection = self.daemon.connect()
            connection.request("POST", "/v1/batch", {
                **self.daemon.authorization(), "Accept": form, "Content-Type": "application/json"},
                harness.as_json({"items": items, "concurrency": 4}))
            census.wait_until(lambda mark=mark: len(census.with_argument(mark)) >= 4,
                              harness.seconds(15), "four of them")
            connection.reset()
            census.wait_gone(lambda mark=mark: census.with_argument(mark), harness.seconds(5), "")
            self.idle()

    def test_what_goes_on_without_its_client(self):
        names = [f"going-on-{i}" for i in range(6)]
        items = [{"command": ["sh", "-c", "sleep 0.5; echo $0", name], "id": name}
                 for name in names]
        connection = self.daemon.connect()
        connection.request("POST", "/v1/batch", {
            **self.daemon.authorization(), "Content-Type": "application/json"},
            harness.as_json({"items": items, "concurrency": 2}))
        census.wait_until(lambda: self.daemon.get(f"/v1/executions/{names[0]}").status == 200,
                          harness.seconds(10), "the first")
        connection.reset()
        for name in names:
            census.wait_until(lambda name=name: self.daemon.get(
                f"/v1/executions/{name}").status == 200, harness.seconds(20), name)
            self.assertEqual(self.ended(name)["stdout"], name + "\n")

    def test_a_reader_that_stops_holds_up_what_has_not_begun(self):
        """Memory is bounded by what runs at once and a few MiB, not by what there is to tell."""
        self.run_command(["true"])
        before = self.resident_mb()
        items = [{"command": ["sh", "-c", "head -c 1048576 /dev/zero | tr '\\0' x"],
                  "trackFiles": False}] * 96
        connection = self.daemon.connect()
        connection.request("POST", "/v1/batch", {
            **self.daemon.authorization(), "Accept": NDJSON, "Content-Type": "application/json"},
            harness.as_json({"items": items, "concurrency": 4}))
        self.idle_for(0.7)
        self.assertLess(len(self.daemon.get("/v1/executions?limit=1000").json["items"]), 90)
        self.assert_grown_less(self.resident_mb() - before, 64)
        reply = connection.reply()
        connection.close()
        lines = [json.loads(line) for line in reply.body.splitlines()]
        self.assertEqual({len(line["result"]["stdout"]) for line in lines}, {1048576})
        self.assertEqual(sorted(line["index"] for line in lines), list(range(96)))

    def idle_for(self, seconds):
        """Waits until nothing has run for so long."""
        since = [time.monotonic()]

        def quiet():
            if self.daemon.get("/v1/stats").json["running"]:
                since[0] = time.monotonic()
            return time.monotonic() - since[0] >= seconds
        census.wait_until(quiet, harness.seconds(60), "quiet")


if __name__ == "__main__":
    unittest.main()
