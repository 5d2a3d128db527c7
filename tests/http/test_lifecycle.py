# SPDX-License-Identifier: Apache-2.0
"""Clients that leave, a daemon that is stopped, a daemon that is killed."""
import os
import random
import signal
import socket
import threading
import time
import unittest

import census
import check
import harness
import sessionkit


def send_run(daemon, body):
    """Sends a run and leaves the connection open, unread."""
    connection = daemon.connect()
    connection.request("POST", "/v1/runCode", {**daemon.authorization(),
                                               "Content-Type": "application/json"},
                       harness.as_json(body))
    return connection


class ClientLeaves(harness.Case):
    def start(self, code="sleep 30", language="bash"):
        mark = harness.new_mark()
        connection = send_run(self.daemon, {"code": code, "language": language,
                                            "env": {"MARK": mark}})
        census.wait_until(lambda: census.with_environment(mark), harness.seconds(10), "start")
        return connection, mark

    def test_reset(self):
        connection, mark = self.start()
        connection.reset()
        self.assert_gone(mark)

    def test_orderly_close(self):
        connection, mark = self.start()
        connection.close()
        self.assert_gone(mark)

    def test_of_many(self):
        mark = harness.new_mark()
        for _ in range(50):
            connection = send_run(self.daemon, {"code": "sleep 8", "language": "bash",
                                                "env": {"MARK": mark}})
            connection.reset()
        with self.within(10):
            self.assert_success(self.run_code("print(1)"), "1\n")
        self.assert_gone(mark)
        self.daemon.wait_settled()

    def test_of_python_and_node(self):
        for language, code in (("python", "import subprocess as s; s.run(['sleep', '30'])"),
                               ("node", "require('child_process').execSync('sleep 30')")):
            connection, mark = self.start(code, language)
            connection.reset()
            self.assert_gone(mark)

    def test_while_it_waits_in_the_queue(self):
        count = self.daemon.get("/v1/stats").json["runThreads"]
        holders = [self.start("sleep 3", "bash") for _ in range(count)]
        marks = [harness.new_mark() for _ in range(30)]
        waiting = [send_run(self.daemon, {"code": "sleep 30", "language": "bash",
                                          "env": {"MARK": mark}}) for mark in marks]
        for connection in waiting:
            connection.reset()
        for connection, _ in holders:
            self.assert_success(check.reply(connection.reply()).json)
            connection.close()
        with self.within(15):
            self.assert_success(self.run_code("print(1)"), "1\n")
        for mark in marks:
            self.assert_gone(mark)

    def test_before_the_box_is_up(self):
        for pause in (0, 0.001, 0.003, 0.006, 0.01, 0.02):
            mark = harness.new_mark()
            connection = send_run(self.daemon, {"code": "sleep 30", "language": "bash",
                                                "env": {"MARK": mark}})
            time.sleep(pause)
            connection.reset()
            self.assert_gone(mark, 5)
        self.daemon.wait_settled()

    def test_descriptors_and_directories_return(self):
        self.run_code("echo", "bash")
        self.daemon.wait_settled()
        before = census.descriptors(self.daemon.pid)
        for _ in range(30):
            connection, mark = self.start()
            connection.reset()
            self.assert_gone(mark)
        # One lost a round would be 30; boxes that wait for their calls have some of their own.
        census.wait_until(lambda: census.descriptors(self.daemon.pid) <= before + 20,
                          harness.seconds(5), "descriptors closed")
        self.daemon.wait_settled()


