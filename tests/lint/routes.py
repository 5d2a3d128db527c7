#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Fails when api/openapi.yaml and the code name different routes, or different fields of a body.

Of fields it compares names, which are required, smallest values, and the choices there are.
"""
import glob
import os
import re
import sys

import sources

sys.path.append("api")
import openapi_json  # pylint: disable=wrong-import-position

TABLE, SPECIFICATION = "api/route.c", "api/openapi.yaml"
METHODS = {"get", "put", "post", "delete", "patch"}
# File -> its field tables -> the schema of the body that each reads.
SCHEMAS = {
    "api/run_in.c": {"command_table": "RunRequest", "code_table": "RunCodeRequest",
                     "session_command_table": "SessionRunRequest",
                     "session_code_table": "SessionRunCodeRequest"},
    "api/resource_batch.c": {"batch_table": "BatchRequest"},
    "api/resource_execution_input.c": {"signal_table": "SignalRequest"},
    "api/kernel_in.c": {"open_table": "KernelRequest", "cell_table": "CellRequest"},
    "api/session_in.c": {"create_table": "SessionRequest", "patch_table": "SessionPatch",
                         "fork_table": "ForkRequest", "setup_table": "SetupRequest",
                         "move_table": "MoveRequest"},
    "api/resource_token.c": {"token_table": "TokenRequest"},
    "api/environment_in.c": {"build_table": "EnvironmentRequest"},
    "api/snapshot_in.c": {"make_table": "SnapshotRequest", "restore_table": "RestoreRequest"},
}

ROUTE = re.compile(r'^\s*\{ "([A-Z]+)", "(/[^"]*)",', re.M)
ROWS = re.compile(r"static const struct field (\w+)\[\] = \{(.*?)\n\};", re.S)
ROW = re.compile(r'\{\s*\.name = "(\w+)",(.*?)\}', re.S)
CHAIN = re.compile(r"\bconst struct field_table (\w+) = \{\s*(\w+),"
                   r"\s*COUNT_OF\(\w+\),\s*(?:&(\w+)|NULL)\s*\};", re.S)
CHOICES = re.compile(r"\bconst char \*const (\w+)\[\] = \{(.*?)NULL \};", re.S)
RULE = f"{TABLE} and the field tables of api/ say the same as {SPECIFICATION}."


# ---- routes --------------------------------------------------------------------------------------

def routes_of_table():
    rows = ROUTE.findall(sources.blank(sources.read(TABLE), keep_strings=True))
    # A path parameter that takes the rest has no notation of its own in OpenAPI.
    return {(method, path.replace("...}", "}")) for method, path in rows}


def routes_of_specification(specification):
    return {(method.upper(), path) for path, operations in specification["paths"].items()
            for method in operations if method in METHODS}


def differing_routes(specification):
    table, specified = routes_of_table(), routes_of_specification(specification)
    if not table:
        yield f"{TABLE}: no row found"
    for method, path in sorted(table - specified):
        yield f"{SPECIFICATION}: lacks {method} {path}"
    for method, path in sorted(specified - table):
        yield f"{TABLE}: lacks {method} {path}"


# ---- fields --------------------------------------------------------------------------------------

class Field:
    """What both sides say of one field; None: nothing."""

    def __init__(self, required=False, smallest=None, choices=None):
        self.required, self.smallest, self.choices = required, smallest, choices

    def __eq__(self, other):
        return vars(self) == vars(other)

    def __str__(self):
        return ", ".join(f"{key} {value}" for key, value in vars(self).items())


def field_of_row(text, choices):
    smallest = re.search(r"\.min = ([0-9.e]+)", text)
    chosen = re.search(r"\.choices = (\w+)", text)
    return Field(".required = true" in text, float(smallest.group(1)) if smallest else None,
                 choices[chosen.group(1)] if chosen else None)


def read_tables(paths):
    """
    ({path: {name of a table: {name of a field: Field}}}, names of shared tables). A table's rows are
    in its own file, the table that it continues with may be in another.
    """
    rows, chains, choices = {}, {}, {}
    texts = {path: sources.blank(sources.read(path), keep_strings=True) for path in paths}
    for path, text in texts.items():
        for name, body in CHOICES.findall(text):
            choices[path, name] = re.findall(r'"([^"]*)"', body)
    shared = {name: found for (_, name), found in choices.items()}
    for path, text in texts.items():
        own = {name: found for (place, name), found in choices.items() if place == path}
        for name, body in ROWS.findall(text):
            rows[path, name] = {field: field_of_row(rest, {**shared, **own})
                                for field, rest in ROW.findall(body)}
        for name, array, more in CHAIN.findall(text):
            chains[name] = (path, array, more)

    def fields(name):
        path, array, more = chains[name]
        return {**rows[path, array], **(fields(more) if more else {})}

    tables = {path: {} for path in paths}
    for name, (path, _, _) in chains.items():
        tables[path][name] = fields(name)
    return tables, {more for _, _, more in chains.values() if more}


def resolved(specification, schema):
    while "$ref" in schema:
        schema = specification["components"]["schemas"][schema["$ref"].rsplit("/", 1)[1]]
    return schema


def fields_of_schema(specification, name):
    body = specification["components"]["schemas"][name]
    result = {}
    for field, schema in body["properties"].items():
        schema = resolved(specification, schema)
        choices = [value for value in schema["enum"] if value is not None] \
            if "enum" in schema else None
        smallest = float(schema["minimum"]) if "minimum" in schema else None
        result[field] = Field(field in body.get("required", []), smallest, choices)
    return result


def differing_fields(specification, path, table, fields):
    schema = SCHEMAS.get(path, {}).get(table)
    if schema is None:
        yield f"{path}: {table} has no schema in tests/lint/routes.py"
        return
    specified = fields_of_schema(specification, schema)
    for name in sorted(set(fields) ^ set(specified)):
        place = f"{SPECIFICATION}: {schema}" if name in fields else f"{path}: {table}"
        yield f"{place} lacks {name}"
    for name in sorted(set(fields) & set(specified)):
        if fields[name] != specified[name]:
            yield f"{path}: {table} has {name} with {fields[name]}; {schema} has {specified[name]}"


def complaints():
    if not os.path.exists(SPECIFICATION):
        return [f"{SPECIFICATION}: missing"]
    specification = openapi_json.load(SPECIFICATION)
    found = list(differing_routes(specification))
    tables, shared = read_tables(sorted(glob.glob("api/*.c")))
    for path, of_file in tables.items():
        for table in sorted(set(of_file) - shared):
            found += differing_fields(specification, path, table, of_file[table])
        found += [f"{path}: {table} is not found"
                  for table in sorted(set(SCHEMAS.get(path, {})) - set(of_file))]
    return found


if __name__ == "__main__":
    sources.end("routes", complaints(), RULE)
