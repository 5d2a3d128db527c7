#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Fails when the table of system calls in SECURITY.md is not the one the program has.

    syscalls.py --build build [--write]      (--write puts the program's table into SECURITY.md)
"""
import argparse
import os
import subprocess
import textwrap

import sources

PAGE = "SECURITY.md"
BEGIN, END = "<!-- made by tests/lint/syscalls.py -->\n", "<!-- end of what is made -->\n"
RULE = "make && tests/lint/syscalls.py --write brings SECURITY.md up to date."
WIDTH = 130


def listed(names):
    return "\n".join(textwrap.wrap(", ".join(f"`{name}`" for name in sorted(names)), WIDTH,
                                   break_on_hyphens=False))


def table_of(text):
    """Markdown of what `kernd version --syscalls` prints: lists, then calls that have conditions."""
    rows = [line.split("\t") for line in text.splitlines()]
    conditional = {name for name, _, when in rows if when}
    plain = {}
    for name, action, when in rows:
        if name not in conditional and not when:
            plain.setdefault(action, []).append(name)
    parts = ["Allowed:\n\n" + listed(plain.pop("allow")),
             "The program is killed (`escape_blocked`):\n\n" + listed(plain.pop("kill"))]
    for error, names in sorted(plain.items()):
        parts.append(f"Fails with {error}:\n\n" + listed(names))
    merged = {}
    for name, action, when in rows:
        if name in conditional:
            conditions = merged.setdefault((name, action), [])
            conditions.append(when or "anything else")
    lines = ["By their arguments (the strictest line that fits counts; where none fits, ENOSYS):\n",
             "| call | with | what becomes of it |", "|---|---|---|"]
    words = {"allow": "allowed", "kill": "killed", "ignore": "told that it is done, and not done"}
    for (name, action), conditions in sorted(merged.items()):
        lines.append(f"| `{name}` | {', '.join(dict.fromkeys(conditions))} | "
                     f"{words.get(action, action)} |")
    return "\n\n".join(parts + ["\n".join(lines), "Every other call, known or not, fails with "
                                "ENOSYS; 32-bit and x32 calls are killed."]) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--build", default="build")
    parser.add_argument("--write", action="store_true")
    wanted = parser.parse_args()
    made = table_of(subprocess.run([os.path.join(wanted.build, "kernd"), "version", "--syscalls"],
                                   check=True, stdout=subprocess.PIPE, text=True).stdout)
    with open(PAGE, encoding="utf-8") as file:
        before, _, rest = file.read().partition(BEGIN)
    there, _, after = rest.partition(END)
    if wanted.write:
        with open(PAGE, "w", encoding="utf-8") as file:
            file.write(before + BEGIN + made + END + after)
        there = made
    sources.end("syscalls", [] if there == made else [f"{PAGE}: the table is another"], RULE)


if __name__ == "__main__":
    main()
