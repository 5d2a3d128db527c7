# SPDX-License-Identifier: Apache-2.0
"""Sessions outlive their server, however it ends; full disks; many of everything."""
import glob
import os
import pwd
import shutil
import signal
import sqlite3
import subprocess
import threading
import time
import unittest

import census
import harness
import sessionkit


def stripped(session):
    """What must be the same before and after; measured sizes included."""
    return {name: value for name, value in session.get().items()
            if name not in ("runningExecutions", "executions", "kernels")}


class Restarted(unittest.TestCase):
    def setUp(self):
        self.daemon = harness.Daemon().start()
        self.addCleanup(self.daemon.remove)

    def restart(self, how):
        if how == signal.SIGKILL:
            self.daemon.kill()
        else:
            self.daemon.finish()
        self.begin()

    def begin(self):
        os.truncate(self.daemon.path("out"), 0)  # the ready line is looked for there
        self.daemon.start()

    def integrity(self):
        database = sqlite3.connect(f"file:{self.daemon.state}/kernd.db?mode=ro", uri=True)
        try:
            self.assertEqual(database.execute("PRAGMA integrity_check").fetchall(), [("ok",)])
        finally:
            database.close()

    def test_everything_is_as_it_was(self):
        for how in (signal.SIGKILL, signal.SIGTERM):
            with self.subTest(how=how):
                plain = sessionkit.Session(self.daemon, id=f"plain{how.value}",
                                           labels={"a": "b", "how": str(how.value)}, timeoutS=7,
                                           env={"SECRET": "kept"}, cpus=1, idleTimeoutS=1000, ttlS=5000)
                plain.put("d/f", b"content")
                plain.put(b"\xff", b"bytes")
                plain.shell("chmod 700 d; ln -s d/f link")
                host = self.daemon.path("host")
                os.makedirs(host, exist_ok=True)
                os.chmod(host, 0o777)
                given = sessionkit.Session(self.daemon, id=f"given{how.value}", workspace=host + "/w")
                given.put("g", b"1")
                before = [stripped(plain), stripped(given)]
                etag = plain.read("d/f").header("ETag")
                names = plain.names()
                self.restart(how)
                self.assertEqual([stripped(plain), stripped(given)], before)
                self.assertEqual(plain.read("d/f").header("ETag"), etag)
                self.assertEqual((plain.content("d/f"), plain.content(b"\xff"), plain.names()),
                                 (b"content", b"bytes", names))
                self.assertEqual(given.content("g"), b"1")
                found = self.daemon.get(f"/v1/sessions?label=how:{how.value}").json["items"]
                self.assertEqual([row["id"] for row in found], [plain.id])
                result = plain.shell("echo $SECRET $OMP_NUM_THREADS; cat d/f")
                self.assertEqual(result["stdout"], "kept 1\ncontent")
                self.assertEqual(self.daemon.post("/v1/sessions", {"id": plain.id}).status, 409)
                self.integrity()
        self.assertEqual(glob.glob(self.daemon.state + "/kernd.db*") and
                         os.stat(self.daemon.state + "/kernd.db").st_mode & 0o077, 0)

    def test_killed_while_it_works(self):
        idle = sessionkit.Session(self.daemon, id="idle")
        idle.put("f", b"1")
        busy = sessionkit.Session(self.daemon, id="busy")
        mark = harness.new_mark()
        ended = []

        def call(function):
            try:
                function()
            except (AssertionError, OSError) as gone:
                ended.append(gone)
        threads = [threading.Thread(target=call, args=(function,)) for function in (
            lambda: busy.shell("echo 1 > begun; sleep 60", env={"MARK": mark}),
            lambda: self.daemon.post("/v1/sessions", {"id": "half-made", "env": {"MARK": mark},
                                                      "setup": "echo 1 > begun; sleep 60"}))]
        for thread in threads:
            thread.start()
        census.wait_until(lambda: len(census.with_environment(mark)) >= 2, harness.seconds(10), "start")
        census.wait_until(lambda: "begun" in busy.names(), harness.seconds(10), "start")
        self.restart(signal.SIGKILL)
        for thread in threads:
            thread.join()
        census.wait_gone(lambda: census.with_environment(mark), harness.seconds(10), "old boxes")
        self.assertEqual(self.daemon.get("/v1/sessions/half-made").status, 404)
        self.assertEqual(sorted(row["id"] for row in self.daemon.get("/v1/sessions").json["items"]),
                         ["busy", "idle"])
        self.assertEqual((idle.content("f"), busy.content("begun")), (b"1", b"1\n"))
        self.assertEqual(busy.get()["runningExecutions"], 0)
        harness.wait_for_none(lambda: [name for name in os.listdir(self.daemon.state + "/workspaces")
                                       if "half-made" in name])
        self.assertEqual(busy.shell("cat begun")["stdout"], "1\n")
        for session in (idle, busy):
            session.delete()
        self.integrity()

    def test_timers_go_on(self):
        short = sessionkit.Session(self.daemon, id="short", idleTimeoutS=2)
        long = sessionkit.Session(self.daemon, id="long", idleTimeoutS=1000)
        self.restart(signal.SIGKILL)
        census.wait_until(lambda: self.daemon.get(short.path).status == 410, harness.seconds(20),
                          "expired")
        self.assertEqual(long.get()["state"], "ready")
        self.restart(signal.SIGTERM)
        self.assertEqual(self.daemon.get(short.path).status, 410)

    def mark_deleting(self, *ids):
        """What a server that is killed in the middle of a deletion leaves in the database."""
        with harness.as_user(self.daemon.user):
            database = sqlite3.connect(self.daemon.state + "/kernd.db")
            for one in ids:
                changed = database.execute("UPDATE sessions SET state = 'deleting' WHERE id = ?", [one])
                self.assertEqual(changed.rowcount, 1)
            database.commit()
            database.close()

    def test_repairs(self):
        """
        Rows without a workspace get an empty one; workspaces without a row go, but files in them are
        kept aside, even where a session of that id is made meanwhile. What was half deleted goes.
        """
        session = sessionkit.Session(self.daemon, id="kept", labels={"a": "b"})
        for name in ("kept", "half-there", "half-gone"):
            sessionkit.Session(self.daemon, id=name, labels={"a": "b"}).put("f", b"1")
        self.daemon.finish()
        workspaces = self.daemon.state + "/workspaces"
        shutil.rmtree(f"{workspaces}/session-kept")
        shutil.rmtree(f"{workspaces}/session-half-gone")
        self.mark_deleting("half-there", "half-gone")
        for name in ("session-orphan/deep", "session-empty", "session-taken/deep", "call-orphan/deep",
                     ".trash/del_orphan/deep", "staging_orphan/deep"):
            os.makedirs(f"{workspaces}/{name}")
            name = name.removesuffix("/deep")
            if self.daemon.user:
                subprocess.run(["chown", "-R", self.daemon.user, f"{workspaces}/{name}"], check=True)
        self.begin()
        for name in ("half-there", "half-gone"):
            self.assertEqual(self.daemon.get(f"/v1/sessions/{name}").status, 404)
        taken = sessionkit.Session(self.daemon, id="taken")
        self.assertEqual(taken.names(), [])
        self.assertEqual((session.get()["labels"], session.names()), ({"a": "b"}, []))
        session.put("f", b"2")
        self.assertEqual(session.shell("cat f")["stdout"], "2")
        harness.wait_for_none(lambda: [name for name in os.listdir(workspaces) +
                                       os.listdir(workspaces + "/.trash")
                                       if "orphan" in name or "empty" in name or "half" in name])
        kept = os.listdir(workspaces + "/.lost")
        self.assertEqual(sorted(name.split(".")[0] for name in kept),
                         ["session-orphan", "session-taken"])
        for name in kept:
            self.assertEqual(os.listdir(f"{workspaces}/.lost/{name}"), ["deep"])
        census.wait_until(lambda: "sessions_and_workspaces_differed" in self.daemon.log(),
                          harness.seconds(10), "a line of the log")
        self.assertIn("session_without_workspace", self.daemon.log())
        session.delete()
        taken.delete()

    def test_killed_again_and_again(self):
        """Whatever was answered is there; whatever is there is whole."""
        known, stop = {}, threading.Event()

        def work(number):
            for round_number in range(1000):
                name = f"s{number}-{round_number}"
                try:
                    if stop.is_set():
                        return
                    session = sessionkit.Session(self.daemon, id=name)
                    session.put("f", name.encode() * 1000)
                    known[name] = True
                    if round_number % 3 == 0:
                        session.delete()
                        known[name] = False
                except (AssertionError, OSError):
                    if known.get(name) is True and round_number % 3 == 0:
                        known[name] = None  # the deletion may have come or not
                    time.sleep(0.05)
        threads = [threading.Thread(target=work, args=(number,)) for number in range(3)]
        for thread in threads:
            thread.start()
        for _ in range(4):
            time.sleep(0.8)
            self.restart(signal.SIGKILL)
        stop.set()
        for thread in threads:
            thread.join()
        self.restart(signal.SIGKILL)
        self.integrity()
        self.assertGreater(len(known), 10)
        for name, there in known.items():
            reply = self.daemon.get(f"/v1/sessions/{name}/files/f")
            if there is not None:
                self.assertEqual(reply.status, 200 if there else 404, (name, reply))
            if reply.status == 200:
                self.assertEqual(reply.body, name.encode() * 1000)
        for name in os.listdir(self.daemon.state + "/workspaces"):
            for hidden in glob.glob(f"{self.daemon.state}/workspaces/{name}/.kernd-put*"):
                self.fail(f"half a file is left: {hidden}")


