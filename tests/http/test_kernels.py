# SPDX-License-Identifier: Apache-2.0
"""Kernels: how they come, what they tell, how cells queue, how they end."""
import json
import signal
import time

import census
import harness
import kernelkit


class Life(kernelkit.Case):
    def test_open_use_delete(self):
        for language, code, wanted in (("python", "x = 20\nprint(x + 1)", "21\n"),
                                       ("bash", "x=20; echo $((x + 1))", "21\n"),
                                       ("node", "const x = 20; console.log(x + 1)", "21\n")):
            with self.subTest(language=language):
                kernel = self.kernel(language=language)
                self.assertEqual(kernel.opened["language"], language)
                self.assertRegex(kernel.opened["interpreter"], rf"^{language} v?\d+\.\d+")
                self.assertEqual((kernel.opened["timeoutS"], kernel.opened["idleTimeoutS"],
                                  kernel.opened["ttlS"]), (30, 600, 3600))
                self.assert_success(kernel.cell(code), wanted)
                self.assertEqual(kernel.get()["cells"], 1)
                again = {"python": "x", "bash": "echo $x", "node": "x"}[language]
                result = kernel.cell(again)
                self.assertIn("20", json.dumps([result["stdout"], result["results"]]))
                self.assertGreater(kernel.get()["memoryBytes"], 1 << 20)
                kernel.delete()
                kernel.delete()
                self.assert_problem(self.daemon.get(kernel.path), 404, "kernel_not_found")
                self.assert_problem(kernel.post("1"), 404, "kernel_not_found")

    def test_default_body(self):
        reply = self.daemon.request("POST", f"/v1/sessions/{self.session}/kernels", {})
        self.assertEqual((reply.status, reply.json["language"]), (201, "python"), reply)
        reply = self.daemon.request("POST", f"/v1/sessions/{self.session}/kernels", b"")
        self.assertEqual(reply.status, 201, reply)
        listed = self.daemon.get(f"/v1/sessions/{self.session}/kernels").json["items"]
        self.assertEqual(len(listed), 2)
        self.assertEqual(self.daemon.get(f"/v1/sessions/{self.session}").json["kernels"], 2)

    def test_timers_and_limits_are_told(self):
        kernel = self.kernel(timeoutS=7, idleTimeoutS=None, ttlS=50, id="mine")
        state = kernel.get()
        self.assertEqual((state["id"], state["timeoutS"], state["idleTimeoutS"], state["ttlS"]),
                         ("mine", 7, None, 50))
        self.assertEqual(kernel.cell("1")["limits"]["timeoutS"], 7)
        self.assertEqual(kernel.cell("1", timeoutS=3)["limits"]["timeoutS"], 3)
        limits = kernel.cell("1", maxOutputBytes=100)["limits"]
        self.assertEqual((limits["maxOutputBytes"], limits["memoryMb"]), (100, 512))

    def test_the_session_gives_limits_and_environment(self):
        session = self.new_session(env={"WORD": "hello"}, memoryMb=300, timeoutS=11)
        kernel = self.kernel(session)
        self.assertEqual(kernel.value("import os; os.environ['WORD']"), "'hello'")
        limits = kernel.cell("open('made', 'w').write('1') and None")["limits"]
        self.assertEqual((limits["memoryMb"], limits["timeoutS"]), (300, 11))
        run = self.daemon.result(f"/v1/sessions/{session}/run", {"command": ["cat", "made"]})
        self.assert_success(run, "1")

    def test_ids(self):
        first = self.kernel(id="k")
        self.assert_problem(self.daemon.post(first.base, {"id": "k"}), 409, "kernel_exists")
        other = self.kernel(self.new_session(), id="k")
        first.cell("x = 1")
        self.assertIn("NameError", other.cell("x")["stderr"])
        for bad in ("", "a/b", "-x", "x" * 65, "ü"):
            self.assert_problem(self.daemon.post(first.base, {"id": bad}), 422, "bad_value", "/id")
        self.assert_problem(self.daemon.get(f"{first.base}/nope"), 404, "kernel_not_found")
        self.assert_problem(self.daemon.get("/v1/sessions/nope/kernels/k"), 404,
                            "session_not_found")
        self.assert_problem(self.daemon.get("/v1/sessions/nope/kernels"), 404, "session_not_found")
        self.assert_problem(self.daemon.post("/v1/sessions/nope/kernels", {}), 404,
                            "session_not_found")

    def test_bodies(self):
        kernel = self.kernel()
        for body, status, code, pointer in (
                ({"language": "perl"}, 422, "bad_value", "/language"),
                ({"timeoutS": 0}, 422, "bad_value", "/timeoutS"),
                ({"timeoutS": 1e6}, 422, "limit_exceeds_maximum", "/timeoutS"),
                ({"idleTimeoutS": -1}, 422, "bad_value", "/idleTimeoutS"),
                ({"ttl": 5}, 422, "unknown_field", "/ttl"), ([], 400, "bad_json", None)):
            with self.subTest(body=body):
                self.assert_problem(self.daemon.post(kernel.base, body), status, code, pointer)
        for body, status, code, pointer in (
                ({}, 422, "bad_value", "/code"), ({"code": 5}, 422, "bad_value", "/code"),
                ({"code": "1\0"}, 400, "bad_json", "/code"),
                ({"code": "1", "onTimeout": "wait"}, 422, "bad_value", "/onTimeout"),
                ({"code": "1", "language": "bash"}, 422, "unknown_field", "/language"),
                ({"code": "1", "timeoutS": 1e7}, 422, "limit_exceeds_maximum", "/timeoutS"),
                ({"code": "1", "maxOutputBytes": 1 << 40}, 422, "limit_exceeds_maximum",
                 "/maxOutputBytes")):
            with self.subTest(body=body):
                self.assert_problem(self.daemon.post(f"{kernel.path}/cells", body), status, code,
                                    pointer)
        self.assertEqual(kernel.get()["cells"], 0)

    def test_nothing_is_left_of_one_that_can_not_start(self):
        session = self.new_session(pids=1, memoryMb=16)
        base = f"/v1/sessions/{session}/kernels"
        reply = self.daemon.post(base, {"id": "k", "language": "node"})
        self.assert_problem(reply, 503, "box_start_failed")
        self.assertEqual(self.daemon.get(base).json["items"], [])
        self.assert_problem(self.daemon.get(f"{base}/k"), 404, "kernel_not_found")

    def test_a_client_that_leaves_the_opening(self):
        connection = self.daemon.connect()
        body = b"{}"
        connection.request("POST", f"/v1/sessions/{self.session}/kernels",
                           {**self.daemon.authorization(), "Content-Type": "application/json"},
                           body)
        connection.reset()
        listed = f"/v1/sessions/{self.session}/kernels"
        census.wait_until(lambda: self.daemon.get(listed).json["items"] == [],
                          harness.seconds(10), "the kernel that nobody knows to go")

    def test_idempotent_opening(self):
        headers = {"Idempotency-Key": "open-" + harness.new_mark()}
        base = f"/v1/sessions/{self.session}/kernels"
        first = self.daemon.post(base, {}, headers=headers)
        second = self.daemon.post(base, {}, headers=headers)
        self.assertEqual((first.status, second.status), (201, 201), second)
        self.assertEqual(first.json["id"], second.json["id"])
        self.assertEqual(second.header("Idempotency-Replayed"), "true")
        self.assertEqual(len(self.daemon.get(base).json["items"]), 1)

    def test_deleting_is_quick_and_takes_all_with_it(self):
        mark = harness.new_mark()
        session = self.new_session(env={"MARK": mark})
        kernel = self.kernel(session)
        kernel.cell("import subprocess; p = subprocess.Popen(['sleep', '1000'])")
        # Behind exec(2) there is a moment without an environment.
        census.wait_until(lambda: census.with_environment(mark), harness.seconds(10), "its child")
        with self.within(2):
            kernel.delete()
        self.assert_gone(mark)

    def test_exit_handlers_run(self):
        kernel = self.kernel()
        kernel.cell("import atexit; atexit.register(lambda: open('bye', 'w').write('1'))")
        kernel.delete()
        self.assertEqual(self.daemon.get(f"/v1/sessions/{self.session}/files/bye").body, b"1")

    def test_a_session_takes_its_kernels_with_it(self):
        mark = harness.new_mark()
        reply = self.daemon.post("/v1/sessions", {"env": {"MARK": mark}})
        kernel = self.kernel(reply.json["id"])
        wait = kernel.start(f"import subprocess; subprocess.run(['sh', '-c', 'sleep 60; :', '{mark}'])")
        # By its argument: the environment of a kernel that was booted has the mark as well.
        census.wait_until(lambda: census.with_argument(mark), harness.seconds(10), "its child")
        self.assertEqual(self.daemon.request("DELETE", f"/v1/sessions/{kernel.session}").status,
                         204)
        self.assert_fault(wait().json, "cancelled")
        self.assert_gone(mark)
        self.assert_problem(self.daemon.get(kernel.path), 404, "session_not_found")


