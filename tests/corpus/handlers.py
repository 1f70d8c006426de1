"""A request handler for the servers of tests, which serve what no release holds."""

from http.server import BaseHTTPRequestHandler


class QuietHandler(BaseHTTPRequestHandler):
    """Writes no log; a subclass defines `respond`, which sends one answer."""

    def do_GET(self):
        self.respond()

    def send(self, status: int, body: bytes = b"", headers: dict[str, str] | None = None) -> None:
        """Send an answer. Its length is not stated, unless in the headers; the connection is closed at its end."""
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format, *args):
        pass
