# SPDX-License-Identifier: Apache-2.0
"""Values with more than a repr: MIME bundles, JSON, figures."""
import importlib.util
import json
import os
import tempfile
import textwrap
import unittest

from driver_harness import run_once

PNG = "iVBORw0KGgo="


def run_text(code, **options):
    return run_once(textwrap.dedent(code), **options)


class Bundles(unittest.TestCase):
    def only(self, code, stderr="", **options):
        done = run_text(code, **options)
        self.assertEqual((done.code, done.stderr, len(done.results)), (0, stderr, 1))
        return done.results[0]

    def test_each_method(self):
        data = self.only(r"""
            class All:
                def _repr_html_(self): return "<b>é</b>"
                def _repr_markdown_(self): return "*x*"
                def _repr_svg_(self): return "<svg/>"
                def _repr_latex_(self): return "$x$"
                def _repr_json_(self): return {"a": [1, "é\n"]}
                def _repr_png_(self): return b"\x89PNG\r\n\x1a\n"
                def _repr_jpeg_(self): return b"\xff\xd8\xff"
                def __repr__(self): return "All!"
            All()
            """).data
        self.assertEqual(data, {
            "text/html": "<b>é</b>", "text/markdown": "*x*", "image/svg+xml": "<svg/>",
            "text/latex": "$x$", "application/json": '{"a":[1,"é\\n"]}',
            "image/png": PNG, "image/jpeg": "/9j/", "text/plain": "All!"})

    def test_bundle_method_with_metadata_and_bytes(self):
        data = self.only(r"""
            class M:
                def _repr_mimebundle_(self, include=None, exclude=None):
                    return {"text/html": "<i>x</i>",
                            "application/vnd.vegalite.v5+json": {"a": 1},
                            "image/png": b"\x89PNG\r\n\x1a\n"}, {"image/png": {"width": 1}}
                def _repr_html_(self): return "not asked"
                def __repr__(self): return "M"
            M()
            """).data
        self.assertEqual(data, {
            "text/html": "<i>x</i>", "application/vnd.vegalite.v5+json": '{"a":1}',
            "image/png": PNG, "text/plain": "M"})

    def test_methods_that_return_metadata(self):
        data = self.only(r"""
            class P:
                def _repr_png_(self): return b"\x89PNG\r\n\x1a\n", {"width": 1}
                def _repr_json_(self): return [1], {"expanded": True}
                def __repr__(self): return "P"
            P()
            """).data
        self.assertEqual(data, {"image/png": PNG, "application/json": "[1]", "text/plain": "P"})

    def test_images_as_text(self):
        data = self.only(r"""
            class P:
                def _repr_png_(self): return "iVBORw0KGgo="
                def _repr_jpeg_(self): return "abc"
                def __repr__(self): return "P"
            P()
            """).data
        self.assertEqual((data["image/png"], data["image/jpeg"]), (PNG, "YWJj"))

    def test_json_without_nan(self):
        data = self.only("""
            class J:
                def _repr_json_(self):
                    return {"a": float("nan"), "b": [float("inf"), -float("inf")], "c": 1.5,
                            "d": 10**30, "e": True, "f": None, 3: (), None: {}, True: -0.0}
            J()
            """).data
        strict = json.loads(data["application/json"], parse_constant=self.fail)
        self.assertEqual(strict, {"a": None, "b": [None, None], "c": 1.5, "d": 10**30, "e": True,
                                  "f": None, "3": [], "null": {}, "true": 0.0})
        self.assertIn("J object", data["text/plain"])

    def test_json_strings(self):
        data = self.only(r"""
            class J:
                def _repr_json_(self): return '"\\/\x00\x1f\x7f\u2028😀\ud800\n\t' + "'"
                def __repr__(self): return "J"
            class K:
                def _repr_json_(self): return [J()._repr_json_()]
                def __repr__(self): return "K"
            K()
            """).data
        self.assertEqual(json.loads(data["application/json"]),
                         ['"\\/\x00\x1f\x7f\u2028😀\ufffd\n\t\''])

    def test_json_that_can_not_be(self):
        for value, reason in {"{'a': object()}": "TypeError: object has no JSON form",
                              "loop": "ValueError: nested too deeply for JSON",
                              "10**5000": "ValueError: Exceeds the limit"}.items():
            done = run_text(f"""
                loop = []; loop.append(loop)
                class J:
                    def _repr_json_(self): return {value} if {value} is not loop else [loop]
                    def __repr__(self): return "J"
                J()
                """)
            self.assertEqual((done.code, done.results[0].data), (0, {"text/plain": "J"}))
            self.assertIn("display: application/json left out: " + reason, done.stderr)

    def test_methods_that_fail_are_told(self):
        result = self.only("""
            class R:
                def _repr_html_(self): raise ValueError("boom")
                def _repr_svg_(self): raise NotImplementedError
                def __repr__(self): return "R"
            R()
            """, stderr="display: _repr_html_ of R raised ValueError: boom\n")
        self.assertEqual(result.data, {"text/plain": "R"})

    def test_a_repr_that_raises_is_an_error_of_the_code(self):
        done = run_text("""
            class R:
                def __repr__(self): raise ValueError("boom-42")
            R()
            """)
        self.assertEqual((done.code, done.results), (1, []))
        self.assertIn("ValueError: boom-42", done.stderr)
        self.assertNotIn("driver", done.stderr)
        done = run_text("""
            class R:
                def __repr__(self): raise ValueError("boom-42")
            try:
                display(R())
            except ValueError as e:
                print(e)
            """)
        self.assertEqual((done.code, done.stdout), (0, "boom-42\n"))
        done = run_once("10**5000")
        self.assertEqual(done.code, 1)
        self.assertIn("ValueError: Exceeds the limit", done.stderr)

    def test_a_repr_that_raises_beside_another_form(self):
        result = self.only("""
            class R:
                def _repr_html_(self): return "<b>"
                def __repr__(self): raise ValueError("boom")
            R()
            """)
        self.assertEqual(result.data, {"text/html": "<b>",
                                       "text/plain": "<R: repr raised ValueError: boom>"})

    def test_classes_and_mocks_are_only_their_repr(self):
        self.assertEqual(list(self.only("""
            class R:
                def _repr_html_(self): return "<b>"
            R
            """).data), ["text/plain"])
        self.assertEqual(list(self.only("import unittest.mock\nunittest.mock.MagicMock()").data),
                         ["text/plain"])

    def test_odd_mime_types_are_left_out(self):
        done = run_text("""
            class M:
                def _repr_mimebundle_(self, include=None, exclude=None):
                    return {"Text/HTML": "<b>", "nonsense": "x", "a/b/c": "x", 5: "x", "a/b;c": "",
                            "text/é": "x", "x/" + "y" * 200: "x", "text/css": None}
                def __repr__(self): return "M"
            M()
            """)
        self.assertEqual((done.code, done.results[0].data),
                         (0, {"text/html": "<b>", "text/plain": "M"}))
        self.assertEqual(done.stderr.count("can not be shown"), 5)

    def test_too_many_parts(self):
        done = run_text("""
            class M:
                def _repr_mimebundle_(self, include=None, exclude=None):
                    return {"a/b%d" % i: "x" for i in range(100)}
            M()
            """)
        self.assertEqual((done.code, len(done.results[0].data)), (0, 33))

    def test_oversize_parts_are_left_out(self):
        result = self.only("""
            class M:
                def _repr_html_(self): return "<" * (30 << 20)
                def _repr_latex_(self): return "$"
                def __repr__(self): return "M"
            M()
            """, stderr="display: text/html left out: 31457280 bytes are too many\n")
        self.assertTrue(result.shortened)
        self.assertEqual(result.data, {"text/latex": "$", "text/plain": "M"})

    def test_lone_surrogates(self):
        result = self.only("""
            class M:
                def _repr_html_(self): return "a\\ud800b"
                def __repr__(self): return "\\udcffx"
            M()
            """)
        self.assertEqual(result.data, {"text/html": "a\ufffdb", "text/plain": "\ufffdx"})

    def test_raw_bundles(self):
        result = self.only("display({'text/plain': 'p', 'text/html': '<p>'}, raw=True)")
        self.assertEqual(result.data, {"text/plain": "p", "text/html": "<p>"})

    def test_numpy_like_values_in_json(self):
        data = self.only("""
            class Scalar:
                def tolist(self): return 4
            class J:
                def _repr_json_(self): return [Scalar()]
            J()
            """).data
        self.assertEqual(data["application/json"], "[4]")


