# SPDX-License-Identifier: Apache-2.0
"""Runs one probe in a box and on the host, and compares."""
import ctypes
import json
import os
import struct
import subprocess
import sys
import tempfile
import shutil

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "http"))

import harness  # noqa: E402  (the path above has to come first)
import kernelkit  # noqa: E402

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


class InKernels:
    """Of a class of attempts: python code is cells of a kernel, and what a cell may end is its child."""

    BEGIN = f"{PROBES}" + """
def attempt(name, *arguments):
    import signal
    child = os.fork()
    if child == 0:
        main(name, *arguments)
        os._exit(0)
    status = os.waitpid(child, 0)[1]
    if os.WIFSIGNALED(status):
        print(json.dumps({"outcome": "killed", "detail": signal.Signals(os.WTERMSIG(status)).name}))
"""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        session = cls.daemon.post("/v1/sessions", {}).json["id"]
        cls.kernel = kernelkit.Kernel(cls.daemon, session)
        assert cls.kernel.cell(cls.BEGIN)["exitCode"] == 0

    @classmethod
    def tearDownClass(cls):
        assert cls.daemon.request("DELETE", f"/v1/sessions/{cls.kernel.session}").status == 204
        super().tearDownClass()

    def control(self, *_, **__):
        """They were in the class's own run."""

    def in_box(self, name, *arguments):
        # The connection is the driver's own: no child of a cell has it.
        function = "main" if name.endswith("_peer") else "attempt"
        result = self.kernel.cell(f"{function}({name!r}, *{[str(a) for a in arguments]!r})")
        self.assert_success(result)
        begin, answer = result["stdout"].splitlines()
        self.assertEqual(begin, "begin")
        answer = json.loads(answer)
        if answer["outcome"] == "killed":
            self.assertEqual(answer["detail"], "SIGSYS")
        return answer["outcome"], answer.get("error", answer["detail"])

    def run_code(self, code, language="python", **options):
        if language != "python" or options:
            return super().run_code(code, language, **options)
        return self.kernel.cell(code)


def handle_of(path):
    """The kind and the bytes of a file's handle, as text (name_to_handle_at(2))."""
    libc, mount = ctypes.CDLL(None, use_errno=True), ctypes.c_int()
    handle = ctypes.create_string_buffer(struct.pack("=Ii", 128, 0) + bytes(128))
    if libc.name_to_handle_at(-100, path.encode(), handle, ctypes.byref(mount), 0) != 0:
        raise OSError(ctypes.get_errno(), "name_to_handle_at")
    size, kind = struct.unpack("=Ii", handle.raw[:8])
    return kind, handle.raw[8:8 + size].hex()


class EscapeCase(harness.Case):
    """`attempt` for one probe: refused or killed in the box, successful on the host."""

    # Each probe in a booted box; test_forked.py has them again, in forked ones.
    daemon_arguments = ("--templates", "0")

    def on_host(self, name, *arguments, where=PLAIN, prepare=""):
        """The probe's answer on the host."""
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
        return json.loads(lines[1]) if len(lines) > 1 else {"outcome": f"died: {done}"}

    def control(self, name, *arguments, **options):
        """The probe on the host. Fails the test unless it gets through there."""
        answer = self.on_host(name, *arguments, **options)
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

    def attempt_if_known(self, name, *arguments):
        """... of which this kernel or its file system may know nothing: then the refusal alone counts."""
        answer = self.on_host(name, *arguments)
        known = answer.get("error") not in ("ENOSYS", "ENOTTY", "ENOTSUP", "EOPNOTSUPP")
        return self.attempt(name, *arguments, control=known)
