#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Fails on a global symbol of foo.o that is not named foo or foo_*.

    exports.py --build build      (after make: reads the object files beneath it)
"""
import argparse
import os
import re
import subprocess

import sources

RULE = "A file exports only names that begin with its own; everything else is static."
# Programs of their own, not rooms: nothing links against them.
PROGRAMS = re.compile(r"lib/(box/(init|template)|cell/(shell|addon))(_\w+)?\.c|client/main\.c")


def symbols_of(item):
    listed = subprocess.run(["nm", "--defined-only", "--extern-only", item], check=True,
                            stdout=subprocess.PIPE, text=True).stdout
    return [line.split()[-1] for line in listed.splitlines() if line]


def complaints(build):
    for path in sources.product_files(("c",)):
        if PROGRAMS.fullmatch(path):
            continue
        item = os.path.join(build, "obj", path[:-1] + "o")
        if not os.path.exists(item):
            yield f"{path}: {item} is missing: run make first"
            continue
        room = os.path.basename(path)[:-2]
        for symbol in symbols_of(item):
            if symbol != room and not symbol.startswith(room + "_"):
                yield f"{path}: exports {symbol}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--build", default="build")
    sources.end("exports", list(complaints(parser.parse_args().build)), RULE)


if __name__ == "__main__":
    main()