class Spares(kernelkit.Case):
    daemon_arguments = ("--spares", "4")

    def test_a_box_that_was_started_ahead_for_calls(self):
        session = self.new_session(env={"WORD": "hello"}, pids=40)
        for number in range(4):
            run = self.daemon.result(f"/v1/sessions/{session}/runCode",
                                     {"code": "print(1)", "language": "python"})
            self.assert_success(run, "1\n")
            time.sleep(0.3)
            kernel = self.kernel(session, id=f"k{number}")
            self.assertEqual(kernel.value("import os; os.environ['WORD'], os.getcwd()"),
                             "('hello', '/workspace')")
            kernel.cell("x = 1")
            self.assertEqual(kernel.value("x"), "1")
            self.assertEqual(kernel.opened["cells"], 0)
            self.assertEqual(kernel.interrupt()["interrupted"], False)
            self.assert_alive(kernel)
            kernel.delete()


class Queue(kernelkit.Case):
    def test_cells_wait_for_their_turn(self):
        kernel = self.kernel()
        first = kernel.start("open('begun', 'w'); import time; time.sleep(2); print('A')")
        kernel.wait_for_file("begun")
        second = kernel.start("print('B')", timeoutS=1)
        census.wait_until(lambda: kernel.get()["queued"] == 1, harness.seconds(5), "the queue")
        with self.within(2):
            run = self.daemon.result(f"/v1/sessions/{self.session}/runCode",
                                     {"code": "print('C')", "language": "python"})
        self.assert_success(run, "C\n")
        self.assert_success(first().json, "A\n")
        result = second().json
        self.assert_success(result, "B\n")  # waiting does not eat its time
        self.assertGreater(result["usage"]["queueMs"], 500)
        self.assert_alive(kernel)

    def test_many_at_once(self):
        kernel = self.kernel()
        results = harness.parallel(20, lambda i: kernel.cell(f"print({i})"))
        for i, result in enumerate(results):
            self.assert_success(result, f"{i}\n")
        self.assertEqual(kernel.get()["cells"], 20)

    def test_the_queue_has_an_end(self):
        kernel = self.kernel()
        first = kernel.start("open('begun', 'w'); import time; time.sleep(60)", id="blocker")
        kernel.wait_for_file("begun")
        for i in range(64):
            reply = self.daemon.post(f"{kernel.path}/cells", {"code": "print(1)"},
                                     headers={"Prefer": "respond-async"})
            self.assertEqual(reply.status, 202, reply)
        reply = kernel.post("1")
        self.assert_problem(reply, 503, "queue_full")
        kernel.delete()
        self.assert_fault(first().json, "cancelled")

    def test_a_time_limit_of_the_queue_touches_nothing(self):
        kernel = self.kernel()
        first = kernel.start("open('begun', 'w'); import time; time.sleep(1.5); y = 5; print('A')")
        kernel.wait_for_file("begun")
        self.assert_problem(kernel.post("print('B')", queueTimeoutS=0.3), 503, "queue_timeout")
        self.assert_success(first().json, "A\n")
        self.assertEqual(kernel.value("y"), "5")
        self.assertEqual(kernel.get()["cells"], 2)

    def test_a_cell_cancelled_in_the_queue_never_runs(self):
        kernel = self.kernel()
        first = kernel.start("open('begun', 'w'); import time; time.sleep(1.5); print('A')")
        kernel.wait_for_file("begun")
        second = kernel.start("open('late', 'w')", id="second-" + kernel.id)
        census.wait_until(lambda: kernel.get()["queued"] == 1, harness.seconds(5), "the queue")
        target = f"/v1/executions/second-{kernel.id}"
        self.assertEqual(self.daemon.get(target).json["queuePosition"], 1)
        self.daemon.request("DELETE", target)
        result = second().json
        self.assert_fault(result, "cancelled")
        self.assertIsNone(result["stateKept"])
        self.assert_success(first().json, "A\n")
        self.assertEqual(self.daemon.get(f"/v1/sessions/{self.session}/files/late").status, 404)


