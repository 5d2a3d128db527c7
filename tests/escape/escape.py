# SPDX-License-Identifier: Apache-2.0
"""Runs one probe in a box and on the host, and compares."""
import json
import os
import subprocess
import sys
import tempfile
import shutil

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "http"))

import harness  # noqa: E402  (the path above has to come first)

HERE = os.path.dirname(os.path.abspath(__file__))
with open(os.path.join(HERE, "probes.py"), encoding="utf-8") as probes_file:
    PROBES = probes_file.read()

# Where a control has to run to succeed: as we are; in new user and mount namespaces, where the
# caller holds all capabilities; or the same with a network of its own.
PLAIN = []
NAMESPACES = ["unshare", "--user", "--map-root-user", "--mount", "--uts"]
NETWORK = [*NAMESPACES, "--net"]
# ... or a process namespace whose first process is a shell of the same user, as kernd-init is one.
OWN_INIT = [*NAMESPACES, "--pid", "--fork", "--mount-proc", "sh", "-c", '"$@"; exit $?', "sh"]


def need_root():
    return None if os.geteuid() == 0 else "the control needs root"


class EscapeCase(harness.Case):
    """`attempt` for one probe: refused or killed in the box, successful on the host."""

    # Each probe in a booted box; test_forked.py has them again, in forked ones.
    daemon_arguments = ("--templates", "0")

    def control(self, name, *arguments, where=PLAIN, prepare=""):
        """The probe on the host. Fails the test unless it gets through there."""
        folder = tempfile.mkdtemp(prefix="kernd-control-")
        try:
            program = [sys.executable, "-B", os.path.join(HERE, "probes.py"), name,
                       *map(str, arguments)]
            if prepare:
                program = ["sh", "-c", prepare + ' && exec "$@"', "sh", *program]
            done = subprocess.run([*where, *program], cwd=folder, capture_output=True, text=True,
                                  timeout=harness.seconds(30), check=False)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        lines = done.stdout.splitlines()
        self.assertEqual(lines[:1], ["begin"], f"the control never began: {done}")
        answer = json.loads(lines[1]) if len(lines) > 1 else {"outcome": f"died: {done}"}
        self.assertEqual(answer["outcome"], "ok",
                         f"the control of {name} does not succeed on this host: {answer}")
        return answer["detail"]

    def in_box(self, name, *arguments, **options):
        """The probe in a box: ("refused", errno name) or ("killed", evidence) or ("ok", value)."""
        code = f"{PROBES}\nmain({name!r}, *{[str(a) for a in arguments]!r})\n"
        result = self.run_code(code, **options)
        lines = result["stdout"].splitlines()
        self.assertEqual(lines[:1], ["begin"], f"the probe never began: {result}")
        if len(lines) > 1:
            answer = json.loads(lines[1])
            self.assertIsNone(result["fault"], result)
            return answer["outcome"], answer.get("error", answer["detail"])
        # No word after "begin": then the answer of the daemon has to say what happened.
        self.assertEqual((result["fault"] or {}).get("type"), "escape_blocked", result)
        self.assertEqual(result["signal"], "SYS", result)
        self.assertTrue(result["fault"]["evidence"])
        return "killed", result["fault"]["evidence"]

    def attempt(self, name, *arguments, where=PLAIN, prepare="", control=True, **options):
        if control:
            self.control(name, *arguments, where=where, prepare=prepare)
        outcome, detail = self.in_box(name, *arguments, **options)
        self.assertIn(outcome, ("refused", "killed"), f"{name} got through: {detail}")
        return outcome, detail
