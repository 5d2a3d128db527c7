# SPDX-License-Identifier: Apache-2.0
"""`kernd repl` and `kernd top`, at a terminal and on pipes."""
import json
import os
import unittest

import census
import commandkit
import harness


class Piped(commandkit.Case):
    def test_statements(self):
        out = self.kernd("repl", given=b"x = 20\nx + 22\ndef f(a):\n    return a * 2\n\nf(21)\n"
                                       b"[1,\n2]\nprint('''a\nb''')\nx")
        self.assertEqual(out, b"42\n42\n[1, 2]\na\nb\n20\n")
        self.assertEqual(self.kernd("session", "list", "-q"), b"")

    def test_failures_go_on(self):
        out = self.kernd("repl", given=b"1/0\nimport sys; sys.exit(3)\n'here'\nimport os; "
                                       b"os._exit(4)\n1\n:restart\n'again'\n:quit\n'no'\n")
        self.assertEqual(out, b"'here'\n'again'\n")
        self.assertIn(b"ZeroDivisionError", self.error)
        self.assertRegex(self.error, rb"(?m)^kernd: .*exit status 4")

    def test_other_languages(self):
        self.assertEqual(self.kernd("repl", "-l", "bash", given=b"x=5\nfor i in 1 2; do\necho $i $x\n"
                                                                b"done\necho 'a\nb'\n"),
                         b"1 5\n2 5\na\nb\n")
        self.assertEqual(self.kernd("repl", "-l", "node", given=b"const a = [1,\n2]\na.length\n"),
                         b"2\n")
        self.kernd("repl", "-l", "cobol", code=125)

    def test_named_kernel_stays(self):
        self.kernd("session", "create", "--id", "named")
        self.kernd("repl", "-s", "named", "-k", "k", given=b"x = 7\n")
        self.assertEqual(self.kernd("repl", "-s", "named", "-k", "k", given=b"x\n"), b"7\n")
        self.kernd("repl", "-s", "named", given=b"1\n")
        kernels = json.loads(self.kernd("api", "GET", "/v1/sessions/named/kernels"))["items"]
        self.assertEqual([kernel["id"] for kernel in kernels], ["k"])
        self.kernd("session", "rm", "named")


class AtTerminal(commandkit.Case):
    def test_conversation(self):
        with self.terminal("repl") as terminal:
            terminal.expect(">>> ")
            terminal.type("abc = 'é☃'; abc\n")
            terminal.expect("'é☃'\r\n.*>>> ")
            terminal.type("ab\t\n")  # abc and abs( : listed
            terminal.expect("abc  abs")
            terminal.expect("NameError.*\r\n(.*\n)*.*>>> ")
            terminal.type("abc.isalp\t")
            terminal.expect(r"ha\(")
            terminal.type("\x03")
            terminal.expect(r"\r\n.*>>> ")
            terminal.type("while True: pass\n")
            terminal.expect("pass\r\n")
            # Only once it runs is there something to interrupt.
            census.wait_until(lambda: b"running" in self.kernd("ps"), harness.seconds(20), "the cell")
            terminal.type("\x03")
            terminal.expect("KeyboardInterrupt\r\n.*>>> ")
            terminal.type("for i in range(2):\n")
            terminal.expect(r"\.\.\. ")
            terminal.type("    print('line', i)\n\n")
            terminal.expect("line 0\r\nline 1\r\n.*>>> ")
            terminal.type("\x1b[A\n\n")
            terminal.expect("line 0\r\nline 1\r\n.*>>> ")
            terminal.type("print('busy'); import time; time.sleep(0.5)\n")
            terminal.expect(r"\r\nbusy\r\n")
            terminal.type("\x04")  # before the prompt, most times
            self.assertEqual(terminal.end(), 0)
        history = os.path.join(self.place, ".local/state/kernd/history.python")
        self.assertEqual(os.stat(history).st_mode & 0o777, 0o600)
        self.assertEqual(self.kernd("session", "list", "-q"), b"")

    def test_top(self):
        self.kernd("session", "create", "--id", "busy")
        execution = self.kernd("run", "-s", "busy", "-d", "sleep", "300").decode().strip()
        self.kernd("api", "POST", "/v1/sessions/busy/kernels", "--data", '{"id":"warm"}')
        with self.terminal("top", "-d", "0.1") as terminal:
            terminal.expect(r"boxes \d+ ")
            terminal.expect(f"{execution} +run +running .*busy")
            terminal.expect("warm +python +idle +0 ")
            terminal.expect(r"boxes \d+ ")
            terminal.type("q")
            terminal.expect(r"\x1b\[\?1049l")
            self.assertEqual(terminal.end(), 0)
        self.kernd("session", "rm", "busy")


if __name__ == "__main__":
    unittest.main()