class Forms(kernelkit.Case):
    def events(self, kernel, code, accept="application/x-ndjson", **options):
        reply = self.daemon.post(f"{kernel.path}/cells", {"code": code, **options},
                                 headers={"Accept": accept})
        self.assertEqual(reply.status, 200, reply)
        return reply

    def test_stream(self):
        kernel = self.kernel()
        reply = self.events(kernel, "print('one'); display('two'); 3")
        events = [json.loads(line) for line in reply.body.splitlines()]
        self.assertEqual([event["seq"] for event in events], list(range(len(events))))
        kinds = [event["type"] for event in events]
        self.assertEqual((kinds[:2], kinds[-1]), (["queued", "started"], "exit"))
        self.assertEqual("".join(e["data"] for e in events if e["type"] == "stdout"), "one\n")
        self.assertEqual(kinds.count("result"), 2)
        end = events[-1]
        self.assertEqual(json.dumps(end).count('"stateKept": true'), 1, end)
        self.assertIn(kernel.id, json.dumps(end))

    def test_server_sent_events(self):
        kernel = self.kernel()
        reply = self.events(kernel, "print('one')", accept="text/event-stream")
        self.assertEqual(reply.media_type, "text/event-stream")
        self.assertIn(b"event: exit", reply.body)

    def test_output_comes_while_the_cell_runs(self):
        kernel = self.kernel()
        connection = self.daemon.connect()
        connection.request("POST", f"{kernel.path}/cells",
                           {**self.daemon.authorization(), "Content-Type": "application/json",
                            "Accept": "application/x-ndjson"},
                           harness.as_json({"code": "print('now')\nimport time, os\n"
                                                    "while not os.path.exists('go'): "
                                                    "time.sleep(0.01)\nprint('then')"}))
        while b'"now' not in connection.buffer:
            self.assertTrue(connection.more())
        self.assertNotIn(b"exit", connection.buffer)
        made = self.daemon.request("PUT", f"/v1/sessions/{self.session}/files/go", b"",
                                   media_type="application/octet-stream")
        self.assertIn(made.status, (201, 204))
        while b'"exit"' not in connection.buffer:
            self.assertTrue(connection.more())
        self.assertIn(b'"then', connection.buffer)
        connection.close()

    def test_asynchronous(self):
        kernel = self.kernel()
        reply = self.daemon.post(f"{kernel.path}/cells", {"code": "6*7"},
                                 headers={"Prefer": "respond-async"})
        self.assertEqual(reply.status, 202, reply)
        done = self.daemon.get(reply.header("Location") + "?waitS=10").json
        self.assertEqual((done["state"], done["kernelId"], done["kind"]),
                         ("done", kernel.id, "cell"))
        self.assertEqual(done["results"][0]["data"]["text/plain"], "42")
        self.assertIs(done["stateKept"], True)
        row = self.daemon.get(f"/v1/executions?sessionId={self.session}").json["items"][0]
        self.assertEqual((row["id"], row["state"]), (done["id"], "done"))

    def test_the_same_id_is_the_same_cell(self):
        kernel = self.kernel()
        body = {"code": "n = globals().get('n', 0) + 1; n", "id": "once-" + kernel.id}
        first = self.daemon.post(f"{kernel.path}/cells", body)
        second = self.daemon.post(f"{kernel.path}/cells", body)
        self.assertEqual((first.status, second.status), (200, 200))
        self.assertEqual(first.json["results"], second.json["results"])
        self.assertEqual(kernel.value("n"), "1")
        body["code"] = "2"
        self.assert_problem(self.daemon.post(f"{kernel.path}/cells", body), 409,
                            "execution_exists")


