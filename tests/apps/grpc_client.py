"""Calls the app of grpc_app.py: `grpc_client.py HOST:PORT SCENARIO`.

Prints one line of JSON, of what was seen; the test judges.
"""

import json
import queue
import sys
import threading
import time

import grpc

EVERY = 0.2
PATIENCE = 20

address, scenario = sys.argv[1:3]
options = [("grpc.max_receive_message_length", -1), ("grpc.enable_retries", 0)]
channel = grpc.insecure_channel(address, options=options)


def now():
    return time.monotonic_ns()


def call(kind, method):
    return getattr(channel, kind)(f"/test.Echo/{method}")


def status(error):
    fields = {key: value for key, value in list(error.trailing_metadata() or ()) + list(error.initial_metadata() or ())}
    return {
        "code": error.code().name,
        "details": error.details(),
        "reason": fields.get("x-zeroscale-reason"),
        "retry_after": fields.get("retry-after"),
        "why": fields.get("x-why"),
    }


def outcome(begun):
    """How a call ended."""
    began = time.monotonic()
    try:
        begun()
        ended = {"code": "OK"}
    except grpc.RpcError as error:
        ended = status(error)
    ended["took_ms"] = int((time.monotonic() - began) * 1000)
    return ended


def seen():
    return json.loads(call("unary_unary", "Cancelled")(b"", timeout=PATIENCE))


def lags(messages):
    return [now() - int(message.rstrip(b".")) for message in messages]


def unary():
    method = call("unary_unary", "Unary")
    metadata = (("x-echo", "text"), ("x-echo-bin", bytes(range(256))))
    good = 0
    for n in range(200):
        body = f"call {n}".encode()
        answer, done = method.with_call(body, timeout=PATIENCE, metadata=metadata)
        trailers = dict(done.trailing_metadata())
        good += answer == body and trailers["x-echo"] == "text" and trailers["x-echo-bin"] == bytes(range(256))
    large = bytes(3 << 20)
    empty = method(b"", timeout=PATIENCE)
    return {"good": good, "large": method(large, timeout=PATIENCE) == large, "empty": empty == b""}


def parallel():
    method = call("unary_unary", "Unary")
    calls = [(n, method.future(str(n).encode() * 100, timeout=PATIENCE)) for n in range(500)]
    return {"good": sum(call.result() == str(n).encode() * 100 for n, call in calls)}


def client_stream():
    parts = (b"x" * n for n in range(200))
    return {"sum": int(call("stream_unary", "Sum")(parts, timeout=PATIENCE))}


def server_stream():
    messages = call("unary_stream", "Ticks")(b"10", timeout=PATIENCE)
    return {"lags": lags(messages), "code": messages.code().name}


def both_ways():
    def questions():
        for _ in range(10):
            yield str(now()).ljust(50, ".").encode()
            time.sleep(EVERY)

    there, back = [], []
    answers = call("stream_stream", "Chat")(questions(), timeout=PATIENCE)
    for answer in answers:
        sent, seen_at = (int(half.rstrip(b".")) for half in (answer[:25], answer[25:]))
        there.append(seen_at - sent)
        back.append(now() - seen_at)
    return {"there": there, "back": back, "code": answers.code().name}


def refused():
    return outcome(lambda: call("unary_unary", "Refuse")(b"", timeout=PATIENCE))


def half():
    messages = []
    ended = outcome(lambda: messages.extend(call("unary_stream", "Half")(b"", timeout=PATIENCE)))
    return {"messages": [message.decode() for message in messages], **ended}


def until_cancelled(method, before):
    """Milliseconds until the app has seen that a call was cancelled."""
    began = time.monotonic()
    while seen()["cancelled"][method] == before:
        if time.monotonic() - began > PATIENCE:
            return None
        time.sleep(0.005)
    return int((time.monotonic() - began) * 1000)


def deadline():
    before = seen()["cancelled"]["Hang"]
    ended = outcome(lambda: call("unary_unary", "Hang")(b"", timeout=0.7))
    return {**ended, "app_saw_after_ms": until_cancelled("Hang", before), "told": seen()["told"]}


def cancel():
    before = seen()["cancelled"]
    # Before an answer, and in the middle of one.
    silent = call("unary_unary", "Hang").future(b"")
    began = time.monotonic()
    while len(seen()["told"]) == 0 and time.monotonic() - began < PATIENCE:
        time.sleep(0.005)
    silent.cancel()
    silent_after = until_cancelled("Hang", before["Hang"])
    streaming = call("unary_stream", "Ticks")(b"1000")
    next(streaming)
    streaming.cancel()
    return {"silent_ms": silent_after, "streaming_ms": until_cancelled("Ticks", before["Ticks"])}


def hang():
    return outcome(lambda: call("unary_unary", "Hang")(b"", timeout=PATIENCE))


def stream_until_cut():
    messages = []
    ended = outcome(lambda: messages.extend(call("unary_stream", "Ticks")(b"1000", timeout=PATIENCE)))
    return {"messages": len(messages), "lengths": sorted({len(message) for message in messages}), **ended}


def crowd():
    """One runs, one waits, and one has no place: whichever of them."""
    ended = queue.Queue()
    calls = [call("unary_unary", "Hang").future(b"", timeout=PATIENCE) for _ in range(3)]
    for one in calls:
        one.add_done_callback(ended.put)
    first = ended.get(timeout=PATIENCE)
    for one in calls:
        one.cancel()
    others = [ended.get(timeout=PATIENCE).code().name for _ in range(2)]
    return {**status(first), "others": others}


def drain():
    """A stream that runs; told on standard input that TERM went out."""
    ticks = {}

    def stream():
        messages = []
        ticks.update(outcome(lambda: messages.extend(call("unary_stream", "Ticks")(b"10", timeout=PATIENCE))))
        ticks["messages"] = len(messages)

    thread = threading.Thread(target=stream)
    thread.start()
    grpc.channel_ready_future(channel).result(timeout=PATIENCE)
    time.sleep(0.3)
    print("running", flush=True)
    sys.stdin.readline()
    # Late calls are served, or refused as what may be tried again.
    late = []
    while thread.is_alive():
        late.append(outcome(lambda: call("unary_unary", "Unary")(b"late", timeout=PATIENCE))["code"])
        time.sleep(0.05)
    thread.join()
    return {"stream": ticks, "late": late}


print(json.dumps(globals()[scenario]()), flush=True)
