# SPDX-License-Identifier: Apache-2.0
"""Runs code in fresh, kernel-isolated boxes through kernd, the local sandbox server.

    import kernd

    print(kernd.run_code("6 * 7").results[0].text)
    with kernd.Sandbox() as sandbox:
        sandbox.write_file("n.txt", "40")
        sandbox.run_code("print(int(open('n.txt').read()) + 2)").stdout

The names are those of kern-sandbox: a program that uses it changes its import. The server is the
user's own one, started if none runs; KERND_URL with KERND_TOKEN_FILE, or KERND_SOCKET, name another.
"""
from .results import (ExecutionResult, FileInfo, MountRefused, Result, SandboxError, SandboxFault)
from .sandbox import Kernel, Sandbox, run_code
from .server import Server

__all__ = ["ExecutionResult", "FileInfo", "Kernel", "MountRefused", "Result", "Sandbox",
           "SandboxError", "SandboxFault", "Server", "run_code"]
__version__ = "0.1.0"
