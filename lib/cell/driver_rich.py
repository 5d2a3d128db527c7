# SPDX-License-Identifier: Apache-2.0
#
# driver_rich: the MIME representations of a value, JSON text, figures.
#
# Owns the list of figures already shown in this cell. Loaded at the first value that is more than a
# number, a text or a plain container. What a bundle may hold is told in bundle.h.
import binascii
import sys

_BUNDLE_MAX = 24 << 20  # bytes of data in one bundle; wire.h allows a frame of 32 MiB
_PARTS_MAX = 32
_JSON_DEPTH_MAX = 200

_METHODS = (
    ("_repr_html_", "text/html"),
    ("_repr_markdown_", "text/markdown"),
    ("_repr_svg_", "image/svg+xml"),
    ("_repr_latex_", "text/latex"),
    ("_repr_json_", "application/json"),
    ("_repr_javascript_", "application/javascript"),
    ("_repr_png_", "image/png"),
    ("_repr_jpeg_", "image/jpeg"),
    ("_repr_pdf_", "application/pdf"),
)

_shown_figures = []


def parts_of(value):
    """List of (mime, data) for a value. Raises what repr raises if there is nothing else to show."""
    data = {}
    if is_figure(value):
        _shown_figures.append(value)
        data["image/png"] = figure_png(value)
    elif not isinstance(value, type) and not answers_to_everything(value):
        bundle = call(value, "_repr_mimebundle_", include=None, exclude=None)
        if isinstance(bundle, dict):
            data.update(bundle)
        for method, mime in _METHODS:
            if mime not in data:
                data[mime] = call(value, method)
    parts = raw_parts(data)
    if not any(mime == b"text/plain" for mime, _ in parts):
        parts.append((b"text/plain", plain_text(value, parts)))
    return parts


def plain_text(value, others):
    try:
        return to_utf8(repr(value))
    except Exception as error:
        if not others:
            raise
        text = "<%s: repr raised %s: %s>" % (type(value).__name__, type(error).__name__, error)
        return to_utf8(text)


def answers_to_everything(value):
    """Mocks and proxies that have any attribute one asks for."""
    try:
        return getattr(value, "_kernd_no_such_method_", None) is not None
    except Exception:
        return False


def call(value, method, **options):
    """What a representation method returns, without its metadata; None if it has nothing."""
    try:
        function = getattr(value, method, None)
        found = function(**options) if callable(function) else None
    except NotImplementedError:
        return None
    except Exception as error:
        note("%s of %s raised %s: %s", method, type(value).__name__, type(error).__name__, error)
        return None
    if isinstance(found, tuple) and len(found) == 2 and isinstance(found[1], (dict, type(None))):
        return found[0]
    return found


def note(text, *values):
    """One line for the human on the cell's standard error."""
    print("display: " + text % values, file=sys.stderr)


def raw_parts(bundle):
    """List of (mime, data) of a MIME bundle; what can't be sent is left out with a note."""
    parts = []
    for mime, value in bundle.items():
        if value is None or value == "" or value == b"":
            continue
        if not is_mime(mime) or len(parts) == _PARTS_MAX:
            note("%.120r can not be shown", mime)
            continue
        mime = mime.lower()
        try:
            parts.append((mime.encode(), part_data(mime, value)))
        except Exception as error:
            note("%s left out: %s: %s", mime, type(error).__name__, error)
    return parts


def is_mime(mime):
    if not isinstance(mime, str) or not mime.isascii() or not 3 <= len(mime) <= 100:
        return False
    main, slash, rest = mime.partition("/")
    good = all(letter.isalnum() or letter in "!#$&^_.+-" for letter in main + rest)
    return bool(main and rest and good)


