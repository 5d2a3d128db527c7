# SPDX-License-Identifier: Apache-2.0
"""Daemons that fork python boxes of a warm interpreter."""
import os
import shutil

import census
import harness

# Of bubblewrap's boxes alone: what is in an image is not kernd's choice (test_engine_kern.py looks).
WITH_TEMPLATES = ("--engine", "bubblewrap", "--templates", "1")


def wait_for_template(daemon):
    """The first call that could use one has it started."""
    daemon.run_code("1")
    census.wait_until(lambda: daemon.get("/v1/stats").json["templates"] > 0, harness.seconds(20),
                      "a template")


def interpreters(daemon):
    """Pids of the warm interpreters."""
    return list(filter(census.is_interpreter_of_template, daemon.box_processes(templates=True)))


def wait_for_standby(daemon):
    """Pids of the forks that wait for an order: one for each warm interpreter that has none to fill."""
    return census.wait_until(lambda: list(filter(census.is_standby, daemon.box_processes(templates=True))),
                             harness.seconds(20), "a standby")


def broken_library(place):
    """All that boxes need, and what templates need is no library: a directory below that one."""
    library = os.path.join(place, "library")
    os.mkdir(library)
    for entry in os.scandir(os.path.dirname(harness.KERND)):
        if entry.name.startswith(("driver", "kernd-")) and entry.is_file():
            shutil.copy(entry.path, library)
    with open(os.path.join(library, "kernd-template.so"), "w", encoding="ascii") as file:
        file.write("none")
    return library


class Templated:
    """Of a class of tests: over a daemon that forks, as it does from the start."""

    @classmethod
    def is_templated(cls):
        return True

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        if cls.is_templated():
            wait_for_template(cls.daemon)

    @classmethod
    def tearDownClass(cls):
        forks = cls.daemon.get("/v1/stats").json["forks"]
        super().tearDownClass()
        assert forks > 0 or not cls.is_templated(), "nothing was forked"


class Cold(Templated):
    """Of a daemon that keeps no box ready: each is forked when its call comes."""

    @classmethod
    def make_daemon(cls):
        return harness.Daemon((*WITH_TEMPLATES, "--spares", "0"))

    def setUp(self):
        super().setUp()
        wait_for_template(self.daemon)

    def forked(self, code):
        result = self.run_code(code)
        self.assertEqual((result["usage"]["source"], result["exitCode"]), ("template", 0), result)
        return result["stdout"]


class Forked(Templated):
    """Where daemons fork that are not told otherwise; else all boxes are booted."""

    @classmethod
    def is_templated(cls):
        return harness.FORKS


class StoodBy(Templated):
    """Each box is forked of an interpreter that waited for its order."""

    def run_code(self, code, language="python", **options):
        if language == "python":
            wait_for_standby(self.daemon)
        return super().run_code(code, language, **options)