MOUNT = 'mount -t tmpfs -o size=256m,mode=700,uid=$0 tmpfs "$1" && shift && exec "$@"'


class FullDisk(unittest.TestCase):
    """The state directory on a file system of 256 MiB of its own."""

    def setUp(self):
        self.daemon = harness.Daemon()
        self.addCleanup(self.daemon.remove)
        if os.geteuid() != 0:
            self.skipTest("only root gives a daemon a small file system of its own")
        uid = str(pwd.getpwnam(self.daemon.user).pw_uid)
        # Seen by this daemon alone, and gone with it.
        self.daemon.wrapper = ["unshare", "--mount", "sh", "-c", MOUNT, uid, self.daemon.state]
        self.daemon.start()

    def integrity(self):
        """Asked where the database can be seen: in the daemon's own view of the files."""
        check = ("import sqlite3, sys; "
                 "print(sqlite3.connect(sys.argv[1]).execute('PRAGMA integrity_check').fetchall())")
        return subprocess.run(["nsenter", "--mount", "--target", str(self.daemon.pid),
                               "/usr/bin/python3", "-c", check, self.daemon.state + "/kernd.db"],
                              capture_output=True, text=True, check=True).stdout

    def usable(self, reply):
        self.assertIn(reply.status, (200, 201, 204, 507, 503), reply)
        if reply.status > 299:
            self.assertIn(reply.json["code"], ("store_full", "workspace_full", "not_ready"), reply)

    def test_one_session_fills_it(self):
        greedy = sessionkit.Session(self.daemon, id="greedy")
        other = sessionkit.Session(self.daemon, id="other")
        result = greedy.post("run", {"command": ["dd", "if=/dev/zero", "of=big", "bs=1M"],
                                     "timeoutS": 20})
        self.assertEqual(result.status, 200, result)
        self.assertNotEqual(result.json["exitCode"], 0)
        for call in (lambda: other.post("runCode", {"code": "print(1)", "language": "python"}),
                     lambda: other.put("x", b"y" * 100000),
                     lambda: self.daemon.post("/v1/sessions", {"id": "third"}),
                     lambda: self.daemon.post("/v1/run", {"command": ["true"]}),
                     lambda: other.patch(labels={"a": "b"}), lambda: other.post("keepalive"),
                     lambda: self.daemon.get("/v1/sessions"), lambda: self.daemon.get(other.path),
                     lambda: self.daemon.get("/readyz")):
            self.usable(call())
        greedy.delete()
        census.wait_until(lambda: self.daemon.get("/readyz").status == 200, harness.seconds(20),
                          "room again")
        self.assertEqual(other.run_code("print(1)")["stdout"], "1\n")
        self.assertIn(other.put("x", b"y").status, (201, 204))
        made = self.daemon.post("/v1/sessions", {"id": "fourth"})
        self.assertEqual(made.status, 201, made)
        listed = {row["id"] for row in self.daemon.get("/v1/sessions").json["items"]}
        self.assertLessEqual(listed, {"other", "third", "fourth"})
        for name in listed:
            self.assertEqual(self.daemon.get(f"/v1/sessions/{name}/files").status, 200)
        self.assertEqual(self.integrity(), "[('ok',)]\n")
        self.daemon.finish()

    def test_an_upload_that_does_not_fit(self):
        session = sessionkit.Session(self.daemon)
        reply = session.put("big", b"x" * (300 << 20))
        self.assertEqual(reply.status, 507, reply)
        self.assertEqual(session.names(), [])
        self.assertEqual(session.put("small", b"x").status, 201)