STAND_IN = """
import sys, types
m = types.ModuleType("matplotlib.pyplot"); open_ = [1]
class F:
    def savefig(self, b, format="png", **k): b.write(b"\\x89PNG\\r\\n\\x1a\\n")
m.get_fignums = lambda: list(open_); m.figure = lambda n=None: F()
m.close = lambda *a: open_.clear()
sys.modules["matplotlib.pyplot"] = m
"""
PACKAGE = {
    "matplotlib/__init__.py": "",
    "matplotlib/figure.py": """
class Figure:
    def __init__(self, fails=False): self.fails = fails
    def savefig(self, b, format="png", **k):
        if self.fails: raise RuntimeError("can't draw")
        b.write(b"\\x89PNG\\r\\n\\x1a\\n")
    def __repr__(self): return "Figure"
""",
    "matplotlib/pyplot.py": """
from matplotlib.figure import Figure
figures = {}
def get_fignums(): return sorted(figures)
def figure(n=None, **k):
    if n is None:
        n = max(figures, default=0) + 1
        figures[n] = Figure(**k)
    return figures[n]
def close(n=None): figures.pop(n)
def show(*a, **k): print("the original show")
def plot(*a): return figures and 1 or figure()
""",
}


class Figures(unittest.TestCase):
    def shown(self, code, **expected):
        with tempfile.TemporaryDirectory() as folder:
            os.mkdir(folder + "/matplotlib")
            for name, text in PACKAGE.items():
                with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                    file.write(text)
            os.chmod(folder, 0o755)
            done = run_text("import matplotlib.pyplot as plt\n" + textwrap.dedent(code),
                            env={"PYTHONPATH": folder})
        self.assertEqual((done.code, done.stdout, done.stderr),
                         (expected.get("code", 0), "", expected.get("stderr", "")))
        return [result.data for result in done.results]

    def test_an_open_figure_is_shown_once(self):
        done = run_once(STAND_IN)
        self.assertEqual((done.code, [result.data for result in done.results]),
                         (0, [{"image/png": PNG}]))

    def test_show_shows_and_closes(self):
        image = {"image/png": PNG}
        self.assertEqual(self.shown("plt.figure(); plt.show()"), [image])
        self.assertEqual(self.shown("plt.figure(); plt.figure(); plt.show(block=True)\n"
                                    "display(plt.get_fignums())\nplt.figure(); pass"),
                         [image, image, {"text/plain": "[]"}, image])

    def test_a_figure_as_a_value_is_not_doubled(self):
        both = {"image/png": PNG, "text/plain": "Figure"}
        self.assertEqual(self.shown("fig = plt.figure()\nfig"), [both])
        self.assertEqual(self.shown("fig = plt.figure()\ndisplay(fig)\nplt.show()"), [both])
        self.assertEqual(self.shown("fig = plt.figure()\nother = plt.figure()\nfig"),
                         [both, {"image/png": PNG}])
        self.assertEqual(self.shown("from matplotlib.figure import Figure\nFigure()"), [both])

    def test_figures_of_a_failed_cell_are_shown(self):
        done = run_once(STAND_IN + "raise SystemExit(3)")
        self.assertEqual((done.code, len(done.results)), (3, 1))

    def test_a_figure_that_fails_is_told_and_closed(self):
        self.assertEqual(
            self.shown("plt.figure(fails=True); plt.show()\nplt.get_fignums()",
                       stderr="display: figure 1 left out: RuntimeError: can't draw\n"),
            [{"text/plain": "[]"}])

    def test_the_module_looks_as_imported_by_anybody(self):
        self.assertEqual(self.shown("""
            import sys
            type(plt.__spec__.loader).__name__, type(plt.__loader__).__name__
            """), [{"text/plain": "('SourceFileLoader', 'SourceFileLoader')"}])


