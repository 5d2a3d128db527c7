# SPDX-License-Identifier: Apache-2.0
"""Cells of a bash kernel."""
import os
import time
import unittest

from driver_harness import BUILD, LIBRARY, Kernel

class Shell(Kernel):
    def command(self, program, address):
        return [os.path.join(BUILD, "kernd-shell"), address,
                os.path.join(LIBRARY, "driver_shell.sh")]


class InAKernel(unittest.TestCase):
    def setUp(self):
        self.kernel = Shell()
        self.addCleanup(lambda: self.kernel.close())

    def check(self, code, exit_code=0, stdout="", stderr="", **options):
        done = self.kernel.cell(code, **options)
        self.assertEqual((done.code, done.stdout, done.stderr, done.results),
                         (exit_code, stdout, stderr, []), code)

    def until(self, text):
        data = b""
        deadline = time.monotonic() + 30
        while text.encode() not in data and time.monotonic() < deadline:
            data += self.kernel.process.stdout.read() or b""
        self.assertIn(text.encode(), data)

    def test_ready_names_the_shell(self):
        self.assertRegex(self.kernel.ready[1], rb"^\x01bash \d+\.\d+")

    def test_state_stays(self):
        self.check("x=1; cd /; f() { echo f $1; return 3; }; set -f; export E=e; umask 077")
        self.check("echo $x; pwd; f a", 3, "1\n/\nf a\n")
        self.check("echo $? $E; umask; echo *; set +f", 0, "3 e\n0077\n*\n")
        self.check("sleep 60 &")
        self.assertEqual(self.kernel.cell("kill %1; wait %1").code, 143)

    def test_exit_codes(self):
        self.check("false", 1)
        self.check("(exit 5)", 5)
        self.check("return 9", 9)
        self.check("true")
        done = self.kernel.cell("no-such-command")
        self.assertEqual(done.code, 127)
        self.assertRegex(done.stderr, r"^/tmp/\.kernd-\w+/cell-5: line 1: no-such-command: command not found\n$")
        self.assertIn("syntax error", self.kernel.cell("if then").stderr)
        self.check("echo on", 0, "on\n")

    def test_exit_keeps_the_state(self):
        self.check("arr=(a 'b c'); declare -A m=([k]='v w'); declare -i n=3; declare -r R=5\n"
                   "ml=$'a\\nb'; shopt -s expand_aliases; alias say='echo said'; export E=1\n"
                   "g() { exit 8; }; h() { echo h; }; export -f h; trap 'echo usr1' USR1; cd /usr")
        self.check("exit 4", 4)
        self.check("echo $? ${arr[1]} ${m[k]} $R $(printenv E); pwd; say x; n+=1; echo $n", 0,
                   "4 b c v w 5 1\n/usr\nsaid x\n4\n")
        self.check("g", 8)
        self.check('echo "$ml"; bash -c h; kill -USR1 $$', 0, "a\nb\nh\nusr1\n")
        self.check("set -e; false; echo no", 1)
        self.check("case $- in *e*) echo e;; esac; set +e", 0, "e\n")
        self.check("x=$(exit 6); echo $?; builtin exit 2", 2, "6\n")
        self.check("trap 'echo bye' EXIT; exit 3", 3, "bye\n")
        self.check("exit 0", 0)
        done = self.kernel.cell("set -u; : $nope; echo no")
        self.assertEqual((done.code, done.stdout), (1, ""))
        self.assertIn("nope: unbound variable", done.stderr)
        self.check("echo ${arr[0]}; set +u", 0, "a\n")

    def test_streams(self):
        self.check("read a; echo [$a]", 0, "[]\n")
        self.check("read a; echo [$a]; cat", 0, "[one]\ntwo", stdin=b"one\ntwo")
        self.check("exec >/dev/null; echo lost")
        self.check("echo back; echo e >&2", 0, "back\n", "e\n")
        self.check("exec 1>&- 2>&-")
        self.check("echo back", 0, "back\n")
        self.check("ls /proc/self/fd", 0, "0\n1\n2\n3\n")
        self.check("printf 'no newline'", 0, "no newline")
        self.check("set -x; echo t", 0, "t\n", "++ echo t\n")
        self.check("set +x", 0, "", "++ set +x\n")
        self.check("echo $0 $#", 0, "bash 0\n")

    def test_a_background_child_does_not_hold_the_cell(self):
        begun = time.monotonic()
        self.check("sleep 50 & echo done", 0, "done\n")
        self.assertLess(time.monotonic() - begun, 20)

    def test_interrupts(self):
        for code in ("while :; do :; done", "sleep 20", "for i in 1 2 3; do sleep 20; done",
                     "cat /dev/zero >/dev/null", "f() { sleep 20; }; f"):
            self.kernel.start("x=5; echo begun; " + code)
            self.until("begun")
            self.kernel.interrupt()
            done = self.kernel.finish()
            self.assertEqual((done.code, done.interrupted), (130, True))
            self.check("echo $x", 0, "5\n")
        self.kernel.interrupt()
        self.check("sleep 0.2; echo whole", 0, "whole\n")

    def test_deaths(self):
        for code, status in (("kill -9 $$", -9), ("kill $$", -15), ("exec sh -c 'exit 7'", 7)):
            self.kernel.close()
            self.kernel = Shell()
            self.assertIsNone(self.kernel.cell(code).code)
            self.assertEqual(self.kernel.process.wait(30), status)

    def test_the_end_of_the_connection_is_the_end(self):
        self.check("trap 'echo bye' EXIT")
        self.kernel.connection.close()
        self.assertEqual(self.kernel.process.wait(30), 0)
        self.assertEqual(self.kernel.process.stdout.read(), b"bye\n")


if __name__ == "__main__":
    unittest.main()
