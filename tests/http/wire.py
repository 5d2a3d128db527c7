# SPDX-License-Identifier: Apache-2.0
"""A small, strict HTTP/1.1 client over TCP or a Unix socket.

Written by hand so that the tests see every byte: doubled headers, wrong lengths, extra bytes after
an answer and text that is not JSON are failures here, where a forgiving client would hide them.
"""
import json
import socket


class WireError(AssertionError):
    """The server broke the protocol."""


def _no_constant(name):
    raise WireError(f"{name} is not JSON")


def _unique(pairs):
    names = [name for name, _ in pairs]
    if len(set(names)) != len(names):
        raise WireError(f"duplicate key among {names}")
    return dict(pairs)


def strict_json(data):
    """The value of a JSON text: UTF-8, no NaN, no duplicate key, no lone surrogate, nothing after."""
    text = data.decode("utf-8", "strict")
    if text.startswith("\ufeff"):
        raise WireError("the text starts with a byte order mark")
    value = json.loads(text, parse_constant=_no_constant, object_pairs_hook=_unique)
    json.dumps(value, ensure_ascii=False).encode("utf-8", "strict")  # a lone surrogate fails
    return value


class Reply:
    """One answer. `json` is parsed strictly at first use; `interim` lists 1xx statuses before it."""

    def __init__(self, version, status, headers, body, interim, closed):
        self.version = version
        self.status = status
        self.headers = headers
        self.body = body
        self.interim = interim
        self.closed = closed  # the connection ended with this answer

    def header(self, name):
        """The value of a header that may be there once."""
        found = [value for key, value in self.headers if key.lower() == name.lower()]
        if len(found) > 1:
            raise WireError(f"header {name} came {len(found)} times: {found}")
        return found[0] if found else None

    @property
    def media_type(self):
        return (self.header("Content-Type") or "").split(";")[0].strip().lower()

    @property
    def json(self):
        return strict_json(self.body)

    def __repr__(self):
        return f"<{self.status} {self.headers} {self.body[:2000]!r}>"


class Connection:
    """One client connection; requests and answers are sent and read separately (pipelining)."""

    def __init__(self, address, timeout=60.0, host=None):
        family = socket.AF_UNIX if isinstance(address, str) else socket.AF_INET
        self.socket = socket.socket(family, socket.SOCK_STREAM)
        self.socket.settimeout(timeout)
        self.socket.connect(address)
        self.host = host or ("localhost" if isinstance(address, str) else "%s:%d" % address)
        self.buffer = b""

    def close(self):
        self.socket.close()

    def reset(self):
        """Ends the connection with RST instead of FIN."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")
        self.socket.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def send(self, data):
        self.socket.sendall(data)

    def request(self, method, target, headers=(), body=None):
        """Sends a well-formed request; headers of the caller replace the default Host."""
        headers = list(headers.items() if isinstance(headers, dict) else headers)
        names = {name.lower() for name, _ in headers}
        if "host" not in names:
            headers.insert(0, ("Host", self.host))
        if body is not None and not names & {"content-length", "transfer-encoding"}:
            headers.append(("Content-Length", str(len(body))))
        head = f"{method} {target} HTTP/1.1\r\n"
        head += "".join(f"{name}: {value}\r\n" for name, value in headers) + "\r\n"
        self.send(head.encode("latin-1") + (body or b""))

    def more(self):
        piece = self.socket.recv(1 << 16)
        self.buffer += piece
        return bool(piece)

    def _line(self):
        while b"\r\n" not in self.buffer:
            if not self.more():
                raise WireError(f"the connection ended inside a line: {self.buffer[:200]!r}")
        line, self.buffer = self.buffer.split(b"\r\n", 1)
        if b"\n" in line:
            raise WireError(f"a bare line feed in {line!r}")
        return line.decode("latin-1")

    def _exactly(self, size):
        pieces = [self.buffer[:size]]
        self.buffer = self.buffer[size:]
        have = len(pieces[0])
        while have < size:
            piece = self.socket.recv(min(1 << 20, size - have))
            if not piece:
                raise WireError(f"the body ended after {have} of {size} bytes")
            pieces.append(piece)
            have += len(piece)
        return b"".join(pieces)

    def _head(self):
        version, status, _ = (self._line() + " ").split(" ", 2)
        if version not in ("HTTP/1.1", "HTTP/1.0"):
            raise WireError(f"not a status line: {version!r}")
        headers = []
        while line := self._line():
            name, colon, value = line.partition(":")
            if not colon or not name or name != name.strip() or not line.isascii():
                raise WireError(f"bad header line {line!r}")
            headers.append((name, value.strip()))
        return version, int(status), headers

    def _chunked(self):
        body = []
        while size := int(self._line().split(";")[0], 16):
            body.append(self._exactly(size))
            if self._line():
                raise WireError("no line end after a chunk")
        while self._line():
            pass
        return b"".join(body)

    def reply(self, method="GET"):
        """Reads one answer (interim ones are noted), and no byte more than it has."""
        interim = []
        version, status, headers = self._head()
        while 100 <= status < 200:
            interim.append(status)
            version, status, headers = self._head()
        reply = Reply(version, status, headers, b"", interim, False)
        length = reply.header("Content-Length")
        coding = reply.header("Transfer-Encoding")
        if length is not None and coding is not None:
            raise WireError("both Content-Length and Transfer-Encoding")
        close = (reply.header("Connection") or "").lower() == "close"
        if method == "HEAD" or status in (204, 304):
            pass
        elif coding is not None:
            reply.body = self._chunked()
        elif length is not None:
            reply.body = self._exactly(int(length))
        else:
            close = True
            while self.more():
                pass
            reply.body, self.buffer = self.buffer, b""
        reply.closed = close
        return reply

    def exchange(self, method, target, headers=(), body=None):
        self.request(method, target, headers, body)
        return self.reply(method)

    def read_to_close(self):
        """All bytes until the server closes (a reset counts as a close)."""
        try:
            while self.more():
                pass
        except ConnectionResetError:
            pass
        data, self.buffer = self.buffer, b""
        return data

    def at_end(self):
        """True when the server closed and sent nothing more."""
        return self.read_to_close() == b""


def chunked(body, size=1000):
    """A body in chunked coding."""
    pieces = [body[at:at + size] for at in range(0, len(body), size)]
    return b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"
