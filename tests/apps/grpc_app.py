"""A gRPC app on grpcio, without generated code: messages are bytes.

Methods of `test.Echo`: Unary, Sum (client stream), Ticks (server stream), Chat
(both ways), Refuse (a status and nothing else), Half (messages, then a
status), Hang (until it is cancelled), and Cancelled (how many calls of Hang
and Ticks saw that; and the deadline that Hang was told, in milliseconds).
"""

import json
import threading
import time
from concurrent import futures

import grpc

EVERY = 0.2

cancelled = {"Hang": 0, "Ticks": 0}
told = []


def stamp():
    """50 bytes: when it was sent, on the clock of all processes."""
    return str(time.monotonic_ns()).ljust(50, ".").encode()


def watch(context, method):
    """An event that is set when the call is over; counted when it is cancelled."""
    over = threading.Event()
    finished = []

    def ended():
        if not finished:
            cancelled[method] += 1
        over.set()

    context.add_callback(ended)
    return over, finished


def unary(request, context):
    # As a trailer, with what the caller has sent along.
    sent = dict(context.invocation_metadata())
    context.set_trailing_metadata((("x-echo", sent.get("x-echo", "")), ("x-echo-bin", sent.get("x-echo-bin", b""))))
    return request


def total(requests, context):
    return str(sum(len(request) for request in requests)).encode()


def ticks(request, context):
    over, finished = watch(context, "Ticks")
    for _ in range(int(request)):
        yield stamp()
        if over.wait(EVERY):
            return
    finished.append(True)


def chat(requests, context):
    # Both times: the caller's in front, and when it was here.
    for request in requests:
        yield request[:25] + str(time.monotonic_ns()).ljust(25, ".").encode()


def refuse(request, context):
    context.set_trailing_metadata((("x-why", "tests"),))
    context.abort(grpc.StatusCode.FAILED_PRECONDITION, "no: 100 % sure, señor")


def half(request, context):
    yield b"one"
    yield b"two"
    context.abort(grpc.StatusCode.DATA_LOSS, "the rest is lost")


def hang(request, context):
    over, _ = watch(context, "Hang")
    left = context.time_remaining()
    told.append(None if left is None else int(left * 1000))
    over.wait(60)
    return b""


def seen(request, context):
    return json.dumps({"cancelled": cancelled, "told": told}).encode()


METHODS = {
    "Unary": grpc.unary_unary_rpc_method_handler(unary),
    "Sum": grpc.stream_unary_rpc_method_handler(total),
    "Ticks": grpc.unary_stream_rpc_method_handler(ticks),
    "Chat": grpc.stream_stream_rpc_method_handler(chat),
    "Refuse": grpc.unary_unary_rpc_method_handler(refuse),
    "Half": grpc.unary_stream_rpc_method_handler(half),
    "Hang": grpc.unary_unary_rpc_method_handler(hang),
    "Cancelled": grpc.unary_unary_rpc_method_handler(seen),
}

server = grpc.server(futures.ThreadPoolExecutor(max_workers=64), options=[("grpc.max_receive_message_length", -1)])
server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("test.Echo", METHODS),))
port = server.add_insecure_port("127.0.0.1:0")
server.start()
print(f"listening on http://127.0.0.1:{port}", flush=True)
server.wait_for_termination()