class Interrupts(kernelkit.Case):
    LOOPS = {"python": "x = 5\nopen('begun', 'w').close()\nwhile True: pass",
             "bash": "x=5; : >begun; while :; do :; done",
             "node": "var x = 5; require('fs').writeFileSync('begun', ''); for (;;) {}"}
    KEPT = {"python": "print(x)", "bash": "echo $x", "node": "console.log(x)"}

    def begin(self, language, **options):
        kernel = self.kernel(self.new_session(), language=language)
        wait = kernel.start(self.LOOPS[language], **options)
        kernel.wait_for_file("begun")
        return kernel, wait

    def test_interrupt_keeps_the_state(self):
        for language in self.LOOPS:
            with self.subTest(language=language):
                kernel, wait = self.begin(language)
                self.assertEqual(kernel.get()["state"], "busy")
                with self.within(4):
                    answer = kernel.interrupt()
                result = wait().json
                self.assertEqual((answer["interrupted"], answer["killed"]), (True, False), result)
                self.assertEqual(answer["executionId"], result["id"])
                self.assert_fault(result, "cancelled")
                self.assertIs(result["stateKept"], True)
                self.assertIn("kept", result["fault"]["message"])
                self.assertEqual(result["exitCode"], 130)
                self.assert_success(kernel.cell(self.KEPT[language]), "5\n")

    def test_a_shell_whose_command_did_not_hear_the_interrupt(self):
        """It waits for its command, as for one that it has started just after the interrupt."""
        kernel = self.kernel(self.new_session(), language="bash")
        self.assert_success(kernel.cell("x=5"))
        wait = kernel.start("( heard=0; trap '(( ++heard < 2 )) || exit 1' INT; : >begun\n"
                            "  while :; do :; done ); x=6")
        kernel.wait_for_file("begun")
        answer = kernel.interrupt()
        self.assertEqual((answer["interrupted"], answer["killed"]), (True, False), wait().json)
        self.assert_success(kernel.cell("echo $x"), "5\n")

    def test_interrupt_of_nothing(self):
        kernel = self.kernel()
        self.assertEqual(kernel.interrupt(),
                         {"interrupted": False, "killed": False, "executionId": None})
        self.assert_alive(kernel)

    def test_one_that_goes_on_is_killed(self):
        kernel = self.kernel()
        wait = kernel.start("import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
                            "open('begun', 'w').close()\nwhile True: pass")
        kernel.wait_for_file("begun")
        answer = kernel.interrupt()
        result = wait().json
        self.assertEqual((answer["interrupted"], answer["killed"]), (True, True), result)
        self.assert_fault(result, "cancelled")
        self.assertIs(result["stateKept"], False)
        self.assertIn("lost", result["fault"]["message"])
        self.assert_dead(kernel, "^cancelled")
        self.assert_restarts(kernel)

    def test_deadline_interrupts(self):
        for language in self.LOOPS:
            with self.subTest(language=language):
                kernel, wait = self.begin(language, timeoutS=1.5)
                result = wait().json
                self.assert_fault(result, "timeout")
                self.assertIn("1.5", result["fault"]["message"])
                self.assertIs(result["stateKept"], True)
                self.assert_success(kernel.cell(self.KEPT[language]), "5\n")

    def test_deadline_kills_when_asked_to(self):
        kernel, wait = self.begin("python", timeoutS=1, onTimeout="kill")
        result = wait().json
        self.assert_fault(result, "timeout")
        self.assertIs(result["stateKept"], False)
        self.assert_dead(kernel, "^timeout")

    def test_deleting_the_execution_interrupts_the_cell(self):
        kernel, wait = self.begin("python", id="cell-" + harness.new_mark())
        listed = self.daemon.get(f"/v1/executions?sessionId={kernel.session}").json["items"]
        self.daemon.request("DELETE", f"/v1/executions/{listed[0]['id']}")
        result = wait().json
        self.assert_fault(result, "cancelled")
        self.assertIs(result["stateKept"], True)
        self.assertEqual(kernel.value("x"), "5")

    def test_a_client_that_leaves_interrupts_its_cell(self):
        kernel = self.kernel()
        for accept in ("application/json", "application/x-ndjson"):
            connection = self.daemon.connect()
            connection.request("POST", f"{kernel.path}/cells",
                               {**self.daemon.authorization(), "Accept": accept,
                                "Content-Type": "application/json"},
                               harness.as_json({"code": "x = 1\nopen('begun', 'w').close()\n"
                                                        "import time; time.sleep(8)\n"
                                                        "open('late', 'w')"}))
            kernel.wait_for_file("begun")
            connection.reset()
            with self.within(3):
                self.assertEqual(kernel.value("x"), "1")
            self.daemon.request("DELETE", f"/v1/sessions/{self.session}/files/begun")
        late = self.daemon.get(f"/v1/sessions/{self.session}/files/late")
        self.assertEqual(late.status, 404)

    def test_fifty_clients_that_leave(self):
        kernel = self.kernel()
        for _ in range(50):
            connection = self.daemon.connect()
            connection.request("POST", f"{kernel.path}/cells",
                               {**self.daemon.authorization(),
                                "Content-Type": "application/json"},
                               harness.as_json({"code": "import time; time.sleep(8)"}))
            connection.reset()
        with self.within(20):
            self.assert_success(kernel.cell("print(1)"), "1\n")

    def test_one_that_stays(self):
        kernel = self.kernel()
        connection = self.daemon.connect()
        connection.request("POST", f"{kernel.path}/cells",
                           {**self.daemon.authorization(), "Content-Type": "application/json"},
                           harness.as_json({"code": "import time; time.sleep(0.5)\n"
                                                    "open('done', 'w')",
                                            "onDisconnect": "continue"}))
        kernel.wait_for("busy")
        connection.reset()
        kernel.wait_for_file("done")


