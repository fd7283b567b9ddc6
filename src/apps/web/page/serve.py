#!/usr/bin/env python3
"""Serves a directory on this host: serve.py DIRECTORY [PORT]; port 0 selects a free one.

Sends the two headers that isolate the page from others, without which browsers do not allow threads (docs/web.md).
"""
import functools
import http.server
import sys


class Isolating(http.server.SimpleHTTPRequestHandler):
    extensions_map = {**http.server.SimpleHTTPRequestHandler.extensions_map, ".wasm": "application/wasm",
                      ".js": "text/javascript", ".gz": "application/octet-stream"}

    def end_headers(self):
        self.send_header("Cross-Origin-Opener-Policy", "same-origin")
        self.send_header("Cross-Origin-Embedder-Policy", "require-corp")
        self.send_header("Cache-Control", "no-cache")
        super().end_headers()

    def log_message(self, *_):
        pass


def main():
    directory, port = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 8000
    handler = functools.partial(Isolating, directory=directory)
    with http.server.ThreadingHTTPServer(("127.0.0.1", port), handler) as server:
        print(f"http://127.0.0.1:{server.server_address[1]}/", flush=True)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            pass


if __name__ == "__main__":
    main()
