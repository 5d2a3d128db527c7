# SPDX-License-Identifier: Apache-2.0
"""Rich results of Python code: values, displays, figures, and values that misbehave."""
import unittest

import harness
import wire
from templatekit import Forked

PNG = "iVBORw0KGgo="  # base64 of the eight bytes that start a PNG
BUNDLES = r'''
class M:
    def _repr_mimebundle_(self, include=None, exclude=None):
        return {"text/html": "<i>x</i>", "application/vnd.vegalite.v5+json": {"a": 1},
                "image/png": b"\x89PNG\r\n\x1a\n"}, {"image/png": {"width": 1}}
class P:
    def _repr_png_(self): return (b"\x89PNG\r\n\x1a\n", {"width": 1})
'''
FAKE_PYPLOT = r'''
import sys, types
m = types.ModuleType("matplotlib.pyplot"); open_ = [1]
class F:
    def savefig(self, b, format="png", **k): b.write(b"\x89PNG\r\n\x1a\n")
m.get_fignums = lambda: list(open_); m.figure = lambda n=None: F()
m.close = lambda *a: open_.clear()
sys.modules["matplotlib.pyplot"] = m
'''


class ResultCase(Forked, harness.Case):
    def results(self, code, **options):
        result = self.run_code(code, **options)
        self.assert_success(result)
        return result["results"]

    def only(self, code, **options):
        results = self.results(code, **options)
        self.assertEqual(len(results), 1, results)
        return results[0]["data"]


class Values(ResultCase):
    """The value of the last expression and what display() is given."""

    def test_last_expression(self):
        results = self.results("x = 20\nx + 22")
        self.assertEqual(results, [{"data": {"text/plain": "42"}, "isMain": True,
                                    "truncated": False}])

    def test_nothing_to_show(self):
        for code in ("x = 1", "None", "", "# only a comment", "print(5) and None", "pass"):
            with self.subTest(code=code):
                self.assertEqual(self.results(code), [])

    def test_the_expression_is_evaluated_once(self):
        result = self.run_code("print('once') or 5")
        self.assert_success(result, "once\n")
        self.assertEqual(result["results"][0]["data"]["text/plain"], "5")

    def test_display_comes_in_order_before_the_value(self):
        results = self.results("display('a')\ndisplay(2)\nfor i in 'x': display(i)\n3")
        self.assertEqual([r["data"]["text/plain"] for r in results], ["'a'", "2", "'x'", "3"])
        self.assertEqual([r["isMain"] for r in results], [False, False, False, True])

    def test_text_representations(self):
        data = self.only("""
class A:
    def _repr_html_(self): return "<b>é</b>"
    def _repr_markdown_(self): return "*m*"
    def _repr_svg_(self): return "<svg/>"
    def _repr_latex_(self): return "$x$"
    def __repr__(self): return "A()"
A()""")
        self.assertEqual(data, {"text/html": "<b>é</b>", "text/markdown": "*m*",
                                "image/svg+xml": "<svg/>", "text/latex": "$x$",
                                "text/plain": "A()"})

    def test_json_is_embedded_as_json(self):
        data = self.only("class A:\n def _repr_json_(self): return {'a': [1, 'é', None, True]}\nA()")
        self.assertEqual(data["application/json"], {"a": [1, "é", None, True]})

    def test_images(self):
        data = self.only(r"""
class A:
    def _repr_png_(self): return b"\x89PNG\r\n\x1a\n"
    def _repr_jpeg_(self): return b"\xff\xd8\xff"
A()""")
        self.assertEqual((data["image/png"], data["image/jpeg"]), (PNG, "/9j/"))

    def test_results_before_an_error_are_kept(self):
        result = self.run_code("display(1)\n1/0")
        self.assertEqual((result["exitCode"], result["fault"]), (1, None))
        self.assertIn("ZeroDivisionError", result["stderr"])
        self.assertEqual([r["data"]["text/plain"] for r in result["results"]], ["1"])

    def test_other_languages_have_none(self):
        self.assertEqual(self.run_code("echo 5", "bash")["results"], [])
        self.assertEqual(self.run_command(["python3", "-c", "5"])["results"], [])

    def test_values_are_text_even_when_not_unicode(self):
        data = self.only("class A:\n def __repr__(self): return 'a\\ud800b'\nA()")
        self.assertIn("a", data["text/plain"])  # the reply itself was checked to be strict JSON

    def test_many_results(self):
        results = self.results("for i in range(500): display(i)")
        self.assertEqual([r["data"]["text/plain"] for r in results], [str(i) for i in range(500)])


