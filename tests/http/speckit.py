# SPDX-License-Identifier: Apache-2.0
"""The daemon's own description: checks values against its schemas, and makes requests from them."""
import copy
import json
import re

TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None)}
# What may stand in a schema without being checked here.
SILENT = {"description", "title", "examples", "example", "format", "default", "deprecated",
          "contentEncoding", "contentMediaType", "$comment", "readOnly", "writeOnly",
          "propertyNames", "uniqueItems", "discriminator"}
METHODS = ("get", "put", "post", "delete", "patch")


def is_type(value, name):
    if name in ("number", "integer"):
        return (isinstance(value, (int, float)) and not isinstance(value, bool)
                and (name == "number" or value == int(value)))
    return isinstance(value, TYPES[name])


class Spec:
    def __init__(self, document):
        self.document = document

    def resolve(self, node):
        while "$ref" in node:
            place = self.document
            for part in node["$ref"][2:].split("/"):
                place = place[part.replace("~1", "/").replace("~0", "~")]
            node = {**place, **{key: value for key, value in node.items() if key != "$ref"}}
        return node

    def operations(self):
        """(method, path, operation, parameters)"""
        for path, row in self.document["paths"].items():
            for method in METHODS:
                if method in row:
                    parameters = row.get("parameters", []) + row[method].get("parameters", [])
                    yield (method.upper(), path, row[method],
                           [self.resolve(parameter) for parameter in parameters])

    def body_schema(self, operation, media_type="application/json"):
        content = self.resolve(operation.get("requestBody", {})).get("content", {})
        return content.get(media_type, {}).get("schema")

    def response(self, operation, status):
        found = operation["responses"].get(str(status)) or operation["responses"].get("default")
        return self.resolve(found) if found else None

    # ---- checking ----

    def faults(self, schema, value, place=""):
        """What is wrong with a value, as texts."""
        schema = self.resolve(schema)
        for name in schema:
            assert name in SILENT or hasattr(self, "_" + name.replace("$", "")), \
                f"{place}: speckit doesn't know the keyword {name}"
        for name, wanted in schema.items():
            if name not in SILENT:
                yield from getattr(self, "_" + name)(wanted, value, place, schema)

    def _type(self, wanted, value, place, _):
        names = wanted if isinstance(wanted, list) else [wanted]
        if not any(is_type(value, name) for name in names):
            yield f"{place}: {value!r:.80} is no {wanted}"

    def _enum(self, wanted, value, place, _):
        if value not in wanted:
            yield f"{place}: {value!r:.80} is none of {wanted}"

    def _const(self, wanted, value, place, _):
        if value != wanted:
            yield f"{place}: {value!r:.80} is not {wanted!r}"

    def _required(self, wanted, value, place, _):
        if isinstance(value, dict):
            yield from (f"{place}: lacks {name}" for name in wanted if name not in value)

    def _properties(self, wanted, value, place, _):
        if isinstance(value, dict):
            for name, schema in wanted.items():
                if name in value:
                    yield from self.faults(schema, value[name], f"{place}/{name}")

    def _additionalProperties(self, wanted, value, place, schema):
        if isinstance(value, dict):
            for name in set(value) - set(schema.get("properties", ())):
                if wanted is False:
                    yield f"{place}: has {name}"
                elif isinstance(wanted, dict):
                    yield from self.faults(wanted, value[name], f"{place}/{name}")

    def _items(self, wanted, value, place, schema):
        if isinstance(value, list):
            for number, item in enumerate(value[len(schema.get("prefixItems", ())):]):
                yield from self.faults(wanted, item, f"{place}/{number}")

    def _prefixItems(self, wanted, value, place, _):
        if isinstance(value, list):
            for number, (schema, item) in enumerate(zip(wanted, value)):
                yield from self.faults(schema, item, f"{place}/{number}")

    def _fitting(self, wanted, value):
        return sum(not list(self.faults(schema, value)) for schema in wanted)

    def _oneOf(self, wanted, value, place, _):
        if self._fitting(wanted, value) != 1:
            yield f"{place}: {value!r:.80} fits {self._fitting(wanted, value)} of oneOf"

    def _anyOf(self, wanted, value, place, _):
        if not self._fitting(wanted, value):
            yield f"{place}: {value!r:.80} fits none of anyOf"

    def _allOf(self, wanted, value, place, _):
        for schema in wanted:
            yield from self.faults(schema, value, place)

    def _bound(self, wrong, value, place, text):
        if is_type(value, "number") and wrong:
            yield f"{place}: {value} is {text}"

    def _minimum(self, wanted, value, place, _):
        yield from self._bound(is_type(value, "number") and value < wanted, value, place,
                               f"below {wanted}")

    def _maximum(self, wanted, value, place, _):
        yield from self._bound(is_type(value, "number") and value > wanted, value, place,
                               f"above {wanted}")

    def _exclusiveMinimum(self, wanted, value, place, _):
        yield from self._bound(is_type(value, "number") and value <= wanted, value, place,
                               f"not above {wanted}")

    def _size(self, kind, wrong, value, place):
        if isinstance(value, kind) and wrong(len(value)):
            yield f"{place}: {len(value)} is not a size it can have"

    def _minLength(self, wanted, value, place, _):
        yield from self._size(str, lambda size: size < wanted, value, place)

    def _maxLength(self, wanted, value, place, _):
        yield from self._size(str, lambda size: size > wanted, value, place)

    def _minItems(self, wanted, value, place, _):
        yield from self._size(list, lambda size: size < wanted, value, place)

    def _maxItems(self, wanted, value, place, _):
        yield from self._size(list, lambda size: size > wanted, value, place)

    def _minProperties(self, wanted, value, place, _):
        yield from self._size(dict, lambda size: size < wanted, value, place)

    def _maxProperties(self, wanted, value, place, _):
        yield from self._size(dict, lambda size: size > wanted, value, place)

    def _pattern(self, wanted, value, place, _):
        if isinstance(value, str) and not re.search(wanted, value):
            yield f"{place}: {value!r:.80} is not like {wanted}"


