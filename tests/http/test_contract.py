# SPDX-License-Identifier: Apache-2.0
"""The description against the running server: its examples, defaults and shapes of answers."""
import unittest

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