class Leaks(sessionkit.Case):
    ROUNDS = int(os.environ.get("KERND_LEAK_ROUNDS", "40"))

    def one_round(self, number):
        session = sessionkit.Session(self.daemon, labels={"n": str(number)})
        if number % 10 == 3:
            session.shell("sleep 5", timeoutS=0.05)
        elif number % 10 == 7:
            connection = self.daemon.connect()
            connection.request("POST", session.path + "/run",
                               {**self.daemon.authorization(), "Content-Type": "application/json"},
                               harness.as_json({"command": ["sleep", "5"]}))
            connection.reset()
        else:
            self.assert_success(session.run_code("print(1)"), "1\n")
            session.put("f", b"x")
            self.assertEqual(session.content("f"), b"x")
            session.names()
        session.delete()

    def test_nothing_grows(self):
        for number in range(8):
            self.one_round(number)

        def state():
            return (census.descriptors(self.daemon.pid),
                    int(census.status_field(self.daemon.pid, "Threads")),
                    int(census.status_field(self.daemon.pid, "VmRSS").split()[0]))
        before = state()
        for number in range(self.ROUNDS):
            self.one_round(number)
        census.wait_until(lambda: state()[0] <= before[0] + 5 and state()[1] <= before[1] + 2,
                          harness.seconds(15), f"descriptors and threads back from {before}")
        if not any(name.endswith("SAN_OPTIONS") for name in os.environ):  # sanitizers keep what is freed
            self.assertLess(state()[2], before[2] + 32 * 1024)
        self.assertEqual(census.zombies(self.daemon.pid), [])
        self.assertEqual(self.daemon.get("/v1/sessions").json["items"], [])
        harness.wait_for_none(lambda: [name for name in self.daemon.box_directories()
                                       if "session-" in name or "del_" in name])


if __name__ == "__main__":
    unittest.main()
