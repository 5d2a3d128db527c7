# SPDX-License-Identifier: Apache-2.0
"""kern and kern-sandbox's Node binding as peers of the bench, where KERN_BIN and KERN_SANDBOX_JS name them.

KERN_BIN is the program, KERN_SANDBOX_JS the directory with the binding's package.json; without either
the rows are left out and that is told. Both use an image of this host's own programs (imagekit.py).
"""
import argparse
import contextlib
import json
import os
import subprocess
import tempfile

import harness
import imagekit
import side_by_side

IMAGES = "KERND_BENCH_IMAGES"  # in the environment: where root had the image loaded, before it was given up
IMAGE = imagekit.NAMES[0]
CALLERS = 4


def load_image():
    """While this is still root, whose daemon and binding will run as somebody else."""
    for name in ("KERN_BIN", "KERN_SANDBOX_JS"):
        if os.environ.get(name):
            os.environ[name] = os.path.abspath(os.environ[name])
    if os.environ.get("KERN_BIN") and IMAGES not in os.environ:
        user = harness.USER if os.geteuid() == 0 else None
        os.environ[IMAGES] = imagekit.cache(os.environ["KERN_BIN"], user)


class Kern:
    """What is needed to use that kern: its place, images, and a directory of its own."""

    def __init__(self, directory):
        self.kern = os.environ["KERN_BIN"]
        self.images = os.environ[IMAGES]
        self.runtime = tempfile.mkdtemp(dir=directory)

    def environment(self):
        return {"PATH": "/usr/bin:/bin", "HOME": self.runtime, "XDG_RUNTIME_DIR": self.runtime,
                "XDG_CACHE_HOME": self.images, "KERN_ALLOW_UNCAPPED": "1"}

    def command(self, program):
        """A box like those of the others: read-only, no network, no capabilities."""
        return [self.kern, "box", "NAME", "--image", IMAGE, "--ro", "--cap-drop", "ALL", "--", *program]


def add_bare(rows, bare, programs, directory, notes):
    """Rows of kern itself; bare is the class of rows that run a command, programs what to run."""
    if IMAGES not in os.environ:
        notes.append("KERN_BIN names no kern: its rows are left out")
        return
    kern = Kern(directory)

    class Box(bare):
        """Each box has a name of its own."""

        number = 0

        def __call__(self):
            Box.number += 1
            self.command[2] = f"bench-{os.getpid()}-{Box.number}"
            return super().__call__()

    for name, program in programs.items():
        rows[f"kern {name}"] = Box(kern.command(program), kern.environment())


@contextlib.contextmanager
def _daemon(spares, *arguments):
    """Its runtime directory is in memory, as that of a user is, and as the binding's."""
    with tempfile.TemporaryDirectory(dir=side_by_side.MEMORY) as runtime:
        os.chmod(runtime, 0o755)
        daemon = harness.Daemon(["--log-level", "warning", "--spares", spares, *arguments])
        daemon.runtime = side_by_side.private(runtime, "kernd")
        daemon.socket_path = os.path.join(daemon.runtime, "kernd.sock")
        try:
            server = side_by_side.Server(daemon.start())
            yield server
            server.close()
            daemon.stop()
        finally:
            daemon.remove()


@contextlib.contextmanager
def _binding():
    options = argparse.Namespace(kern=os.environ["KERN_BIN"], binding=os.environ["KERN_SANDBOX_JS"])
    with tempfile.TemporaryDirectory() as home, \
            tempfile.TemporaryDirectory(dir=side_by_side.MEMORY) as runtime:
        os.chmod(runtime, 0o755)
        binding = side_by_side.Binding(options, os.environ[IMAGES], home, runtime)
        yield binding
        binding.close()


def measure(found, spares, rounds, seconds):
    """
    The binding beside kernd with the same kern, row by row; then fresh python boxes per second: of
    the binding, of kernd with kern, with bubblewrap, and with boxes forked of a warm interpreter.
    """
    if IMAGES not in os.environ or not os.environ.get("KERN_SANDBOX_JS"):
        found.notes.append("KERN_BIN and KERN_SANDBOX_JS name no kern-sandbox: its rows are left out")
        return
    with contextlib.ExitStack() as stack:
        contenders = {
            "kern-sandbox": stack.enter_context(_binding()),
            "kernd on kern": stack.enter_context(_daemon(
                spares, "--engine", "kern", "--kern", os.environ["KERN_BIN"], "--image-cache",
                os.environ[IMAGES]))}
        for label, row in side_by_side.ROWS:
            taken = side_by_side.take_turns(list(contenders.values()), row, rounds)
            for name, times in zip(contenders, taken):
                found.times("taking turns", f"{name}: {label}", times)
        if not seconds:
            return
        contenders["kernd, booted boxes"] = stack.enter_context(_daemon(
            spares, "--engine", "bubblewrap", "--templates", "0"))
        contenders["kernd"] = stack.enter_context(_daemon(spares, "--engine", "bubblewrap"))
        rates = side_by_side.load_in_turns(list(contenders.values()), CALLERS, "python", seconds)
        for name, rate in zip(contenders, rates):
            found.rate(f"saturation, {CALLERS} callers in turn", f"{name}: runCode python, {CALLERS} callers", rate)


def versions():
    """Of both, for the facts of a run."""
    found = []
    if IMAGES in os.environ:
        found.append(subprocess.run([os.environ["KERN_BIN"], "--version"], capture_output=True, text=True,
                                    check=False).stdout.strip())
        if os.environ.get("KERN_SANDBOX_JS"):
            with open(os.path.join(os.environ["KERN_SANDBOX_JS"], "package.json"), encoding="utf-8") as file:
                package = json.load(file)
            found.append(f"{package['name']} {package['version']}")
    return found
