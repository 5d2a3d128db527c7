# SPDX-License-Identifier: Apache-2.0
"""Clients make, use and delete sessions while the daemon is killed at random moments.

After every start what was answered before must be there, and in the end nothing may be left: no
process, no directory, no descriptor, and a sound database. Environment: STRESS_SECONDS (120; half an
hour for a release), STRESS_SEED.
"""
import os
import random
import sqlite3
import sys
import threading
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "http"))

import census  # noqa: E402  (the path above has to come first)
import harness  # noqa: E402
import sessionkit  # noqa: E402

SECONDS = float(os.environ.get("STRESS_SECONDS", "120"))
SEED = int(os.environ.get("STRESS_SEED", str(random.randrange(1 << 30))))
CLIENTS = 8
GONE = (AssertionError, OSError)


class Client(threading.Thread):
    """Knows for sure what the server has answered: files by session; None while in doubt."""

    def __init__(self, daemon, number, stop):
        super().__init__()
        self.daemon_process, self.number, self.stop = daemon, number, stop
        self.random = random.Random(SEED + number)
        self.sessions = {}
        self.done = 0
        self.wrong = []

    def run(self):
        serial = 0
        while not self.stop.is_set():
            serial += 1
            try:
                self.step(serial)
                self.done += 1
            except GONE as failure:
                if self.daemon_process.alive() and "Connection" not in str(failure) \
                        and "ended" not in str(failure):
                    self.wrong.append(str(failure)[:500])
                time.sleep(0.05)

    def step(self, serial):
        known = [name for name, files in self.sessions.items() if files is not None]
        choice = self.random.random()
        if not known or choice < 0.15:
            self.make(f"c{self.number}-{serial}")
        elif choice < 0.25 or len(known) > 20:
            self.delete(self.random.choice(known))
        else:
            self.use(self.random.choice(known), serial)

    def session(self, name):
        return sessionkit.Session(self.daemon_process, id=name, labels={"client": str(self.number)})

    def make(self, name):
        self.sessions[name] = None
        self.session(name)
        self.sessions[name] = {}

    def delete(self, name):
        self.sessions[name] = None
        reply = self.daemon_process.request("DELETE", f"/v1/sessions/{name}")
        assert reply.status == 204, reply
        del self.sessions[name]

    def use(self, name, serial):
        files = self.sessions[name]
        path = f"d{self.random.randrange(3)}/f{self.random.randrange(5)}"
        data = f"{name} {serial} ".encode() * self.random.randrange(1, 2000)
        session = self.session(name)
        if self.random.random() < 0.4:
            expected = files.get(path)
            files[path] = None
            reply = session.put(path, data)
            assert reply.status in (201, 204), reply
            files[path] = data
            assert expected is None or reply.status == 204, reply
        elif self.random.random() < 0.5:
            expected = files.get(path)
            reply = session.read(path)
            if expected is not None:
                assert (reply.status, reply.body) == (200, expected), (path, reply)
        else:
            result = session.shell("cat d*/* 2> /dev/null | wc -c")
            sure = sum(len(content) for content in files.values() if content is not None)
            assert result["exitCode"] == 0 and int(result["stdout"]) >= sure, result

    def verify(self):
        """After the end: all that is known for sure."""
        for name, files in self.sessions.items():
            if files is None:
                continue
            session = self.session(name)
            for path, content in files.items():
                if content is not None:
                    reply = session.read(path)
                    assert (reply.status, reply.body) == (200, content), (name, path, reply)


class Soak(unittest.TestCase):
    def test_killed_at_random(self):
        print(f"seed {SEED}, {SECONDS:.0f} s", flush=True)
        daemon = harness.Daemon().start()
        self.addCleanup(daemon.remove)
        stop = threading.Event()
        clients = [Client(daemon, number, stop) for number in range(CLIENTS)]
        for client in clients:
            client.start()
        moments, kills = random.Random(SEED), 0
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            time.sleep(moments.uniform(0.5, 6))
            daemon.kill()
            os.truncate(daemon.path("out"), 0)
            daemon.start()
            kills += 1
        stop.set()
        for client in clients:
            client.join()
        steps = sum(client.done for client in clients)
        print(f"{kills} kills, {steps} steps", flush=True)
        self.assertEqual([client.wrong for client in clients if client.wrong], [])
        self.assertGreater(steps, SECONDS)
        for client in clients:
            client.verify()
        self.clean_up(daemon)

    def wait_emptied(self, daemon):
        """The trash, too. A slow disk has its time, as long as less and less is left."""
        while left := daemon.box_directories():
            census.wait_until(lambda left=left: daemon.box_directories() != left, harness.seconds(60),
                              f"removal of {len(left)} directories, of which {left[:5]}")

    def clean_up(self, daemon):
        while rows := daemon.get("/v1/sessions?limit=1000").json["items"]:
            for row in rows:
                self.assertEqual(daemon.request("DELETE", f"/v1/sessions/{row['id']}").status, 204)
        self.wait_emptied(daemon)
        daemon.finish()
        census.wait_gone(daemon.box_processes, harness.seconds(10), "processes of boxes")
        database = sqlite3.connect(f"file:{daemon.state}/kernd.db?mode=ro", uri=True)
        self.assertEqual(database.execute("PRAGMA integrity_check").fetchall(), [("ok",)])
        self.assertEqual(database.execute("SELECT count(*) FROM sessions").fetchone(), (0,))
        database.close()
        daemon.check_nothing_left()
        daemon.check_log()


if __name__ == "__main__":
    unittest.main()
