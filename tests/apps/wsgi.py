"""The app of the tests on WSGI, for gunicorn. Paths: see tests/src/apps.rs."""

import time

PIECES = 10
EVERY = 0.2


def event():
    """50 bytes: when it was sent, on the clock of all processes."""
    return f"data: {time.monotonic_ns()} ".ljust(48, ".").encode() + b"\n\n"


def events():
    for _ in range(PIECES):
        yield event()
        time.sleep(EVERY)


def app(environ, start_response):
    path = environ["PATH_INFO"]
    if path == "/stream":
        start_response("200 OK", [("content-type", "text/event-stream")])
        return events()
    body = b"ok"
    if path == "/echo":
        body = environ["wsgi.input"].read()
    elif path.startswith("/work/"):
        time.sleep(int(path.rsplit("/", 1)[1]) / 1000)
        body = b"done"
    start_response("200 OK", [("content-type", "text/plain"), ("content-length", str(len(body)))])
    return [body]