class NotANumber(ResultCase):
    """NaN and Infinity never reach the answer as such."""

    def test_json_result(self):
        data = self.only("""
class J:
    def _repr_json_(self): return {"a": float("nan"), "b": [float("inf"), -float("inf")], "c": 1.5}
J()""")
        self.assertIn("text/plain", data)
        self.assertEqual(data["application/json"], {"a": None, "b": [None, None], "c": 1.5})

    def test_json_result_given_as_text(self):
        data = self.only("class J:\n def _repr_json_(self): return '{\"a\": NaN}'\nJ()")
        self.assertIn("text/plain", data)

    def test_hostile_json_text(self):
        for text in ('{"a":1,"a":2}', '[' * 5000, '{"a":1} x', "'x'", "", "1e999", "nul",
                     '"\\ud800"'):
            with self.subTest(text=text[:20]):
                result = self.run_code(
                    f"class J:\n def _repr_json_(self): return {text!r}\nJ()")
                self.assertIsNone(result["fault"])

    def test_plain_value(self):
        self.assertEqual(self.only("float('nan')"), {"text/plain": "nan"})


class BadRepresentations(ResultCase):
    """Values whose text raises, is huge, or never comes."""

    def test_raising(self):
        result = self.run_code("class R:\n def __repr__(self): raise ValueError('boom-42')\nR()")
        self.assertEqual((result["exitCode"], result["fault"]), (1, None))  # in a kernel, too
        seen = result["stderr"] + repr(result["results"])
        self.assertIn("ValueError", seen)
        self.assertIn("boom-42", seen)
        self.assertIsNone(result["fault"])
        # Showing a value is part of the code's work: an error there is the code's error.
        self.assertEqual(result["exitCode"], 1)

    def test_raising_in_display_is_an_ordinary_error(self):
        result = self.run_code("""
class R:
    def __repr__(self): raise ValueError("boom-42")
try:
    display(R())
except ValueError as error:
    print("caught", error)
""")
        seen = result["stdout"] + result["stderr"] + repr(result["results"])
        self.assertIn("boom-42", seen)
        self.assertIsNone(result["fault"])

    def test_a_rich_form_that_raises_leaves_the_others(self):
        data = self.only("""
class R:
    def _repr_html_(self): raise RuntimeError("no html")
    def __repr__(self): return "plain"
R()""")
        self.assertEqual(data, {"text/plain": "plain"})

    def test_a_number_too_long_for_text(self):
        result = self.run_code("10**5000")
        seen = result["stderr"] + repr(result["results"])
        self.assertIn("4300", seen)  # the interpreter's own words: "Exceeds the limit (4300 ...)"
        self.assertIsNone(result["fault"])

    def test_endless(self):
        with self.within(5):
            result = self.run_code("class R:\n def __repr__(self):\n  while True: pass\nR()",
                                   timeoutS=2)
        self.assert_fault(result, "timeout")

    def test_huge(self):
        reply = self.daemon.post("/v1/runCode", {"code": '"x"*3_000_000', "language": "python",
                                                 "maxOutputBytes": 1048576})
        self.assertEqual(reply.status, 200)
        self.assertLess(len(reply.body), 2 << 20)
        result = reply.json
        self.assert_success(result)
        if result["results"]:
            self.assertLess(len(result["results"][0]["data"]["text/plain"]), 3_000_000)
            self.assertTrue(result["results"][0]["truncated"])
        else:
            self.assertTrue(result["resultsTruncated"])

    def test_not_text(self):
        result = self.run_code("class R:\n def __repr__(self): return 5\nR()")
        self.assertIn("TypeError", result["stderr"] + repr(result["results"]))
        self.assertIsNone(result["fault"])

    def test_wrong_types_in_rich_forms(self):
        data = self.only("""
class R:
    def _repr_html_(self): return 5
    def _repr_png_(self): return object()
    def _repr_json_(self): return {1: {2, 3}}
    def _repr_mimebundle_(self, include=None, exclude=None): return [("text/html", 5)]
    def __repr__(self): return "still"
R()""")
        self.assertEqual(data["text/plain"], "still")  # that each form is of its type: check.py
        self.assertNotIn("image/png", data)