def part_data(mime, value):
    is_json = mime == "application/json" or mime.endswith("+json")
    is_text = is_json or mime.startswith("text/") or mime.endswith(("xml", "javascript", "latex"))
    if isinstance(value, (bytes, bytearray, memoryview)):
        if is_text:
            return to_utf8(bytes(value).decode("utf-8", "replace"))
        return binascii.b2a_base64(value, newline=False)
    if isinstance(value, str):
        if mime in ("image/png", "image/jpeg") and not value.startswith(("iVBORw0KGgo", "/9j/")):
            return binascii.b2a_base64(to_utf8(value), newline=False)
        return to_utf8(value)
    return to_utf8("".join(json_text(value, 0)))


def drop_oversize(parts):
    """Takes the largest parts out until the bundle fits. True if any had to go."""
    dropped = False
    while sum(len(data) for mime, data in parts if mime != b"text/plain") > _BUNDLE_MAX:
        others = [part for part in parts if part[0] != b"text/plain"]
        largest = max(others, key=lambda part: len(part[1]))
        note("%s left out: %d bytes are too many", largest[0].decode(), len(largest[1]))
        parts.remove(largest)
        dropped = True
    return dropped


def to_utf8(text):
    try:
        return text.encode()
    except UnicodeEncodeError:  # lone surrogates become U+FFFD
        whole = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
        return whole.encode()


_ESCAPES = {code: "\\u%04x" % code for code in range(32)}
_ESCAPES.update({34: '\\"', 92: "\\\\", 10: "\\n", 13: "\\r", 9: "\\t"})


def json_text(value, depth):
    """Pieces of strict JSON; NaN and the infinities, which JSON lacks, become null."""
    if depth > _JSON_DEPTH_MAX:
        raise ValueError("nested too deeply for JSON")
    if value is None or value is True or value is False:
        yield {None: "null", True: "true", False: "false"}[value]
    elif isinstance(value, str):
        yield '"' + value.translate(_ESCAPES) + '"'
    elif isinstance(value, int):
        yield int.__repr__(value)
    elif isinstance(value, float):
        yield float.__repr__(value) if value - value == 0 else "null"
    elif isinstance(value, dict):
        yield from json_object(value, depth)
    elif isinstance(value, (list, tuple)):
        mark = "["
        for item in value:
            yield mark
            yield from json_text(item, depth + 1)
            mark = ","
        yield "[]" if mark == "[" else "]"
    elif hasattr(value, "tolist"):  # numpy scalars and arrays
        yield from json_text(value.tolist(), depth + 1)
    else:
        raise TypeError("%s has no JSON form" % type(value).__name__)


def json_object(value, depth):
    mark = "{"
    for key, item in value.items():
        if not isinstance(key, str):
            key = "".join(json_text(key, depth + 1)).strip('"')
        yield mark + '"' + key.translate(_ESCAPES) + '":'
        yield from json_text(item, depth + 1)
        mark = ","
    yield "{}" if mark == "{" else "}"


def is_figure(value):
    figures = sys.modules.get("matplotlib.figure")
    kind = getattr(figures, "Figure", None)
    return isinstance(kind, type) and isinstance(value, kind)


def figure_png(figure):
    import io

    image = io.BytesIO()
    figure.savefig(image, format="png")
    return image.getvalue()


def show_figures(pyplot, shower):
    """Sends pyplot's open figures, each once, and closes them all."""
    try:
        numbers = list(pyplot.get_fignums())
    except Exception:
        return  # half imported, or a stand-in
    for number in numbers:
        try:
            figure = pyplot.figure(number)
            if not any(figure is shown for shown in _shown_figures):
                image = binascii.b2a_base64(figure_png(figure), newline=False)
                shower.send_parts([(b"image/png", image)])
            pyplot.close(number)
        except Exception as error:
            note("figure %s left out: %s: %s", number, type(error).__name__, error)
            forget(pyplot, number)
    del _shown_figures[:]


def forget(pyplot, number):
    try:
        pyplot.close(number)
    except Exception:
        pass  # it was told that this figure fails
