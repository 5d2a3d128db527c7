#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Fails when api/openapi.yaml and the code name different routes, or different fields of a body.

Of fields it compares names, types, which are required, smallest and largest values, and the choices
there are; and every body refuses fields that it does not know.
"""
import glob
import os
import re
import sys

import sources

sys.path.append("api")
import openapi_json  # pylint: disable=wrong-import-position

TABLE, SPECIFICATION = "api/route.c", "api/openapi.yaml"
RETIREMENTS = "api/retirement.c"
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
    "api/resource_image.c": {"pull_table": "PullRequest"},
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


def differing_retirements(specification):
    """Routes that the server calls deprecated in its answers, against those of the description."""
    text = sources.blank(sources.read(RETIREMENTS), keep_strings=True) \
        if os.path.exists(RETIREMENTS) else ""
    told = set(re.findall(r'\{ "([A-Z]+)", "(/[^"]*)"', text))
    marked = {(method.upper(), path) for path, row in specification["paths"].items()
              for method, operation in row.items()
              if method in METHODS and operation.get("deprecated")}
    for method, path in sorted(told ^ marked):
        yield f"{RETIREMENTS} and {SPECIFICATION} differ on whether {method} {path} is deprecated"


# ---- fields --------------------------------------------------------------------------------------

class Field:
    """What both sides say of one field; None: nothing."""

    def __init__(self, kind, required=False, smallest=None, largest=None, choices=None):
        self.kind, self.required, self.choices = kind, required, choices
        self.smallest, self.largest = smallest, largest

    def __eq__(self, other):
        return vars(self) == vars(other)

    def __str__(self):
        return ", ".join(f"{key} {value}" for key, value in vars(self).items())


# What a field of the table is in the description. Rows that read for themselves may be of any type.
KINDS = {"BOOL": "boolean", "WHOLE": "integer", "NUMBER": "number", "CHOICE": "choice",
         "OTHER": None}


def number_after(text, name, macros):
    found = re.search(rf"\.{name} = ([\w.+-]+)", text)
    return None if found is None else float(macros.get(found.group(1), found.group(1)))


def field_of_row(text, choices, macros):
    chosen = re.search(r"\.choices = (\w+)", text)
    kind = KINDS[re.search(r"\.type = FIELD_(\w+)", text).group(1)]
    return Field(kind, ".required = true" in text, number_after(text, "min", macros),
                 number_after(text, "max", macros), choices[chosen.group(1)] if chosen else None)


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
        macros = dict(re.findall(r"#define (\w+) \(?([0-9.e]+)\)?\s", text))
        for name, body in ROWS.findall(text):
            rows[path, name] = {field: field_of_row(rest, {**shared, **own}, macros)
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


def kind_of_schema(schema):
    if "enum" in schema:
        return "choice"
    kinds = schema.get("type")
    kinds = [kinds] if isinstance(kinds, str) else [kind for kind in kinds or () if kind != "null"]
    return kinds[0] if len(kinds) == 1 else None


def fields_of_schema(specification, name):
    body = specification["components"]["schemas"][name]
    result = {}
    for field, schema in body["properties"].items():
        schema = resolved(specification, schema)
        choices = [value for value in schema["enum"] if value is not None] \
            if "enum" in schema else None
        bounds = [float(schema[key]) if key in schema else None for key in ("minimum", "maximum")]
        result[field] = Field(kind_of_schema(schema), field in body.get("required", []), *bounds,
                              choices)
    return result


def same(field, specified):
    """Of a row that reads for itself only the names and whether it is required are in the table."""
    if field.kind is None:
        return field.required == specified.required
    return field == specified


def differing_fields(specification, path, table, fields):
    schema = SCHEMAS.get(path, {}).get(table)
    if schema is None:
        yield f"{path}: {table} has no schema in tests/lint/routes.py"
        return
    specified = fields_of_schema(specification, schema)
    if specification["components"]["schemas"][schema].get("additionalProperties") is not False:
        yield f"{SPECIFICATION}: {schema} takes unknown fields"
    for name in sorted(set(fields) ^ set(specified)):
        place = f"{SPECIFICATION}: {schema}" if name in fields else f"{path}: {table}"
        yield f"{place} lacks {name}"
    for name in sorted(set(fields) & set(specified)):
        if not same(fields[name], specified[name]):
            yield f"{path}: {table} has {name} with {fields[name]}; {schema} has {specified[name]}"


def complaints():
    if not os.path.exists(SPECIFICATION):
        return [f"{SPECIFICATION}: missing"]
    specification = openapi_json.load(SPECIFICATION)
    found = [*differing_routes(specification), *differing_retirements(specification)]
    tables, shared = read_tables(sorted(glob.glob("api/*.c")))
    for path, of_file in tables.items():
        for table in sorted(set(of_file) - shared):
            found += differing_fields(specification, path, table, of_file[table])
        found += [f"{path}: {table} is not found"
                  for table in sorted(set(SCHEMAS.get(path, {})) - set(of_file))]
    return found


if __name__ == "__main__":
    sources.end("routes", complaints(), RULE)