# ---- making ------------------------------------------------------------------------------------------

UNICODE = ("", "\u0000", "é", "\u202e", "\ufeff", "\ud83d\ude00", "\U0001f4a9", "a\u0301", "日本語",
           "\u2028", "%00", "../..", "\\", "\"", "'", "\n", "\r\n", "\x7f", "\uffff", "z" * 300)
NUMBERS = (0, -1, 1, 0.5, -0.0, 1e-9, 1e9, 1e307, 2**31, 2**32, 2**53, 2**53 + 1, -2**63, 2**63,
           2**64, 9007199254740991, 0.001, 3600.0001, 1.5)
WRONG = (None, True, False, 0, 1, -1, 1.5, "", "1", "true", "null", [], {}, [[]], [None], {"": None},
         {"a": {"b": {}}}, ["a", 1], "x" * 1000)


class Maker:
    """Requests for operations, most of them wrong in one place."""

    # Nothing that is made may cost much: what is valid runs.
    CHEAP = {"code": ("1", "print('x')", "1/0", "raise SystemExit(3)"),
             "command": (["true"], ["sh", "-c", "exit 3"], ["no-such-program"]),
             "timeoutS": (0.5, 1, 2), "memoryMb": (64, 512), "pids": (16, 256),
             "waitS": (0, 0.01), "setup": ("true",), "prewarm": (0,), "detach": (False,),
             "queueTimeoutS": (5,), "network": (False,), "workspace": ("/nonexistent",),
             "mounts": ({},), "language": ("python", "bash"), "image": (None,), "ttlS": (60,),
             "idleTimeoutS": (60,)}

    def __init__(self, spec, chance):
        self.spec, self.chance = spec, chance  # chance: random.Random

    def value(self, schema, name="", depth=0):
        """A value that fits, more or less."""
        schema = self.spec.resolve(schema)
        chance = self.chance
        if name in self.CHEAP:
            return copy.deepcopy(chance.choice(self.CHEAP[name]))
        for keyword in ("oneOf", "anyOf"):
            if keyword in schema:
                return self.value(chance.choice(schema[keyword]), name, depth)
        if "allOf" in schema:
            return self.value({**schema["allOf"][0], **schema}, name, depth) \
                if "properties" in schema else self.value(schema["allOf"][0], name, depth)
        if "const" in schema:
            return schema["const"]
        if "enum" in schema:
            return chance.choice(schema["enum"])
        kinds = schema.get("type", "object" if "properties" in schema else "string")
        kind = chance.choice(kinds) if isinstance(kinds, list) else kinds
        return getattr(self, "_" + kind)(schema, depth)

    def _object(self, schema, depth):
        made = {}
        required = set(schema.get("required", ()))
        for name, child in schema.get("properties", {}).items():
            if name in required or (depth < 4 and self.chance.random() < 0.15):
                made[name] = self.value(child, name, depth + 1)
        extra = schema.get("additionalProperties")
        if isinstance(extra, dict) and depth < 4:
            for number in range(self.chance.randrange(3)):
                made[f"K{number}"] = self.value(extra, "", depth + 1)
        return made

    def _array(self, schema, depth):
        if "prefixItems" in schema:
            return [self.value(item, "", depth + 1) for item in schema["prefixItems"]]
        count = self.chance.randrange(schema.get("minItems", 0), 4)
        return [self.value(schema.get("items", {}), "", depth + 1) for _ in range(count)]

    def _string(self, schema, _):
        if "pattern" in schema or self.chance.random() < 0.7:
            return self.chance.choice(("a", "f.txt", "fuzz", "x1", "dGV4dA=="))
        return self.chance.choice(UNICODE)

    def _integer(self, schema, _):
        low, high = schema.get("minimum", 0), schema.get("maximum", 1 << 40)
        return self.chance.choice((low, low + 1, high, min(high, 100)))

    def _number(self, schema, depth):
        return self._integer(schema, depth)

    def _boolean(self, *_):
        return self.chance.random() < 0.5

    def _null(self, *_):
        return None

    # ---- breaking ----

    def places(self, value, found=None):
        """(container, key) of everything inside."""
        found = [] if found is None else found
        rows = value.items() if isinstance(value, dict) else enumerate(value) \
            if isinstance(value, list) else ()
        for key, item in list(rows):
            found.append((value, key))
            self.places(item, found)
        return found

    def spoil(self, value):
        """One change somewhere in a copy."""
        chance = self.chance
        value = copy.deepcopy(value)
        places = self.places(value)
        how = chance.randrange(8)
        if how == 0 and isinstance(value, dict):
            value[chance.choice(("unknown", "", "Code", "timeoutSeconds", "__proto__", "é",
                                 "x" * 2000))] = chance.choice(WRONG)
            return value
        if not places:
            return chance.choice(WRONG)
        container, key = chance.choice(places)
        if how == 1:
            del container[key]
        elif how in (2, 3):
            container[key] = chance.choice(NUMBERS)
        elif how == 4:
            container[key] = chance.choice(UNICODE)
        elif how == 5:
            container[key] = [container[key]] * chance.choice((1, 40))
        elif how == 6:
            container[key] = chance.choice(("x" * 70000, ["y"] * 5000, {str(n): n
                                                                       for n in range(3000)}))
        else:
            container[key] = chance.choice(WRONG)
        return value

    def broken_text(self, text):
        """Not JSON any more, or JSON of another kind."""
        chance = self.chance
        at = chance.randrange(len(text) + 1)
        return chance.choice((
            text[:at], text + b"x", text[:at] + b"\xff" + text[at:], b"[" * 100 + text, b"\0" + text,
            text.replace(b'"', b"'"), text.replace(b":", b"::", 1), text + text, b"", b"null", b"[]",
            b'"text"', b"1e999", b'{"a":NaN}', b'{"a":1,"a":1}', b"\xef\xbb\xbf" + text,
            text.replace(b"1", b"01", 1), text.replace(b"{", b'{"timeoutS":1e400,', 1),
            b"/**/" + text, text.replace(b"}", b",}", 1), text[:at] + bytes([chance.randrange(256)])
            + text[at + 1:]))

    def body(self, schema):
        """The bytes of a body, of which about one in five is right."""
        value = self.value(schema)
        for _ in range(self.chance.choice((0, 1, 1, 1, 2))):
            value = self.spoil(value)
        text = json.dumps(value, ensure_ascii=self.chance.random() < 0.5) \
            .encode("utf-8", "surrogatepass")
        return self.broken_text(text) if self.chance.random() < 0.1 else text
