# SPDX-License-Identifier: Apache-2.0
"""Every answer that the HTTP tests get, compared with the description by Prism."""
import glob
import io
import os
import unittest

import clientkit
import harness
import wire

import recording

HTTP = os.path.join(harness.ROOT, "tests", "http")
# What takes a minute; KERND_TEST_ALL=1: all of them.
QUICK = ("batch", "meta", "sessions", "tokens")
# They start programs of others, or have their own judge.
NOT_THESE = ("client_javascript", "client_python", "fuzz_http", "command_line", "command_repl")


def chosen():
    if os.environ.get("KERND_TEST_ALL") != "1":
        return QUICK
    names = [os.path.basename(path)[len("test_"):-len(".py")]
             for path in glob.glob(os.path.join(HTTP, "test_*.py"))]
    return sorted(set(names) - set(NOT_THESE))


class Prism(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.group = clientkit.Group("proxy")
        cls.addClassCleanup(cls.group.remove)
        cls.prism = recording.Prism(cls.group, os.path.join(harness.ROOT, "api", "openapi.yaml"))
        cls.addClassCleanup(cls.prism.stop)

    def answers_of(self, name):
        """Runs test_<name>.py, whose own run tells whether it passes, and has its exchanges judged."""
        suite = unittest.defaultTestLoader.loadTestsFromName(f"test_{name}")
        with recording.recorded() as exchanges:
            unittest.TextTestRunner(stream=io.StringIO()).run(suite)
        judged, wrong = self.prism.judge(exchanges)
        print(f"{name}: {judged} of {len(exchanges)} answers judged ... ", end="", flush=True)
        self.assertEqual(wrong, [])
        self.assertTrue(judged or not exchanges, "nothing was judged")

    def test_0_a_wrong_answer_is_seen(self):
        headers = [("Content-Type", "application/json")]
        for body, wrong in ((b'{"status":"ok"}', 0), (b'{"status":1}', 1), (b"{}", 1)):
            reply = wire.Reply("HTTP/1.1", 200, headers, body, [], False)
            made = recording.Exchange("GET", "/healthz", {}, None, reply)
            judged, found = self.prism.judge([made])
            self.assertEqual((judged, bool(found)), (1, bool(wrong)), found)


for _name in chosen():
    setattr(Prism, f"test_{_name}", lambda self, name=_name: self.answers_of(name))


if __name__ == "__main__":
    unittest.main()