class Stopped(unittest.TestCase):
    """SIGTERM: no new work, running work ends or is ended, exit code 0."""

    def setUp(self):
        self.daemon = harness.Daemon().start()
        self.addCleanup(self.daemon.remove)

    def ended(self):
        self.assertEqual(self.daemon.process.wait(harness.seconds(20)), 0, self.daemon.log())
        self.daemon.check_nothing_left()
        self.daemon.check_log()
        self.assertFalse(os.path.exists(self.daemon.socket_path), "the socket stayed")

    def test_running_work_is_answered(self):
        mark = harness.new_mark()
        connection = send_run(self.daemon, {"code": "sleep 1.5; echo done", "language": "bash",
                                            "env": {"MARK": mark}})
        census.wait_until(lambda: census.with_environment(mark), harness.seconds(10), "start")
        self.daemon.process.send_signal(signal.SIGTERM)
        reply = check.reply(connection.reply())
        self.assertEqual((reply.status, reply.json["stdout"]), (200, "done\n"))
        self.ended()

    def test_every_way_to_wait_ends(self):
        """No connection stays suspended: kernd aborts when it finds one at its end."""
        run = {"command": ["sh", "-c", "echo up; sleep 60"]}
        waiting = []

        def send(method, target, body=None, **headers):
            connection = self.daemon.connect(("tcp", "unix")[len(waiting) % 2])
            self.addCleanup(connection.close)
            connection.request(method, target, {
                **self.daemon.authorization(), "Content-Type": "application/json",
                **{name.replace("_", "-"): value for name, value in headers.items()}},
                b"" if body is None else harness.as_json(body))
            waiting.append(connection)

        reply = self.daemon.post("/v1/run", {**run, "id": "followed"},
                                 headers={"Prefer": "respond-async"})
        self.assertEqual(reply.status, 202)
        send("POST", "/v1/run", {**run, "id": "waited-for"})
        send("POST", "/v1/run", {**run, "id": "waited-for"})
        send("POST", "/v1/run", {**run, "id": "half-a-minute"}, Prefer="respond-async, wait=30")
        send("GET", "/v1/executions/followed?waitS=30")
        for accept in ("application/x-ndjson", "text/event-stream"):
            send("POST", "/v1/run", run, Accept=accept)
            send("GET", "/v1/executions/followed/events?follow=true", Accept=accept)
        for accept in ("application/x-ndjson", "application/json"):
            send("POST", "/v1/batch", {"items": [run, run], "concurrency": 1}, Accept=accept)
        census.wait_until(lambda: self.daemon.get("/v1/stats").json["running"] >= 7,
                          harness.seconds(20), "all that runs")
        self.daemon.process.send_signal(signal.SIGTERM)
        for connection in waiting:
            self.assertIn(connection._head()[1], (200, 202))
        self.ended()
        self.assertNotIn("never finished", self.daemon.log())

    def test_new_connections_are_refused(self):
        connection = send_run(self.daemon, {"code": "sleep 2; echo done", "language": "bash"})
        idle = self.daemon.connect()
        census.wait_until(self.daemon.box_processes, harness.seconds(10), "start")
        self.daemon.process.send_signal(signal.SIGTERM)

        def refused():
            try:
                return self.daemon.post("/v1/run", {"command": ["true"]}).status == 503
            except (ConnectionRefusedError, ConnectionResetError, AssertionError):
                return True

        census.wait_until(refused, harness.seconds(5), "refusal of new work")
        self.assertEqual(check.reply(connection.reply()).json["stdout"], "done\n")
        idle.close()
        self.ended()

    def test_long_work_is_cancelled_within_the_time(self):
        mark = harness.new_mark()
        connection = send_run(self.daemon, {"code": "trap '' TERM; sleep 600", "language": "bash",
                                            "timeoutS": 900, "env": {"MARK": mark}})
        census.wait_until(lambda: census.with_environment(mark), harness.seconds(10), "start")
        started = time.monotonic()
        self.daemon.process.send_signal(signal.SIGTERM)
        try:
            reply = check.reply(connection.reply())
            if reply.status == 200:
                self.assertEqual(reply.json["fault"]["type"], "cancelled")
            else:
                self.assertEqual(reply.json["code"], "shutting_down")
        except (AssertionError, ConnectionResetError) as lost:
            self.assertNotIsInstance(lost, AssertionError, lost)
        self.ended()
        self.assertLess(time.monotonic() - started, harness.seconds(15))
        census.wait_gone(lambda: census.with_environment(mark), harness.seconds(3), "the box")

    def test_idle_keep_alive_clients_do_not_hold_it(self):
        idle = [self.daemon.connect() for _ in range(10)]
        for connection in idle:
            connection.exchange("GET", "/healthz")
        started = time.monotonic()
        self.daemon.process.send_signal(signal.SIGTERM)
        self.ended()
        self.assertLess(time.monotonic() - started, harness.seconds(10))
        for connection in idle:
            connection.close()

    def test_half_sent_requests_do_not_hold_it(self):
        half = [self.daemon.connect() for _ in range(5)]
        for connection in half:
            connection.send(b"POST /v1/run HTTP/1.1\r\nHost: localhost\r\nContent-Le")
        self.daemon.process.send_signal(signal.SIGTERM)
        self.ended()
        for connection in half:
            connection.close()

    def test_an_upload_that_goes_on_does_not_hold_it(self):
        session = sessionkit.Session(self.daemon)
        connection = self.daemon.connect()
        connection.request("PUT", session.file("big"),
                           {**self.daemon.authorization(), "Content-Length": str(1 << 30)},
                           b"x" * (5 << 20))
        self.daemon.process.send_signal(signal.SIGTERM)
        self.daemon.process.send_signal(signal.SIGTERM)
        try:
            for _ in range(40):
                connection.send(b"x" * (1 << 20))
                time.sleep(0.02)  # on and on while it stops, whenever that is
        except OSError:
            pass
        connection.close()
        self.assertEqual(self.daemon.process.wait(harness.seconds(20)), 0, self.daemon.log())
        self.daemon.check_log()
        os.truncate(self.daemon.path("out"), 0)
        self.daemon.start()
        self.assertEqual(session.names(), [])
        session.delete()

    def test_interrupt_and_twice(self):
        self.daemon.process.send_signal(signal.SIGINT)
        self.daemon.process.send_signal(signal.SIGTERM)
        self.ended()

    def test_queued_work_is_answered_too(self):
        connections = [send_run(self.daemon, {"code": "sleep 1", "language": "bash"})
                       for _ in range(12)]
        census.wait_until(self.daemon.box_processes, harness.seconds(10), "start")
        self.daemon.process.send_signal(signal.SIGTERM)
        for connection in connections:
            try:
                reply = check.reply(connection.reply())
                self.assertIn(reply.status, (200, 503), reply)
            except ConnectionResetError:
                pass
        self.ended()


