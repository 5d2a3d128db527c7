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
# Together they ask for every operation and get half of all statuses, in half a minute. The others, which take
# minutes, are left to the record of a whole run; KERND_TEST_ALL=1 has them run here.
QUICK = ("engine_kern", "environments", "meta", "tokens")
# They leave talking to programs of others and to kernd's own client, so that there is nothing to judge.
NOT_THESE = ("client_javascript", "client_python", "command_line", "command_repl", "config",
             "shell_completion")


def chosen():
    if os.environ.get("KERND_TEST_ALL") != "1":
        return QUICK
    names = [os.path.basename(path)[len("test_"):-len(".py")]
             for path in glob.glob(os.path.join(HTTP, "test_*.py"))]
    return sorted(set(names) - set(NOT_THESE))


def run_here(name):
    """(name, exchanges) of test_<name>.py, whose own run tells whether it passes."""
    suite = unittest.defaultTestLoader.loadTestsFromName(f"test_{name}")
    with recordkit.recorded() as exchanges:
        unittest.TextTestRunner(stream=io.StringIO()).run(suite)
    return name, exchanges


class Prism(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.group = clientkit.Group("proxy")
        cls.addClassCleanup(cls.group.remove)
        cls.prism = recording.Prism(cls.group, DESCRIPTION)
        cls.addClassCleanup(cls.prism.stop)
        with open(MADE, encoding="utf-8") as file:
            cls.kinds = kinds.Kinds(json.load(file))

    @classmethod
    def judged(cls, exchanges, seen):
        """
        (how many there were to judge, violations): of answers whose kind is seen for the first time.
        Prism takes lines of JSON for one text, where a schema describes one line, can't decompress, and
        wants a body of 304.
        """
        new = {}
        for made in exchanges:
            operation, reply = cls.kinds.operation_of(made), made.reply
            if operation is None or reply.media_type == "application/x-ndjson" or reply.status == 304 \
                    or reply.header("Content-Encoding"):
                continue
            key = operation.name, cls.kinds.kind(reply)
            if key not in seen:
                new[key] = operation, reply
        seen.update(new)
        return len(new), cls.prism.judge(list(new.values()))

    def test_a_wrong_answer_is_seen(self):
        headers = [("Content-Type", "application/json")]
        for body, wrong in ((b'{"status":"ok"}', 0), (b'{"status":1}', 1), (b"{}", 1)):
            reply = wire.Reply("HTTP/1.1", 200, headers, body, [], False)
            count, found = self.judged([recordkit.Exchange("GET", "/healthz?x", {}, None, reply)], {})
            self.assertEqual((count, bool(found)), (1, bool(wrong)), found)

    def test_answers_are_as_described(self):
        """Every operation must have been asked for."""
        seen, answers = {}, 0
        for name, exchanges in recordkit.load(RECORDED) if RECORDED else map(run_here, chosen()):
            answers += len(exchanges)
            count, wrong = self.judged(exchanges, seen)
            print(f"{name}: {len(exchanges)} answers, {count} of a new kind judged", flush=True)
            with self.subTest(file=name):
                self.assertEqual(wrong, [])
        asked = {name for name, _ in seen}
        print(f"{answers} answers of {len(asked)} operations, {len(seen)} kinds")
        self.assertEqual({one.name for one in self.kinds.operations} - asked, set())


if __name__ == "__main__":
    unittest.main()
