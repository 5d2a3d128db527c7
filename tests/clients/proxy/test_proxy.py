# SPDX-License-Identifier: Apache-2.0
"""Every answer that the HTTP tests get, compared with the description by Prism.

KERND_TEST_RECORDED names a folder of what a whole run of them was answered (tests/http/recordkit.py;
.ci/run keeps one): all of that is judged. Without it a few test files are run here.
"""
import glob
import io
import json
import os
import unittest

import clientkit
import harness
import recordkit
import wire

import kinds
import recording

DESCRIPTION = os.path.join(harness.ROOT, "api", "openapi.yaml")
MADE = os.path.join(harness.ROOT, "build", "made", "openapi.json")
HTTP = os.path.join(harness.ROOT, "tests", "http")
RECORDED = os.environ.get("KERND_TEST_RECORDED")
# Together they ask for every operation; KERND_TEST_ALL=1 has all files run here.
QUICK = ("batch", "meta", "sessions", "tokens")
# Whose exchanges are not made by this suite's own client, so that nothing would be judged.
NOT_THESE = ("client_javascript", "client_python", "command_line", "command_repl", "mcp_bridge",
             "shell_completion", "web_page")


def chosen():
    if os.environ.get("KERND_TEST_ALL") != "1":
        return QUICK
    names = [os.path.basename(path)[len("test_"):-len(".py")]
             for path in glob.glob(os.path.join(HTTP, "test_*.py"))]
    return sorted(set(names) - set(NOT_THESE))


def run_here(name):
    """Exchanges of test_<name>.py, whose own run tells whether it passes."""
    suite = unittest.defaultTestLoader.loadTestsFromName(f"test_{name}")
    with recordkit.recorded() as exchanges:
        unittest.TextTestRunner(stream=io.StringIO()).run(suite)
    return exchanges


class Prism(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.group = clientkit.Group("proxy")
        cls.addClassCleanup(cls.group.remove)
        cls.prism = recording.Prism(cls.group, DESCRIPTION)
        cls.addClassCleanup(cls.prism.stop)

    def test_a_wrong_answer_is_seen(self):
        headers = [("Content-Type", "application/json")]
        for body, wrong in ((b'{"status":"ok"}', 0), (b'{"status":1}', 1), (b"{}", 1)):
            reply = wire.Reply("HTTP/1.1", 200, headers, body, [], False)
            made = recordkit.Exchange("GET", "/healthz", {}, None, reply)
            (judged, found), = self.prism.judge([made])
            self.assertEqual((judged, bool(found)), (True, bool(wrong)), found)

    def test_answers_are_as_described(self):
        """One of each kind; every operation must have been asked for."""
        recorded = recordkit.load(RECORDED) if RECORDED else {name: run_here(name) for name in chosen()}
        with open(MADE, encoding="utf-8") as file:
            operations = kinds.Operations(json.load(file))
        seen, judged = {}, set()
        for name, exchanges in recorded.items():
            new = {kind: made for made in exchanges if (kind := kinds.kind(operations, made)) not in seen}
            seen.update(new)
            verdicts = self.prism.judge(list(new.values()))
            told = [made for made, verdict in zip(new.values(), verdicts) if verdict.judged]
            judged.update((operations.of(made), made.reply.status) for made in told)
            print(f"{name}: {len(exchanges)} answers, {len(told)} of {len(new)} new kinds judged", flush=True)
            with self.subTest(file=name):
                self.assertEqual([verdict.wrong for verdict in verdicts if verdict.wrong], [])
        print(f"{len(judged)} statuses of {len({name for name, _ in judged})} operations")
        self.assertEqual(operations.names - {name for name, _ in judged}, set())


if __name__ == "__main__":
    unittest.main()
