# SPDX-License-Identifier: Apache-2.0
"""The description against the running server: its examples, defaults and shapes of answers."""
import re
import unittest
import urllib.parse

import harness
import speckit

PREPARED = "demo"


class Contract(harness.Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.spec = speckit.Spec(cls.daemon.get("/openapi.json").json)

    def prepare(self, path):
        """What ids in an example's path, and names in its body, stand for."""
        if "/sessions/{id}" in path:
            self.assertEqual(self.daemon.post("/v1/sessions", {"id": PREPARED}).status, 201)
            self.daemon.request("PUT", f"/v1/sessions/{PREPARED}/files/draft.txt", b"a",
                                media_type="application/octet-stream")
        if path.endswith("/restore"):
            self.daemon.post(f"/v1/sessions/{PREPARED}/snapshots", {"name": "before-upgrade"})
        if "{kid}" in path:
            reply = self.daemon.post(f"/v1/sessions/{PREPARED}/kernels", {"id": "k"})
            self.assertEqual(reply.status, 201)
        return path.replace("{id}", PREPARED).replace("{kid}", "k")

    def remove_all(self):
        for kind in ("sessions", "snapshots", "tokens"):
            for row in self.daemon.get(f"/v1/{kind}").json["items"]:
                self.daemon.request("DELETE", f"/v1/{kind}/{row['id']}")

    def judge(self, operation, reply):
        response = self.spec.response(operation, reply.status)
        content = response.get("content", {}).get(reply.media_type, {})
        if "schema" in content and reply.media_type.endswith("json"):
            self.assertEqual(list(self.spec.faults(content["schema"], reply.json)), [], reply)

    def examples(self):
        for method, path, operation, _ in self.spec.operations():
            body = self.spec.resolve(operation.get("requestBody", {}))
            for content in body.get("content", {}).values():
                for name, example in content.get("examples", {}).items():
                    yield method, path, operation, name, self.spec.resolve(example)["value"]

    @staticmethod
    def without_network(path, value):
        """Packages come from elsewhere: the command of a setup is another one here."""
        if path.endswith("/setup"):
            return {"command": "true"}
        return {**value, "setup": "true"} if "setup" in value else value

    def test_every_example_works(self):
        """It fits its own schema, and the server does what it asks for."""
        count = 0
        for method, path, operation, name, value in self.examples():
            count += 1
            with self.subTest(example=f"{method} {path} {name}"):
                try:
                    schema = self.spec.body_schema(operation)
                    self.assertEqual(list(self.spec.faults(schema, value)), [])
                    reply = self.daemon.request(method, self.prepare(path),
                                                self.without_network(path, value))
                    self.assertLess(reply.status, 300, reply)
                    self.judge(operation, reply)
                finally:
                    self.remove_all()
        self.assertGreaterEqual(count, 17)

    def test_defaults_are_those_of_the_server(self):
        defaults = self.daemon.get("/v1/capabilities").json["defaults"]
        for schema in ("RunRequest", "RunCodeRequest", "SessionRequest"):
            properties = self.spec.document["components"]["schemas"][schema]["properties"]
            for name, value in defaults.items():
                with self.subTest(schema=schema, field=name):
                    field = self.spec.resolve(properties[name])
                    self.assertEqual(field.get("default"), value)
        session = self.daemon.post("/v1/sessions", {"id": "defaults"}).json
        self.addCleanup(self.daemon.request, "DELETE", "/v1/sessions/defaults")
        properties = self.spec.document["components"]["schemas"]["SessionRequest"]["properties"]
        told = 0
        for name, value in session["options"].items():
            field = self.spec.resolve(properties.get(name, {}))
            if "default" in field and value is not None and name != "engine":
                self.assertEqual(field["default"], value, name)
                told += 1
        self.assertGreaterEqual(told, 5)

    def test_every_default_fits_its_own_schema(self):
        def walk(node, place):
            if isinstance(node, dict):
                if "default" in node and "type" in node and "in" not in node:
                    self.assertEqual(list(self.spec.faults(node, node["default"])), [], place)
                for name, item in node.items():
                    walk(item, f"{place}/{name}")
            elif isinstance(node, list):
                for number, item in enumerate(node):
                    walk(item, f"{place}/{number}")

        walk(self.spec.document["components"]["schemas"], "")

    def test_bounds_are_the_servers(self):
        """Just inside a range is no matter of form, just outside is, whatever the maxima are."""
        bodies = {"/v1/run": ("RunRequest", {"command": ["true"]}),
                  "/v1/runCode": ("RunCodeRequest", {"code": "1"})}
        for target, (schema, body) in bodies.items():
            properties = self.spec.document["components"]["schemas"][schema]["properties"]
            for name, field in properties.items():
                field = self.spec.resolve(field)
                for key, step in (("minimum", -1), ("maximum", 1)):
                    if key in field and "number" in str(field["type"]) + "number":
                        outside = field[key] + step * max(1, abs(field[key]) * 1e-9)
                        if key == "minimum" and field[key] > 0:
                            outside = field[key] / 2 if field["type"] != "integer" else 0
                        with self.subTest(target=target, field=name, value=outside):
                            reply = self.daemon.post(target, {**body, name: outside})
                            self.assert_problem(reply, 422, "bad_value", f"/{name}")

    def near(self, schema):
        """Values of every type, and those at and just beyond each bound of the schema."""
        yield from (*schema.get("enum", ()), *schema.get("examples", ()))
        yield from (None, 5, 1.5, "a", True, [], {}, "", [5], [{}], {"K": 5}, {"K": [5]},
                    "x" * 70000, ["x" * 70000], [f"m{number}" for number in range(2000)],
                    {f"K{number}": "v" for number in range(2000)})
        for part in (schema, *schema.get("oneOf", ()), *schema.get("allOf", ())):
            part = self.spec.resolve(part)
            for key, make in (("Length", lambda size: "x" * size),
                              ("Items", lambda size: [f"m{number}" for number in range(size)]),
                              ("Properties", lambda size: {f"K{number}": "v"
                                                           for number in range(size)})):
                bounds = [part[end + key] for end in ("min", "max") if end + key in part]
                yield from (make(max(0, size + step)) for size in bounds for step in (-1, 0, 1))

    # What is judged behind all members, or in its own answer: test_bounds_that_are_seen_later.
    LATER = {("/v1/tokens", "name"): str, ("/v1/batch", "items"): list}

    def judged(self, method, path, name, value):
        """
        Whether the server takes a value for what the field may be. Members are read in their order:
        the unknown one behind it is what is refused then, and nothing is done.
        """
        reply = self.daemon.request(method, path, {name: value, "noSuchField": 1})
        self.assertIn(reply.status, (403, 422), reply)
        pointers = [entry["pointer"] for entry in reply.json.get("errors", ())]
        return not (reply.json["code"] in ("bad_value", "bad_path", "unknown_field") and pointers
                    and pointers[0].split("/")[1] == name)

    def test_types_and_bounds_are_the_servers(self):
        """Of every field of every body, also those that the tables' rows read for themselves."""
        self.prepare("/sessions/{id}/{kid}")
        self.addCleanup(self.remove_all)
        asked = set()
        for method, path, operation, _ in self.spec.operations():
            schema = self.spec.resolve(self.spec.body_schema(operation) or {})
            if operation["tags"] == ["mcp"] or "properties" not in schema:
                continue
            path = path.replace("{id}", PREPARED).replace("{kid}", "k")
            for name, field in schema["properties"].items():
                field = self.spec.resolve(field)
                for value in self.near(field):
                    if isinstance(value, self.LATER.get((path, name), ())) or \
                            (value is None and name in schema.get("required", ())):
                        continue  # null is as good as absent
                    told = not list(self.spec.faults(field, value))
                    with self.subTest(operation=f"{method} {path}", field=name,
                                      value=f"{value!r:.60}"):
                        self.assertEqual(self.judged(method, path, name, value), told)
                asked.add(name)
        self.assertGreater(len(asked), 40)

    def test_bounds_that_are_seen_later(self):
        self.addCleanup(self.remove_all)
        schemas = self.spec.document["components"]["schemas"]
        name = schemas["TokenRequest"]["properties"]["name"]
        items = schemas["BatchRequest"]["properties"]["items"]
        for low, high, ask in (
                (name["minLength"], name["maxLength"], lambda size: self.daemon.post(
                    "/v1/tokens", {"scope": "run", "name": "x" * size})),
                (items["minItems"], items["maxItems"], lambda size: self.daemon.post(
                    "/v1/batch", {"items": [{}] * size}))):
            self.assertEqual([ask(size).status < 300 for size in (low - 1, low, high, high + 1)],
                             [False, True, True, False])

    NUMBERS = ("", "x", "1.5", "0x1", "+1", " 1", "1e2", "1_0", "\u0661")

    def texts(self, schema):
        """(text of a query, whether it is what the schema says)."""
        kind = schema.get("type")
        if kind in ("integer", "number"):
            bounds = [schema[key] + step for key in ("minimum", "maximum") if key in schema
                      for step in (-1, 0, 1)]
            for text in (*map(str, bounds), *self.NUMBERS):
                number = float(text) if re.fullmatch(r"-?[0-9]+(\.[0-9]+)?", text) else None
                yield text, number is not None and not list(self.spec.faults(schema, number))
        elif kind == "boolean" or "enum" in schema:
            right = schema.get("enum", ("true", "false", "1", "0", ""))
            for text in {*right, "", "2", "yes", right[0].upper(), right[0] + "x"}:
                yield text, text in right

    def test_query_parameters_are_the_servers(self):
        self.prepare("/sessions/{id}/{kid}")
        self.daemon.run(["true"], id=PREPARED)
        self.addCleanup(self.remove_all)
        asked = set()
        for method, path, operation, parameters in self.spec.operations():
            content = self.spec.resolve(operation.get("requestBody", {})).get("content", {})
            sent = {"body": b"" if content else None, "media_type": next(iter(content), None)}
            path = re.sub(r"\{path[.]*\}", "no/such/file", path.replace("{kid}", "k"))
            path = re.sub(r"\{\w+\}", PREPARED, path)
            queries = {row["name"]: self.spec.resolve(row["schema"]) for row in parameters
                       if row["in"] == "query"}
            if not queries:
                continue
            reply = self.daemon.request(method, f"{path}?noSuchParameter=1", **sent)
            self.assertEqual(reply.status, 422, reply)
            for name, schema in queries.items():
                for text, told in self.texts(schema):
                    with self.subTest(operation=f"{method} {path}", parameter=name, text=text):
                        reply = self.daemon.request(
                            method, f"{path}?{name}={urllib.parse.quote(text)}", **sent)
                        refused = reply.status == 422 and f'"{name}"' in reply.json["detail"]
                        self.assertEqual(refused, not told, reply)
                        asked.add((method, path, name))
        self.assertGreater(len(asked), 10)

    def test_unknown_fields_are_refused_everywhere(self):
        for method, path, operation, _ in self.spec.operations():
            schema = self.spec.body_schema(operation)
            if schema is not None and operation["tags"] != ["mcp"]:
                with self.subTest(operation=f"{method} {path}"):
                    path = path.replace("{id}", PREPARED).replace("{kid}", "k")
                    reply = self.daemon.request(method, path, {"noSuchField": 1})
                    self.assertIn(reply.status, (404, 422), reply)
                    if reply.status == 422:
                        self.assertIn(reply.json["code"], ("unknown_field", "bad_value"))


if __name__ == "__main__":
    unittest.main()
