# SPDX-License-Identifier: Apache-2.0
"""What the daemon tells about itself."""
import gzip
import re
import unittest

import census
import harness


class Meta(harness.Case):
    def test_health(self):
        reply = self.daemon.get("/healthz", token=False)
        self.assertEqual((reply.status, reply.json), (200, {"status": "ok"}))

    def test_ready(self):
        reply = self.daemon.get("/readyz")
        self.assertEqual(reply.status, 200, reply)

    def test_version(self):
        version = self.daemon.get("/v1/version").json
        self.assertTrue(re.match(r"\d+\.\d+", version["version"]), version)
        self.assertIn(harness.ENGINE or "bubblewrap", str(version))

    def test_capabilities(self):
        found = self.daemon.get("/v1/capabilities").json
        languages = {row["name"]: row["version"] for row in found["languages"] if row["available"]}
        self.assertEqual(set(languages), {"python", "bash", "node"})
        for name, code in (("python", "import platform; print(platform.python_version())"),
                           ("bash", "echo ${BASH_VERSINFO[0]}.${BASH_VERSINFO[1]}"),
                           ("node", "console.log(process.versions.node)")):
            self.assertIn(self.run_code(code, name)["stdout"].strip(), languages[name])
        for name in ("memory", "pids", "cpu", "disk"):
            self.assertIn(found["enforcement"][name], ("cgroup", "watchdog", "rlimit", "measured",
                                                       "none"))
        for name in ("timeoutS", "memoryMb", "pids", "maxOutputBytes"):
            self.assertLessEqual(found["defaults"][name], found["maxima"][name])
        self.assertEqual((found["defaults"]["timeoutS"], found["defaults"]["memoryMb"],
                          found["defaults"]["pids"], found["defaults"]["maxOutputBytes"]),
                         (30, 512, 256, 64 << 20))
        capacity = found["capacity"]
        self.assertLessEqual(capacity["workersPerSession"], capacity["workersPerCaller"])
        self.assertLess(capacity["workersPerCaller"], capacity["workers"])
        self.assertLess(capacity["queuePerCaller"], capacity["queue"])
        self.assertLessEqual(found["maxima"]["memoryMb"], capacity["memoryMb"])
        self.assertIs(found["seccomp"], True)
        self.assertTrue(found["engines"])

    def test_stats_count(self):
        before = self.daemon.get("/v1/stats").json
        self.run_command(["true"])
        after = self.daemon.get("/v1/stats").json
        self.assertEqual(after["executionsTotal"], before["executionsTotal"] + 1)
        self.assertEqual(after["queued"], 0)
        census.wait_until(lambda: self.daemon.get("/v1/stats").json["running"] == 0,
                          harness.seconds(5), "the worker's return")
        self.assertGreaterEqual(after["runThreads"], 1)

    def test_stats_tell_outcomes_and_where_time_went(self):
        before = self.daemon.get("/v1/stats").json
        self.run_command(["sh", "-c", "exit 3"])
        self.run_command(["sleep", "60"], timeoutS=0.2)
        after = self.daemon.get("/v1/stats").json
        gained = {name: count - before["outcomes"][name] for name, count in after["outcomes"].items()}
        self.assertEqual({name for name, count in gained.items() if count}, {"none", "timeout"}, gained)
        self.assertGreaterEqual(set(after["outcomes"]), {"oom", "killed", "cancelled", "error"})
        self.assertEqual(list(after["steps"])[:2] + list(after["steps"])[-2:],
                         ["accept", "guard", "record", "reply"])

        def run():
            return self.daemon.get("/v1/stats").json["steps"]["run"]
        census.wait_until(lambda: run()["count"] >= before["steps"]["run"]["count"] + 2,
                          harness.seconds(10), "what is counted behind the answer")
        self.assertGreater(run()["p99Ms"], 100)  # the one of 200 ms, in a bucket from 131 ms on
        self.assertTrue(0 < run()["p50Ms"] <= run()["p90Ms"] <= run()["p99Ms"])

    def test_the_interface_is_described_by_the_daemon(self):
        spec = self.daemon.get("/openapi.json").json
        self.assertTrue(spec["openapi"].startswith("3.1"))
        for path in ("/v1/run", "/v1/runCode", "/healthz", "/readyz", "/v1/version",
                     "/v1/capabilities", "/v1/stats"):
            self.assertIn(path, spec["paths"])
        text = self.daemon.get("/openapi.yaml")
        self.assertEqual(text.status, 200)
        self.assertTrue(text.body.startswith(b"openapi: 3.1") or b"\nopenapi: 3.1" in text.body)

    def test_answers_hold_what_the_description_says(self):
        """Every member of a real result is in the description, and the other way round."""
        spec = self.daemon.get("/openapi.json").json
        schemas = spec["components"]["schemas"]
        result = self.run_code("print(1); 2", files={"a": "1"}, fetchFiles=["a"])
        self.assertLessEqual(set(result), set(schemas["Result"]["properties"]))
        self.assertLessEqual(set(schemas["Result"]["required"]), set(result))
        for target, name in (("/v1/version", "Version"), ("/v1/capabilities", "Capabilities"),
                             ("/v1/stats", "Stats"), ("/v1/nothing", "Problem")):
            value = self.daemon.get(target).json
            self.assertEqual(set(value), set(schemas[name]["properties"]), name)

    def test_documents_have_tags_and_are_compressed_when_asked(self):
        for target in ("/openapi.json", "/openapi.yaml", "/v1/capabilities"):
            with self.subTest(target=target):
                plain = self.daemon.get(target)
                packed = self.daemon.get(target, headers={"Accept-Encoding": "br, gzip"})
                for reply in (plain, packed):
                    self.assertEqual(reply.header("Vary"), "Accept-Encoding")
                    self.assertEqual(reply.header("Cache-Control"), "private, no-cache")
                if target != "/v1/capabilities" or len(plain.body) >= 1024:
                    self.assertEqual(packed.header("Content-Encoding"), "gzip")
                    self.assertEqual(gzip.decompress(packed.body), plain.body)
                    self.assertNotEqual(plain.header("ETag"), packed.header("ETag"))
                    few_words = target == "/v1/capabilities"  # compress less well
                    self.assertLess(len(packed.body), len(plain.body) / (1 if few_words else 2))
                self.assertIsNone(plain.header("Content-Encoding"))
                for reply, coding in ((plain, "identity"), (packed, "gzip")):
                    tag = reply.header("ETag")
                    again = self.daemon.get(target, headers={"Accept-Encoding": coding,
                                                             "If-None-Match": f'"x", {tag}'})
                    self.assertEqual((again.status, again.body), (304, b""))
                    for name in ("ETag", "Content-Length", "Vary", "Cache-Control"):
                        self.assertEqual(again.header(name), reply.header(name), name)
                other = self.daemon.get(target, headers={"If-None-Match": '"other"'})
                self.assertEqual((other.status, other.body), (200, plain.body))
                head = self.daemon.request("HEAD", target)
                self.assertEqual(head.header("ETag"), plain.header("ETag"))

    def test_nothing_else_is_compressed(self):
        asked = {"Accept-Encoding": "gzip"}
        result = self.daemon.post("/v1/run", {"command": ["seq", "5000"]}, headers=asked)
        for reply in (result, self.daemon.get("/metrics", headers=asked),
                      self.daemon.get("/v1/executions", headers=asked)):
            self.assertIsNone(reply.header("Content-Encoding"))

    def test_no_server_details_for_strangers(self):
        reply = self.daemon.get("/healthz", token=False)
        self.assertIsNone(reply.header("Server"))
        self.assertLess(len(reply.body), 200)


if __name__ == "__main__":
    unittest.main()
