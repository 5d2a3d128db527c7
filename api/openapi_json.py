#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Prints a YAML 1.2 file as JSON, for the build: openapi_json.py api/openapi.yaml >openapi.json"""
import json
import re
import sys

import yaml


class Loader(yaml.SafeLoader):
    """Without what YAML 1.1 had and JSON has not: dates, yes and no, octal numbers."""


Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers
            if tag not in ("tag:yaml.org,2002:timestamp", "tag:yaml.org,2002:bool",
                           "tag:yaml.org,2002:int")]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
Loader.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile(r"^(?:true|false)$"), "tf")
Loader.add_implicit_resolver("tag:yaml.org,2002:int", re.compile(r"^-?(?:0|[1-9][0-9]*)$"),
                             "-0123456789")


def unique_mapping(loader, node, deep=False):
    """A mapping whose keys are text, each once."""
    loader.flatten_mapping(node)
    result = {}
    for key_node, value_node in node.value:
        key = str(key_node.value)
        if key in result:
            raise yaml.constructor.ConstructorError(None, None, f"a second {key!r}",
                                                    key_node.start_mark)
        result[key] = loader.construct_object(value_node, deep=True)
    return result


Loader.add_constructor("tag:yaml.org,2002:map", unique_mapping)


def load(path):
    """The document as Python values."""
    with open(path, encoding="utf-8") as file:
        return yaml.load(file, Loader)  # a SafeLoader: no objects


if __name__ == "__main__":
    json.dump(load(sys.argv[1]), sys.stdout, ensure_ascii=False, separators=(",", ":"))