class MimeBundles(ResultCase):
    """Objects that answer with several forms at once, in the shapes that libraries use."""

    def test_bundle_with_metadata(self):
        data = self.only(BUNDLES + "M()")
        self.assertEqual(data["text/html"], "<i>x</i>")
        self.assertEqual(data["application/vnd.vegalite.v5+json"], {"a": 1})
        self.assertEqual(data["image/png"], PNG)

    def test_image_with_metadata(self):
        self.assertEqual(self.only(BUNDLES + "P()")["image/png"], PNG)

    def test_class_itself_is_not_a_value_with_forms(self):
        data = self.only(BUNDLES + "M")
        self.assertEqual(set(data), {"text/plain"})

    def test_hostile_names_of_forms(self):
        result = self.run_code("""
class M:
    def _repr_mimebundle_(self, include=None, exclude=None):
        return {"": "a", "text": "b", "TEXT/HTML": "c", "text/plain": "ok", "x/" + "y" * 5000: "d",
                "text/\\n": "e", 5: "f", "text/html; charset=utf-8": "g", "a/b/c": "h"}
M()""")
        self.assertIsNone(result["fault"])  # the shape of each form is checked for every answer

    def test_very_many_forms(self):
        result = self.run_code("""
class M:
    def _repr_mimebundle_(self, include=None, exclude=None):
        return {f"x/y{i}": "v" for i in range(1000)}
M()""")
        self.assertIsNone(result["fault"])


class Figures(ResultCase):
    """A figure is shown once."""

    def test_open_figures_are_shown_and_closed(self):
        results = self.results(FAKE_PYPLOT + "\nprint(len(open_))")
        images = [r["data"]["image/png"] for r in results if "image/png" in r["data"]]
        self.assertEqual(images, [PNG])

    def test_value_and_figure(self):
        results = self.results(FAKE_PYPLOT + "\n5")
        self.assertEqual([sorted(r["data"]) for r in results], [["text/plain"], ["image/png"]])

    def test_broken_pyplot(self):
        for broken in ("sys.modules['matplotlib.pyplot'] = None",
                       "sys.modules['matplotlib.pyplot'] = 5",
                       "m = types.ModuleType('x'); sys.modules['matplotlib.pyplot'] = m",
                       "m.get_fignums = lambda: 1/0; sys.modules['matplotlib.pyplot'] = m",
                       "m.get_fignums = lambda: [1]; m.figure = lambda n: 1/0;"
                       " sys.modules['matplotlib.pyplot'] = m"):
            with self.subTest(broken=broken):
                result = self.run_code("import sys, types\nm = types.ModuleType('x')\n"
                                       f"{broken}\nprint('ok')")
                self.assertEqual(result["stdout"], "ok\n")
                self.assertIsNone(result["fault"])


class HostileDriverPeer(ResultCase):
    """Code in the box that speaks to the daemon in the driver's place."""

    def test_garbage_on_every_descriptor(self):
        code = """
import os, socket
for fd in range(3, 64):
    try: os.write(fd, os.urandom(3000))
    except OSError: pass
print("sent")
"""
        result = self.run_code(code)
        self.assertEqual(result["stdout"], "sent\n")
        self.assertIsNone(result["fault"])
        self.assertEqual(self.run_code("1+1")["results"][0]["data"]["text/plain"], "2")

    def test_a_second_connection_is_impossible(self):
        code = """
import os, socket
for name in ("driver.sock", "init.sock"):
    s = socket.socket(socket.AF_UNIX)
    try: s.connect("/run/kernd/" + name); print(name, "connected")
    except OSError as error: print(name, error.errno)
"""
        result = self.run_code(code)
        self.assert_success(result)
        self.assertNotIn("connected", result["stdout"])
        self.assertEqual(len(result["stdout"].splitlines()), 2)

    def test_workspace_modules_cannot_break_the_driver(self):
        names = ("json", "socket", "struct", "traceback", "ast", "os", "sys", "io", "base64",
                 "linecache", "types", "site", "sitecustomize", "usercustomize", "encodings",
                 "codecs", "tokenize", "math", "builtins", "marshal", "warnings", "abc")
        files = {f"{name}.py": "raise SystemExit('workspace module was imported')"
                 for name in names}
        result = self.run_code("display(1)\nclass A:\n  def _repr_json_(self): return [1.5]\nA()",
                               files=files)
        self.assert_success(result)
        self.assertEqual(len(result["results"]), 2)
        self.assertEqual(result["stderr"], "")

    def test_a_workspace_module_is_importable(self):
        result = self.run_code("import helper\nhelper.x", files={"helper.py": "x = 'mine'"})
        self.assert_success(result)
        self.assertEqual(result["results"][0]["data"]["text/plain"], "'mine'")

    def test_the_answer_is_checked_not_believed(self):
        self.assertRaises(wire.WireError, wire.strict_json, b'{"a":NaN}')
        self.assertRaises(wire.WireError, wire.strict_json, b'{"a":1,"a":2}')
        self.assertRaises(ValueError, wire.strict_json, b'{"a":1} x')
        self.assertRaises(UnicodeError, wire.strict_json, b'"\xff"')


if __name__ == "__main__":
    unittest.main()