class Killed(unittest.TestCase):
    """SIGKILL of the daemon leaves no box; the next start sweeps what is left."""

    def setUp(self):
        self.daemon = harness.Daemon().start()
        self.addCleanup(self.daemon.remove)

    def test_no_box_survives(self):
        marks = [harness.new_mark() for _ in range(3)]
        codes = (("import subprocess as s; s.run(['sleep', '600'])", "python"),
                 ("setsid sleep 600 & sleep 600", "bash"),
                 ("require('child_process').execSync('sleep 600')", "node"))
        connections = [send_run(self.daemon, {"code": code, "language": language,
                                              "timeoutS": 900, "env": {"MARK": mark}})
                       for mark, (code, language) in zip(marks, codes)]
        for mark in marks:
            census.wait_until(lambda mark=mark: census.with_environment(mark),
                              harness.seconds(15), "start")
        self.assertTrue(self.daemon.box_processes())
        self.daemon.kill()
        for mark in marks:
            census.wait_gone(lambda mark=mark: census.with_environment(mark),
                             harness.seconds(5), "a box")
        census.wait_gone(self.daemon.box_processes, harness.seconds(5), "processes of boxes")
        for connection in connections:
            connection.close()

    def test_restart_on_the_same_port_sweeps(self):
        mark = harness.new_mark()
        connection = send_run(self.daemon, {"code": "sleep 600", "language": "bash",
                                            "timeoutS": 900, "env": {"MARK": mark},
                                            "files": {"left": "behind"}})
        census.wait_until(lambda: census.with_environment(mark), harness.seconds(10), "start")
        token = self.daemon.token
        self.daemon.kill()
        self.assertTrue(self.daemon.box_directories(), "the control: something was left")
        os.truncate(self.daemon.path("out"), 0)
        self.daemon.start()
        self.assertEqual(self.daemon.token, token)
        census.wait_until(lambda: not self.daemon.box_directories(), harness.seconds(10), "sweep")
        result = self.daemon.run(["echo", "again"])
        self.assertEqual(result["stdout"], "again\n")
        self.daemon.stop()
        connection.close()

    def test_killed_while_boxes_come_and_go(self):
        for _ in range(15):
            self.kill_under_load()
            os.truncate(self.daemon.path("out"), 0)
            self.daemon.start()

    def kill_under_load(self):
        stop = threading.Event()

        def client(_):
            while not stop.is_set():
                try:
                    self.daemon.run(["true"])
                except (OSError, AssertionError):
                    return

        threads = [threading.Thread(target=client, args=(i,)) for i in range(4)]
        for thread in threads:
            thread.start()
        time.sleep(random.uniform(0.05, 0.15))  # any moment in the middle of it is a fair one
        self.daemon.kill()
        stop.set()
        for thread in threads:
            thread.join()
        census.wait_gone(self.daemon.box_processes, harness.seconds(5), "processes of boxes")


class SocketFile(unittest.TestCase):
    def test_a_stale_socket_is_replaced(self):
        daemon = harness.Daemon()
        self.addCleanup(daemon.remove)
        stale = socket.socket(socket.AF_UNIX)
        stale.bind(daemon.socket_path)
        stale.close()
        os.chmod(daemon.socket_path, 0o777)
        if os.geteuid() == 0:
            status = os.stat(daemon.runtime)
            os.chown(daemon.socket_path, status.st_uid, status.st_gid)
        daemon.start()
        result = daemon.result("/v1/run", {"command": ["echo", "x"]}, via="unix") \
            if os.geteuid() != 0 else None
        self.assertTrue(result is None or result["stdout"] == "x\n")
        daemon.stop()

    def test_a_file_in_the_way_is_not_deleted(self):
        daemon = harness.Daemon()
        self.addCleanup(daemon.remove)
        with open(daemon.socket_path, "w", encoding="ascii") as file:
            file.write("precious")
        daemon.spawn()
        self.assertGreater(daemon.process.wait(harness.seconds(20)), 0)
        with open(daemon.socket_path, encoding="ascii") as file:
            self.assertEqual(file.read(), "precious")


if __name__ == "__main__":
    unittest.main()
