# SPDX-License-Identifier: Apache-2.0
"""What the lint programs share: the product's C files, their text without comments, the report."""
import glob
import re
import sys

COMMENT_OR_STRING = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)


def product_files(suffixes=("c", "h")):
    """Every source of the product itself, not of its tests."""
    return sorted(path for folder in ("lib/*", "api", "server", "client") for suffix in suffixes
                  for path in glob.glob(f"{folder}/*.{suffix}"))


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def blank(text, keep_strings=False):
    """Comments (and strings) become blanks, so that lines and columns stay."""
    def replace(match):
        found = match.group(0)
        if keep_strings and found[0] in "\"'":
            return found
        return re.sub(r"[^\n]", " ", found)

    return COMMENT_OR_STRING.sub(replace, text)


def line_of(text, offset):
    return text.count("\n", 0, offset) + 1


def report(name, complaints, rule):
    """Prints `path:line: what` lines; the exit code of the lint program."""
    for complaint in complaints:
        print(complaint)
    if complaints:
        print(f"{name}: {len(complaints)} found. {rule}")
        return 1
    print(f"{name}: ok")
    return 0


def end(*arguments):
    sys.exit(report(*arguments))
