"""A Hugging Face hub on this machine, as far as fetching datasets and models of one commit asks for it."""

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

COMMIT = "0123456789abcdef0123456789abcdef01234567"


@contextmanager
def serve_hub(repositories: Mapping[str, Path]) -> Iterator[tuple[str, list[str]]]:
    """Serve folders by the names of datasets and models; yield the hub's URL and the paths that it is asked for."""
    asked: list[str] = []
    told = {  # whether the hub can still give the files or not
        name: {str(file.relative_to(folder)): file.stat().st_size for file in folder.rglob("*") if file.is_file()}
        for name, folder in repositories.items()
    }

    class Hub(BaseHTTPRequestHandler):
        """Tells the files of a repository, and gives each of them."""

        def do_HEAD(self) -> None:
            self.do_GET()

        def do_GET(self) -> None:
            path = self.path.partition("?")[0]
            asked.append(path)
            name = next((name for name in repositories if f"/{name}/" in path), None)
            if name is None or COMMIT not in path:
                self.send_error(404)
                return
            folder, sizes = repositories[name], told[name]
            file = folder / path.rpartition(f"/resolve/{COMMIT}/")[2]
            if path.endswith(f"/revision/{COMMIT}"):
                siblings = [{"rfilename": file} for file in sizes]
                self.answer(json.dumps({"id": name, "sha": COMMIT, "siblings": siblings}).encode())
            elif f"/tree/{COMMIT}" in path:
                files = [{"type": "file", "path": file, "size": size, "oid": file} for file, size in sizes.items()]
                self.answer(json.dumps(files).encode())
            elif "/resolve/" in path and file.is_file():
                self.answer(file.read_bytes(), **{"ETag": f'"{file.name}"', "X-Repo-Commit": COMMIT})
            else:
                self.send_error(404)

        def answer(self, content: bytes, **headers: str) -> None:
            self.send_response(200)
            for name, value in {"Content-Length": str(len(content)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            """Keep the tests' output clean."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", asked
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