class Restarts(kernelkit.Case):
    def test_a_clean_interpreter(self):
        kernel = self.kernel()
        kernel.cell("x = 1; open('kept', 'w').write('1')")
        self.assert_restarts(kernel)
        self.assertIn("NameError", kernel.cell("x")["stderr"])
        self.assertEqual(kernel.value("open('kept').read()"), "'1'")

    def test_what_runs_and_what_waits_is_dropped(self):
        kernel = self.kernel()
        cells = [kernel.start("open('begun', 'w').close()\nwhile True: pass")]
        kernel.wait_for_file("begun")
        cells += [kernel.start("open('late', 'w')") for _ in range(3)]
        census.wait_until(lambda: kernel.get()["queued"] == 3, harness.seconds(5), "the queue")
        with self.within(5):
            self.assert_restarts(kernel)
        for wait in cells:
            result = wait().json
            self.assert_fault(result, "cancelled")
            self.assertIn("restarted", result["fault"]["message"])
            self.assertIsNot(result["stateKept"], True)
        self.assertEqual(self.daemon.get(f"/v1/sessions/{self.session}/files/late").status, 404)

    def test_many_at_once(self):
        kernel = self.kernel()
        kernel.cell("x = 1")
        replies = harness.parallel(6, lambda _: kernel.restart())
        self.assertEqual({reply.status for reply in replies}, {200}, replies)
        self.assertIn("NameError", kernel.cell("x")["stderr"])
        self.assert_alive(kernel)

    def test_deleting_while_others_wait(self):
        kernel = self.kernel()

        def act(index):
            if index % 3 == 0:
                return self.daemon.request("DELETE", kernel.path).status
            return (kernel.restart() if index % 3 == 1 else kernel.post("1")).status
        statuses = harness.parallel(9, act)
        for index, status in enumerate(statuses):
            self.assertIn(status, ((204,), (200, 404, 409), (200, 404, 409))[index % 3], statuses)
        self.assertEqual(self.daemon.get(kernel.path).status, 404)


