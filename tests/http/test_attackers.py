# SPDX-License-Identifier: Apache-2.0
"""The edge under tools that others wrote to bring servers down: slowhttptest, wrk and hey.

Each tool is bounded, a good client is served all the while, and their figures are printed.
STRESS_SECONDS: how long a flood lasts, and how long slow clients go on when they are not cut off.
"""
import csv
import os
import re
import shutil
import subprocess
import tempfile
import unittest

import census
import harness
import metricskit

LASTS_S = float(os.environ.get("STRESS_SECONDS", "2"))
REQUEST_TIMEOUT_S = 3
COLOURS = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
CONNECTIONS = 100


class Attackers(harness.Case):
    daemon_arguments = ("--request-timeout-s", str(REQUEST_TIMEOUT_S), "--log-level", "info")

    def attack(self, *command):
        """What the tool printed; it must end by itself, and a good client must be served meanwhile."""
        if shutil.which(command[0]) is None:
            self.skipTest(f"{command[0]} is not installed (make deps-dev)")
        with tempfile.TemporaryFile("w+") as out:
            tool = subprocess.Popen(command, cwd="/", stdin=subprocess.DEVNULL, stdout=out,
                                    stderr=subprocess.STDOUT)
            try:
                self.assert_success(self.run_command(["echo", "served"]), "served\n")
                code = tool.wait(timeout=harness.seconds(90 + 3 * LASTS_S))
            finally:
                tool.kill()
                tool.wait()
            out.seek(0)
            text = COLOURS.sub("", out.read())
        self.assertEqual(code, 0, text)
        return text

    def url(self, target="/healthz"):
        return f"http://127.0.0.1:{self.daemon.port}{target}"

    def slow(self, kind, target, limit_s, *options):
        """(connections that were opened, of these cut off by the server)"""
        with tempfile.TemporaryDirectory(prefix="kernd-attack-") as place:
            report = os.path.join(place, "report")
            text = self.attack("slowhttptest", kind, "-c", str(CONNECTIONS), "-r", "100", "-l",
                               str(int(limit_s)), "-g", "-o", report, "-u", self.url(target),
                               *options)
            with open(report + ".csv", encoding="ascii") as file:
                # Seconds, closed, pending, connected, ...; a row a second.
                rows = [[int(cell) for cell in row[:4]] for row in csv.reader(file)
                        if row and row[0].isdigit()]
        self.assertRegex(text, r"service available: +YES")
        return max(row[1] + row[3] for row in rows), max(row[1] for row in rows)

    def test_slow_heads_bodies_and_readers(self):
        """All at once. The first two are cut off, and their tools end then; readers may stay."""
        kinds = (("-H", "/healthz", LASTS_S + 20, "-i", "1"), ("-B", "/v1/run", LASTS_S + 20, "-i", "1"),
                 ("-X", "/healthz", LASTS_S + 3, "-w", "1", "-y", "8", "-n", "1", "-z", "64"))
        found = harness.parallel(len(kinds), lambda number: self.slow(*kinds[number]))
        print("".join(f"{kind[0]}: {opened} connected, {closed} cut off ... "
                      for kind, (opened, closed) in zip(kinds, found)), end="", flush=True)
        for opened, _ in found:
            self.assertGreater(opened, 0)
        for _, closed in found[:2]:
            self.assertGreater(closed, 0)
        census.wait_until(lambda: metricskit.parse(self.daemon.get("/metrics").body.decode())[
            "kernd_http_connections"].value() <= 1, harness.seconds(30), "the end of all connections")

    def test_a_flood_by_wrk(self):
        text = self.attack("wrk", "-t", "2", "-c", "100", "-d", f"{int(LASTS_S)}s", self.url())
        told, = re.findall(r"(\d+) requests in", text)
        rate, = re.findall(r"Requests/sec: +([0-9.]+)", text)
        print(f"{rate}/s ... ", end="", flush=True)
        self.assertGreater(int(told), 100, text)
        self.assertNotIn("Non-2xx", text)

    def test_a_flood_by_hey(self):
        body = '{"command":["true"]}'
        text = self.attack("hey", "-n", "64", "-c", "8", "-t", "60", "-m", "POST", "-T",
                           "application/json", "-H", f"Authorization: Bearer {self.daemon.token}",
                           "-d", body, self.url("/v1/run"))
        rate, = re.findall(r"Requests/sec:\s+([0-9.]+)", text)
        print(f"{rate} boxes/s ... ", end="", flush=True)
        self.assertEqual(re.findall(r"\[(\d+)\]\t(\d+) responses", text), [("200", "64")], text)


if __name__ == "__main__":
    unittest.main()
