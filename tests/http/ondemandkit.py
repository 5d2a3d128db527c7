# SPDX-License-Identifier: Apache-2.0
"""What a client library must do before there is a connection: find the server, or start it."""
import os
import subprocess

import commandkit
import harness


class Case(commandkit.Case):
    """`command` is a program that runs `echo hello` in a sandbox and prints what that says."""

    command = ()

    def program(self, **environment):
        """The program as the daemon's user, where nothing tells of the daemon."""
        return subprocess.run(self.command, capture_output=True, text=True, check=False,
                              timeout=harness.seconds(60),
                              **self.options(**{"KERND_SOCKET": "", **environment}))

    def places(self):
        """Directories for a server of the test's own."""
        runtime = os.path.join(self.place, "runtime")
        options = self.options()
        del options["cwd"]
        subprocess.run(["mkdir", "-m", "700", runtime], check=True, **options)
        return {"XDG_RUNTIME_DIR": runtime, "XDG_STATE_HOME": os.path.join(self.place, "state"),
                "KERND_BIN": harness.KERND, "KERND_LISTEN": f"unix:{runtime}/kernd/kernd.sock"}

    def assert_works(self, done):
        self.assertEqual((done.returncode, done.stdout), (0, "hello\n"), done.stderr)

    def test_a_server_is_started(self):
        places = self.places()
        try:
            for _ in range(2):  # the second finds the first one's
                self.assert_works(self.program(**places))
        finally:
            self.kernd("stop", environment=places)
        # A server that was started by hand, on TCP alone.
        server = self.start("serve", "--listen", "127.0.0.1:0", environment=places)
        self.assertRegex(server.stdout.readline(), rb"^ready url=")
        self.assert_works(self.program(**places))
        self.kernd("stop", environment=places)

    def test_the_socket_of_a_server_can_be_named(self):
        self.assert_works(self.program(KERND_SOCKET=self.daemon.socket_path))

    def test_nobody_is_there(self):
        nowhere = {"KERND_URL": "http://127.0.0.1:1"}
        for environment, said in (({"KERND_BIN": "/nonexistent/kernd"}, "kernd"),
                                  ({"KERND_BIN": "/bin/false"}, "did not start"),
                                  ({"KERND_SOCKET": "/nonexistent"}, "nobody listens"),
                                  (nowhere, "KERND_TOKEN_FILE"),
                                  ({**nowhere, "KERND_TOKEN_FILE": "/dev/null"}, "nobody listens")):
            done = self.program(**environment)
            self.assertEqual(done.returncode, 1, environment)
            self.assertIn("SandboxError", done.stderr)
            self.assertIn(said, done.stderr)
