# SPDX-License-Identifier: Apache-2.0
"""What a request body may hold: strict JSON, known fields, values in range."""
import unittest

import harness


class Run(harness.Case):
    """Helper: a refused body runs nothing, is answered at once, and the daemon lives on."""

    def refuse(self, target, body, status=None, code=None, pointer=None):
        with self.within(1):
            reply = self.daemon.post(target, body)
        self.assertTrue(400 <= reply.status < 500, reply)
        if status is not None:
            self.assertEqual(reply.status, status, reply)
        if code is not None:
            self.assertEqual(reply.json["code"], code, reply.json)
        if pointer is not None:
            self.assertEqual([e["pointer"] for e in reply.json["errors"]], [pointer], reply.json)
        return reply.json


class LenientJson(Run):
    """Everything that a lenient parser would let through is refused as bad_json."""

    def bad_json(self, body):
        return self.refuse("/v1/runCode", body, 400, "bad_json")

    def test_null_byte_in_code(self):
        self.bad_json(b'{"code":"print(1)\\u0000print(2)"}')
        self.bad_json(b'{"code":"print(1)\0print(2)"}')
        self.refuse("/v1/run", b'{"command":["echo","a\\u0000b"]}', 400, "bad_json")

    def test_duplicate_keys(self):
        self.bad_json(b'{"code":"print(1)","code":"print(2)"}')
        self.bad_json(b'{"code":"print(1)","env":{"A":"1","A":"2"}}')
        self.bad_json(b'{"code":"print(1)","\\u0063ode":"print(2)"}')

    def test_trailing_bytes(self):
        for tail in (b" x", b"{}", b",", b"\0", b"]", b"/**/"):
            with self.subTest(tail=tail):
                self.bad_json(b'{"code":"print(1)"}' + tail)
        self.assert_success(self.daemon.post("/v1/runCode", b' {"code":"print(1)"}\r\n\t ').json,
                            "1\n")

    def test_not_json(self):
        for body in (b"{'code':'print(1)'}", b'/*c*/{"code":"print(1)"}', b'{"code":"print(1)",}',
                     b'{code:"print(1)"}', b'{"code":"a\nb"}', b'{"code":"a\tb"}',
                     b'{"code" "print(1)"}', b'{"code":"\\x41"}', b'{"code":"print(1)"', b"", b" ",
                     b"{", b"nul", b'{"code":01}', b'{"timeoutS":.5}', b'{"timeoutS":5.}',
                     b'{"timeoutS":+5}', b'{"timeoutS":0x5}', b'{"timeoutS":1_0}', b'{"a":tru}',
                     b'{"a":TRUE}', b'\xef\xbb\xbf{"code":"1"}', b'{"code":"\\u12"}',
                     '{"code":"print(1)"}'.encode("utf-16")):
            with self.subTest(body=body):
                self.bad_json(body)

    def test_not_utf8(self):
        for byte in (b"\xff", b"\xc0\xaf", b"\xed\xa0\x80", b"\xf5\x80\x80\x80", b"\xe2\x82"):
            with self.subTest(byte=byte):
                self.bad_json(b'{"code":"print(1) # ' + byte + b'"}')
        self.bad_json(b'{"co\xffde":"print(1)"}')

    def test_numbers_that_are_none(self):
        for value in (b"NaN", b"Infinity", b"-Infinity", b"nan"):
            with self.subTest(value=value):
                self.bad_json(b'{"code":"print(1)","timeoutS":' + value + b"}")

    def test_numbers_out_of_range(self):
        for value in (b"1e999", b"-1", b"0", b'"5"', b"true", b"123456789012345678901234567890",
                      b"-0.0", b"1e-400", b"[]", b"{}"):
            with self.subTest(value=value):
                found = self.refuse("/v1/runCode",
                                    b'{"code":"print(1)","timeoutS":' + value + b"}")
                self.assertIn(found["code"], ("bad_value", "limit_exceeds_maximum", "bad_json"))

    def test_depth(self):
        self.bad_json(b"[" * 100000)
        self.bad_json(b'{"a":' * 50000)
        self.bad_json(b'{"code":"print(1)","x":' + b"[" * 40 + b"]" * 40 + b"}")

    def test_very_many_values(self):
        reply = self.daemon.post("/v1/runCode", b'{"code":"1","x":[' + b"1," * 2000000 + b"1]}")
        self.assertIn(reply.status, (400, 422))
        reply = self.daemon.post("/v1/runCode", b'{' + b",".join(
            b'"k%d":1' % i for i in range(100000)) + b'}')
        self.assertIn(reply.status, (400, 422))

    def test_surrogates(self):
        reply = self.daemon.post("/v1/runCode", b'{"code":"print(len(\\"\\ud83d\\ude00\\"))"}')
        self.assert_success(reply.json, "1\n")
        for half in (b"\\ud800", b"\\udc00", b"\\ud83dx", b"\\ud83d\\ud83d"):
            with self.subTest(half=half):
                reply = self.daemon.post("/v1/runCode", b'{"code":"print(\\"a' + half + b'b\\")"}')
                self.assertIn(reply.status, (200, 400))

    def test_top_level_of_another_type(self):
        for body in (b"[]", b"null", b"5", b'"x"', b"true", b'[{"code":"1"}]'):
            with self.subTest(body=body):
                self.refuse("/v1/runCode", body, 400)

    def test_nothing_of_all_this_ran(self):
        mark = harness.new_mark()
        body = (b'{"code":"sleep 20","language":"bash","env":{"MARK":"%s"},"env":{}}'
                % mark.encode())
        self.bad_json(body)
        self.assert_success(self.run_code("print(1)"), "1\n")
        self.assert_gone(mark, 0.5)


