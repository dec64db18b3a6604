"""The app of the tests on ASGI, for uvicorn. Paths: see tests/src/apps.rs."""

import asyncio
import json
import time

PIECES = 10
EVERY = 0.2


def event():
    """50 bytes: when it was sent, on the clock of all processes."""
    return f"data: {time.monotonic_ns()} ".ljust(48, ".").encode() + b"\n\n"


async def head(send, status=200, content_type="text/plain"):
    fields = [(b"content-type", content_type.encode())]
    await send({"type": "http.response.start", "status": status, "headers": fields})


async def piece(send, body, more=True):
    await send({"type": "http.response.body", "body": body, "more_body": more})


async def body_of(receive):
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return
        yield message.get("body", b"")
        if not message.get("more_body"):
            return


async def http(path, receive, send):
    if path == "/echo":
        body = b"".join([part async for part in body_of(receive)])
        await head(send)
        await piece(send, body, False)
    elif path == "/stream":
        await head(send, content_type="text/event-stream")
        for _ in range(PIECES):
            await piece(send, event())
            await asyncio.sleep(EVERY)
        await piece(send, b"", False)
    elif path == "/bytes":
        # A byte each; at the end, when each was sent.
        await head(send)
        sent = []
        for _ in range(PIECES):
            sent.append(time.monotonic_ns())
            await piece(send, b"x")
            await asyncio.sleep(EVERY)
        await piece(send, json.dumps(sent).encode(), False)
    elif path == "/received":
        # When each part of the body came, and how long it was.
        parts = [(time.monotonic_ns(), len(part)) async for part in body_of(receive) if part]
        await head(send)
        await piece(send, json.dumps(parts).encode(), False)
    elif path.startswith("/work/"):
        await asyncio.sleep(int(path.rsplit("/", 1)[1]) / 1000)
        await head(send)
        await piece(send, b"done", False)
    else:
        await head(send)
        await piece(send, b"ok", False)


async def websocket(receive, send):
    while True:
        message = await receive()
        if message["type"] == "websocket.connect":
            await send({"type": "websocket.accept"})
        elif message["type"] == "websocket.receive":
            text, data = message.get("text"), message.get("bytes")
            echo = {"text": text} if text is not None else {"bytes": data}
            await send({"type": "websocket.send", **echo})
        else:
            return


async def app(scope, receive, send):
    if scope["type"] == "http":
        await http(scope["path"], receive, send)
    elif scope["type"] == "websocket":
        await websocket(receive, send)
    else:
        while True:
            message = await receive()
            await send({"type": message["type"] + ".complete"})
            if message["type"] == "lifespan.shutdown":
                return