class Sleep(kernelkit.Case):
    def work(self, mark):
        """Clock ticks that the processes have used."""
        ticks = 0
        for pid in census.with_environment(mark):
            with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
                ticks += sum(map(int, file.read().rsplit(")", 1)[1].split()[11:13]))
        return ticks

    def stopped(self, mark):
        before = self.work(mark)
        time.sleep(0.3)
        return self.work(mark) == before

    def test_frozen_and_woken(self):
        mark = harness.new_mark()
        session = self.new_session(env={"MARK": mark})
        kernel = self.kernel(session, idleTimeoutS=0.5)
        kernel.cell("import subprocess; x = 1\n"
                    "p = subprocess.Popen(['sh', '-c', 'while :; do :; done'])")
        self.assertFalse(self.stopped(mark))
        kernel.wait_for("frozen")
        census.wait_until(lambda: self.stopped(mark), harness.seconds(5), "all to be stopped")
        self.assertGreater(kernel.get()["memoryBytes"], 1 << 20)
        started = time.monotonic()
        self.assertEqual(kernel.value("x"), "1")
        self.assertLess(time.monotonic() - started, harness.seconds(1))
        kernel.wait_for("frozen")
        with self.within(2):
            kernel.delete()
        self.assert_gone(mark)

    def test_files_that_are_restored(self):
        """Under a kernel, asleep or awake, the workspace stays the directory that it is."""
        kernel = self.kernel(idleTimeoutS=0.3)
        base = f"/v1/sessions/{self.session}"
        kernel.cell("open('a', 'w').write('old') and None")
        made = self.daemon.post(f"{base}/snapshots", {})
        self.assertEqual(made.status, 201, made)
        for state in ("idle", "frozen"):
            with self.subTest(state=state):
                kernel.cell("open('a', 'w').write('new') and None")
                if state == "frozen":
                    kernel.wait_for(state)
                reply = self.daemon.post(f"{base}/restore", {"snapshotId": made.json["id"]})
                self.assertEqual(reply.status, 200, reply)
                self.assertEqual(kernel.value("open('a').read()"), "'old'")
        wait = kernel.start("open('begun', 'w').close()\nimport time; time.sleep(60)")
        kernel.wait_for_file("begun")
        reply = self.daemon.post(f"{base}/restore", {"snapshotId": made.json["id"]})
        self.assert_problem(reply, 409, "session_busy")
        kernel.interrupt()
        self.assertIs(wait().json["stateKept"], True)

    def test_a_frozen_one_restarts(self):
        kernel = self.kernel(idleTimeoutS=0.2)
        kernel.wait_for("frozen")
        self.assert_restarts(kernel)

    def test_closed_after_its_time(self):
        kernel = self.kernel(ttlS=0.5, idleTimeoutS=0.2)
        kernel.wait_for("dead")
        self.assert_dead(kernel, "^closed: unused")
        self.assert_restarts(kernel)

    def test_never(self):
        kernel = self.kernel(ttlS=None, idleTimeoutS=None)
        time.sleep(2.5)
        self.assertEqual(kernel.get()["state"], "idle")

    def test_it_keeps_its_session_until_it_sleeps(self):
        session = self.new_session(idleTimeoutS=1)
        kernel = self.kernel(session, idleTimeoutS=4)
        time.sleep(2.5)
        self.assertEqual(kernel.get()["state"], "idle")
        census.wait_until(lambda: self.daemon.get(kernel.path).status == 410, harness.seconds(20),
                          "the session to go")
        self.assert_problem(kernel.post("1"), 410, "session_expired")

    def test_a_dead_one_does_not_keep_its_session(self):
        session = self.new_session(idleTimeoutS=1)
        kernel = self.kernel(session, idleTimeoutS=None)
        kernel.cell("import os; os._exit(1)")
        census.wait_until(lambda: self.daemon.get(kernel.path).status == 410, harness.seconds(20),
                          "the session to go")