def installed(*names):
    return all(importlib.util.find_spec(name) is not None for name in names)


class RealPackages(unittest.TestCase):
    """The same with the packages themselves, on machines that have them."""

    def kinds(self, code):
        done = run_once(code, env={"MPLBACKEND": "Agg"})
        self.assertEqual((done.code, done.stdout), (0, ""), done.stderr)
        return [sorted(result.data) for result in done.results]

    if installed("matplotlib"):
        def test_matplotlib(self):
            plt = "import matplotlib.pyplot as plt\n"
            image, text = ["image/png"], ["text/plain"]
            self.assertEqual(self.kinds(plt + "plt.plot([1, 2])"), [text, image])
            self.assertEqual(self.kinds(plt + "plt.plot([1]); plt.savefig('a.png'); plt.show()"),
                             [image])
            self.assertEqual(self.kinds(plt + "fig, ax = plt.subplots(); ax.plot([1]); fig"),
                             [image + text])
            self.assertEqual(self.kinds("import matplotlib\nmatplotlib.use('Agg')\n" + plt +
                                        "plt.plot([1]); plt.show()\nplt.get_fignums()"),
                             [image, text])

    if installed("pandas"):
        def test_pandas(self):
            self.assertEqual(self.kinds("import pandas as pd\npd.DataFrame({'a': [1, 2]})"),
                             [["text/html", "text/plain"]])


if __name__ == "__main__":
    unittest.main()
