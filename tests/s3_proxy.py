"""A proxy before an S3 server: it counts what is asked for and sent, and can hold answers back."""

from __future__ import annotations

import re
import socket
import socketserver
import threading
import time
from collections import Counter
from urllib.parse import urlparse

PATIENCE_SECONDS = 120
REQUEST = re.compile(rb"^(GET|HEAD|PUT|POST|DELETE) (/\S*) HTTP/1\.1\r\n")


class Proxy(socketserver.ThreadingTCPServer):
    """Forwards bytes to a server and back, and notes the first line of every request.

    Attributes:
        seen: the requests, as method and path, in order.
        sent: how many bytes of answers each file was, headers included.
        slow: seconds by which every answer is late.
        held: a name; of an answer for it only the first bytes go through, until `go` is set.
        refused: a pattern of method and path; such requests are answered here, with `status`.
        status: the status of those answers, and the name of the error.
    """

    allow_reuse_address = daemon_threads = True
    block_on_close = False

    def __init__(self, target: str) -> None:
        super().__init__(("127.0.0.1", 0), _Forward)
        place = urlparse(target)
        self.target = (place.hostname, place.port)
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        self.seen: list[tuple[str, str]] = []
        self.sent: Counter[str] = Counter()
        self.slow = 0.0
        self.held = "\0"
        self.refused = re.compile("(?!)")
        self.status = (403, "AccessDenied")
        self.holding, self.go = threading.Event(), threading.Event()

    def fetched(self) -> Counter[str]:
        """Count the requests for each file."""
        return Counter(path.rsplit("/", 1)[1] for method, path in self.seen if method == "GET")


class _Forward(socketserver.BaseRequestHandler):
    server: Proxy

    def handle(self) -> None:
        self.method = self.path = ""
        with socket.create_connection(self.server.target) as upstream:
            answers = threading.Thread(target=self._answer, args=(upstream,), daemon=True)
            answers.start()
            try:
                while data := self.request.recv(1 << 16):
                    if found := REQUEST.match(data):
                        self.method, self.path = (part.decode() for part in found.groups())
                        self.server.seen.append((self.method, self.path))
                        if self.server.refused.search(f"{self.method} {self.path}"):
                            self.request.sendall(self._refusal())
                            break
                    upstream.sendall(data)
            except OSError:
                pass
            upstream.close()

    def _refusal(self) -> bytes:
        number, code = self.server.status
        body = f"<Error><Code>{code}</Code><Message>as told</Message></Error>"
        sent = "" if self.method == "HEAD" else body
        length = f"HTTP/1.1 {number} Refused\r\nContent-Length: {len(sent)}\r\n"
        return f"{length}Content-Type: application/xml\r\nConnection: close\r\n\r\n{sent}".encode()

    def _answer(self, upstream: socket.socket) -> None:
        try:
            while data := upstream.recv(1 << 14):
                # Once the client has the last bytes it may ask for another file, or look at `sent`.
                held = self.server.held in self.path and self.method == "GET"
                self.server.sent[self.path.rsplit("/", 1)[-1]] += len(data)
                time.sleep(self.server.slow)
                self.request.sendall(data)
                if held:
                    self.server.holding.set()
                    self.server.go.wait(PATIENCE_SECONDS)
        except OSError:
            pass