class Servers(kernelkit.Case):
    """Kernels end with their server, and the next one says so."""

    def test_lost(self):
        daemon = harness.Daemon().start()
        self.addCleanup(daemon.remove)
        self.assertEqual(daemon.post("/v1/sessions", {"id": "s"}).status, 201)
        for how in ("kill", "finish"):
            with self.subTest(how=how):
                kernel = kernelkit.Kernel(daemon, "s", id=f"k-{how}")
                kernel.cell("open('kept', 'w').write('1')")
                dead = kernelkit.Kernel(daemon, "s", id=f"d-{how}")
                dead.cell("import os; os._exit(3)")
                getattr(daemon, how)()
                daemon.port = 0
                with open(daemon.path("out"), "w", encoding="utf-8"):
                    pass
                daemon.start()
                self.assert_problem(daemon.get(kernel.path), 410, "kernel_lost")
                reply = kernel.post("1")
                self.assert_problem(reply, 410, "kernel_lost")
                self.assertRegex(reply.json["detail"], "server was (stopped|restarted)")
                reply = dead.post("1")
                self.assert_problem(reply, 410, "kernel_lost")
                self.assertIn("exit status 3", reply.json["detail"])
                self.assert_problem(kernel.restart(), 410, "kernel_lost")
                self.assertEqual(daemon.get("/v1/sessions/s/kernels").json["items"], [])
                again = kernelkit.Kernel(daemon, "s", id=f"k-{how}")
                self.assertEqual(again.value("open('kept').read()"), "'1'")
                again.delete()
                self.assert_problem(daemon.get(kernel.path), 404, "kernel_not_found")
        self.assertEqual(daemon.request("DELETE", "/v1/sessions/s").status, 204)
        daemon.stop()

    def test_a_stop_ends_running_cells(self):
        daemon = harness.Daemon().start()
        self.addCleanup(daemon.remove)
        daemon.post("/v1/sessions", {"id": "s"})
        kernels = [kernelkit.Kernel(daemon, "s") for _ in range(3)]
        waits = [kernel.start("import time; time.sleep(60)") for kernel in kernels]
        for kernel in kernels:
            kernel.wait_for("busy")
        daemon.process.send_signal(signal.SIGTERM)
        self.assertEqual(daemon.process.wait(harness.seconds(20)), 0)
        for wait in waits:
            reply = wait()
            self.assertTrue(reply.status == 503 or reply.json["fault"]["type"] == "cancelled",
                            reply)
        self.assertEqual(daemon.box_processes(), [])


if __name__ == "__main__":
    import unittest

    unittest.main()
