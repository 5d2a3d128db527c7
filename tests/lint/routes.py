#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Fails when the route table and api/openapi.yaml name different routes."""
import os
import re
import sys

import sources

sys.path.append("api")
import openapi_json  # pylint: disable=wrong-import-position

TABLE, SPECIFICATION = "api/route.c", "api/openapi.yaml"
METHODS = {"get", "put", "post", "delete", "patch"}
ROW = re.compile(r'^\s*\{ "([A-Z]+)", "(/[^"]*)",', re.M)
RULE = f"Each row of {TABLE} has its operation in {SPECIFICATION}, and the other way round."


def routes_of_table():
    rows = ROW.findall(sources.blank(sources.read(TABLE), keep_strings=True))
    # A path parameter that takes the rest has no notation of its own in OpenAPI.
    return {(method, path.replace("...}", "}")) for method, path in rows}


def routes_of_specification():
    paths = openapi_json.load(SPECIFICATION)["paths"]
    return {(method.upper(), path) for path, operations in paths.items()
            for method in operations if method in METHODS}


def complaints():
    if not os.path.exists(SPECIFICATION):
        return [f"{SPECIFICATION}: missing"]
    table, specification = routes_of_table(), routes_of_specification()
    if not table:
        return [f"{TABLE}: no row found"]
    return [f"{SPECIFICATION}: lacks {method} {path}"
            for method, path in sorted(table - specification)] \
        + [f"{TABLE}: lacks {method} {path}" for method, path in sorted(specification - table)]


if __name__ == "__main__":
    sources.end("routes", complaints(), RULE)