class Fields(Run):
    """Each fault names the field by JSON pointer."""

    def test_unknown_fields(self):
        found = self.refuse("/v1/runCode", {"code": "1", "timeoutSeconds": 1}, 422,
                            "unknown_field", "/timeoutSeconds")
        self.assertIn("timeoutS", found["remediation"])
        self.refuse("/v1/runCode", {"code": "1", "a/b~c": 1}, 422, "unknown_field", "/a~1b~0c")
        self.refuse("/v1/run", {"command": ["true"], "code": "1"}, 422, "unknown_field", "/code")
        self.refuse("/v1/runCode", {"code": "1", "command": ["true"]}, 422, "unknown_field",
                    "/command")

    def test_missing_fields(self):
        self.refuse("/v1/runCode", {}, 422, "bad_value", "/code")
        self.refuse("/v1/run", {}, 422, "bad_value", "/command")
        self.refuse("/v1/runCode", {"code": None}, 422, "bad_value", "/code")

    def test_command(self):
        found = self.refuse("/v1/run", {"command": "echo hi"}, 422, "bad_value", "/command")
        self.assertIn("[", found["remediation"] + found["detail"], "no hint at the list form")
        for value in ([], [5], ["echo", None], ["echo", ["a"]], {}, 5, True, [""]):
            with self.subTest(value=value):
                found = self.refuse("/v1/run", {"command": value}, 422, "bad_value")
                self.assertTrue(found["errors"][0]["pointer"].startswith("/command"))
        self.refuse("/v1/run", {"command": ["echo", 5]}, 422, "bad_value", "/command/1")

    def test_code_and_language(self):
        for value in (5, True, [], {}, ["print(1)"]):
            with self.subTest(value=value):
                self.refuse("/v1/runCode", {"code": value}, 422, "bad_value", "/code")
        for value in ("perl", "", "Python", "python3", 5, [], "sh"):
            with self.subTest(value=value):
                self.refuse("/v1/runCode", {"code": "1", "language": value}, 422, "bad_value",
                            "/language")

    def test_limits(self):
        maxima = self.daemon.get("/v1/capabilities").json["maxima"]
        for name in ("timeoutS", "memoryMb", "pids", "maxOutputBytes", "cpus"):
            with self.subTest(name=name):
                self.refuse("/v1/run", {"command": ["true"], name: maxima[name] * 2 + 1}, 422,
                            "limit_exceeds_maximum", f"/{name}")
                self.refuse("/v1/run", {"command": ["true"], name: -1}, 422, "bad_value",
                            f"/{name}")
                for value in ("5", True, [], {}):
                    self.refuse("/v1/run", {"command": ["true"], name: value}, 422, "bad_value",
                                f"/{name}")
        for name in ("memoryMb", "pids", "maxOutputBytes"):
            self.refuse("/v1/run", {"command": ["true"], name: 64.5}, 422, "bad_value", f"/{name}")
        self.refuse("/v1/run", {"command": ["true"], "timeoutS": 0}, 422, "bad_value", "/timeoutS")

    def test_exactly_the_maximum_is_fine(self):
        maxima = self.daemon.get("/v1/capabilities").json["maxima"]
        self.assert_success(self.run_command(["true"], timeoutS=maxima["timeoutS"],
                                             pids=maxima["pids"]))

    def test_environment(self):
        for env in ({"A=B": "x"}, {"": "x"}, {"A": 5}, {"A": None}, {"A": ["x"]}, [], "A=B", 5):
            with self.subTest(env=env):
                found = self.refuse("/v1/run", {"command": ["true"], "env": env}, 422, "bad_value")
                self.assertTrue(found["errors"][0]["pointer"].startswith("/env"))
        self.refuse("/v1/run", b'{"command":["true"],"env":{"A":"x\\u0000y"}}', 422, "bad_value",
                    "/env/A")
        self.refuse("/v1/run", {"command": ["true"], "env": {"KERND_X": "1"}}, 422, "bad_value",
                    "/env/KERND_X")
        self.refuse("/v1/run", {"command": ["true"], "env": {"A": "x" * 131072}}, 422, "bad_value",
                    "/env/A")
        # The message may name the variable, never its value.
        found = self.refuse("/v1/run", {"command": ["true"],
                                        "env": {"BAD NAME=": "value-to-hide"}}, 422)
        self.assertNotIn("value-to-hide", str(found))

    def test_other_types(self):
        for name, value in (("stdin", 5), ("stdin", {"base64": "***"}), ("stdin", {"x": 1}),
                            ("cwd", 5), ("cwd", []), ("files", []), ("files", "x"),
                            ("fetchFiles", "x"), ("fetchFiles", {}), ("network", "yes"),
                            ("network", 1), ("trackFiles", 0), ("trackFiles", "false"),
                            ("stdoutEncoding", "utf-16"), ("stdoutEncoding", 5)):
            with self.subTest(name=name, value=value):
                found = self.refuse("/v1/run", {"command": ["true"], name: value}, 422)
                self.assertTrue(found["errors"][0]["pointer"].startswith("/" + name))

    def test_working_directory(self):
        for cwd in ("a\0b", "", "x" * 5000):
            with self.subTest(cwd=cwd[:10]):
                self.refuse("/v1/run", {"command": ["true"], "cwd": cwd}, 422, "bad_path", "/cwd")
        # A place in the box, not on the host: upwards ends at the box's own root.
        self.assert_success(self.run_command(["pwd"], cwd="../.."), "/\n")

    def test_what_does_not_exist_yet_is_told_not_ignored(self):
        values = [("engine", "docker"), ("profiles", ["x"]), ("mounts", {"/etc": "/x"}),
                  ("requireLimits", "x"), ("engine", harness.OTHER_ENGINE)]
        if harness.ENGINE != "kern":  # which has both
            values += [("image", "alpine"), ("egressAllow", ["example.org"])]
        for name, value in values:
            with self.subTest(name=name):
                reply = self.daemon.post("/v1/run", {"command": ["true"], name: value})
                self.assertIn(reply.status, (403, 422), reply)

    def test_very_large_values(self):
        self.refuse("/v1/run", {"command": ["true"], "pids": 2**63}, 422)
        self.refuse("/v1/run", {"command": ["true"], "memoryMb": 2**64}, 422)
        self.refuse("/v1/run", {"command": ["true"], "maxOutputBytes": 10**30}, 422)

    def test_an_argument_list_the_kernel_refuses(self):
        self.refuse("/v1/run", {"command": ["true", "x" * 131072]}, 422, "bad_value", "/command/1")
        self.refuse("/v1/run", {"command": ["true"] + ["x" * 100000] * 30}, 422, "bad_value",
                    "/command")
        longest = "x" * 131071
        self.assert_success(self.run_command(["sh", "-c", "echo ${#1}", "sh", longest]), "131071\n")


if __name__ == "__main__":
    unittest.main()
