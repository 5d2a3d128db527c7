#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fills in what manual pages say of commands, settings and calls, from the program's own tables.

generate.py TEMPLATE KERND OPENAPI_JSON LIBDIR >PAGE
"""
import collections
import json
import subprocess
import sys
import textwrap

# An option in the lists of so many commands is told once for all of them.
SHARED = 4


def plain(text):
    """Text as roff takes it literally."""
    return text.replace("\\", "\\e").replace("-", "\\-")


def prose(text):
    """Lines of text, none of which roff takes for a request."""
    lines = textwrap.wrap(plain(text), 78, break_long_words=False, break_on_hyphens=False)
    return "\n".join("\\&" + line if line[:1] in (".", "'") else line for line in lines)


def quoted(text):
    return '"' + plain(text).replace('"', '""') + '"'


def item(option, value, help_text, letter=""):
    head = f".It Fl {letter[1:]} , Fl \\-{plain(option[2:])}" if letter else \
        f".It Fl \\-{plain(option[2:])}"
    return "\n".join([head + (f" Ar {quoted(value)}" if value else ""), prose(help_text)])


class Tables:
    def __init__(self, kernd):
        text = subprocess.run([kernd, "help", "--all"], check=True, capture_output=True,
                              text=True).stdout
        self.rows = [line.split("\t") for line in text.splitlines()]
        self.version = subprocess.run([kernd, "version"], check=True, capture_output=True,
                                      text=True).stdout.split()[1]
        counts = collections.Counter(tuple(row[2:]) for row in self.of("option"))
        self.shared = {row for row, count in counts.items() if count >= SHARED}

    def of(self, kind):
        return [row for row in self.rows if row[0] == kind]

    def command(self, name, operands, summary):
        options = [row[2:] for row in self.of("option") if row[1] == name]
        takes = [" [OPTIONS]"] if len(options) > 1 or ["settings", name] in self.rows else []
        takes += [" " + operands] if operands else []
        lines = [f".It Ic {quoted(name)}" + (f" Li {quoted(''.join(takes).strip())}" if takes else ""),
                 prose(summary + ".")]
        if ["settings", name] in self.rows:
            lines.append("Takes the settings of the server.")
        own = [row for row in options if tuple(row) not in self.shared]
        if own:
            lines += [".Bl -tag -width Ds"]
            lines += [item(option, value, text, letter) for option, letter, value, text in own]
            lines += [".El"]
        return "\n".join(lines)

    def commands(self):
        return "\n".join(self.command(*row[1:4]) for row in self.of("command"))

    def options(self, command, keep):
        """The shared options of a command, in their order."""
        rows = [row[2:] for row in self.of("option") if row[1] == command]
        return "\n".join(item(row[0], row[2], row[3], row[1]) for row in rows
                         if tuple(row) in self.shared and keep(row[0]))

    def settings(self):
        return "\n".join(item("--" + key.replace("_", "-"), "" if value == "true|false" else value,
                              text) for _, key, value, _, text in self.of("setting"))

    def keys(self):
        lines = []
        for _, key, value, span, text in self.of("setting"):
            lines += [f".It Cm {plain(key)} No = Ar {quoted(value)}", prose(text)]
            if span:
                lines += [prose(f"({span})")]
        return "\n".join(lines)


def routes(path):
    with open(path, encoding="utf-8") as file:
        paths = json.load(file)["paths"]
    lines = []
    for name, methods in paths.items():
        for method, operation in methods.items():
            if isinstance(operation, dict) and "responses" in operation:
                lines += [f".It Li {quoted(method.upper() + ' ' + name)}",
                          prose(operation.get("summary", "").rstrip(".") + ".")]
    return "\n".join(lines)


def main():
    template, kernd, openapi, library = sys.argv[1:]
    tables = Tables(kernd)
    server = {row[2] for row in tables.of("option") if row[1] == "session show"}
    with open(template, encoding="utf-8") as file:
        text = file.read()
    for mark, fill in (("COMMANDS", tables.commands),
                       ("LIMITS", lambda: tables.options("run", lambda name: name not in server)),
                       ("SERVER", lambda: tables.options("run", lambda name: name in server)),
                       ("SETTINGS", tables.settings), ("KEYS", tables.keys),
                       ("ROUTES", lambda: routes(openapi)), ("LIBDIR", lambda: library),
                       ("VERSION", lambda: tables.version)):
        if f"@{mark}@" in text:
            text = text.replace(f"@{mark}@", fill())
    sys.stdout.write(text)


if __name__ == "__main__":
    main()
