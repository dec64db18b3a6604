//! HTTP/2 without TLS, on the h2 crate.

use super::{Outcome, Pace, Plan, Recorder, Request, Schedule};
use crate::direct::http2::message;
use crate::poller::Alarm;
use anyhow::{Context, ensure};
use bytes::Bytes;
use h2::client::{self, SendRequest};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::time::Instant;
use tokio::io::unix::AsyncFd;
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio::task::LocalSet;
use tokio::time::timeout_at;

const WINDOW: u32 = 1 << 20;

/// Carries the plan out.
pub(crate) fn run(plan: &Plan) -> anyhow::Result<Outcome> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    LocalSet::new().block_on(&runtime, go(plan))
}

/// What all streams share.
struct Shared {
    recorder: RefCell<Recorder>,
    waiting: RefCell<VecDeque<Instant>>,
    more: Notify,
    closed: bool,
    end: Instant,
    request: Request,
    body: Option<Bytes>,
    uri: String,
}

async fn go(plan: &Plan) -> anyhow::Result<Outcome> {
    let mut senders = Vec::new();
    for _ in 0..plan.connections {
        senders.push(connect(plan).await?);
    }
    let began = Instant::now();
    let shared = Rc::new(Shared {
        recorder: RefCell::new(Recorder::new(plan.time)?),
        waiting: RefCell::default(),
        more: Notify::new(),
        closed: plan.pace == Pace::Closed,
        end: began + plan.time,
        request: plan.request.clone(),
        body: plan.request.body.map(|size| match plan.request.grpc {
            true => message(size),
            false => Bytes::from(vec![b'x'; size]),
        }),
        uri: format!("http://{}{}", plan.to, plan.request.path),
    });
    for sender in &senders {
        for _ in 0..plan.streams {
            tokio::task::spawn_local(slot(shared.clone(), sender.clone()));
        }
    }
    match plan.pace {
        Pace::Closed => tokio::time::sleep_until(shared.end.into()).await,
        Pace::Open { rate, seed } => drive(&shared, Schedule::new(rate, seed, began)).await?,
    }
    let left_over = shared.waiting.borrow().len() as u64;
    let outcome = shared.recorder.borrow().outcome(left_over);
    Ok(outcome)
}

async fn connect(plan: &Plan) -> anyhow::Result<SendRequest<Bytes>> {
    let socket = TcpStream::connect(plan.to).await.with_context(|| format!("connecting to {}", plan.to))?;
    socket.set_nodelay(true)?;
    let mut builder = client::Builder::new();
    builder.initial_window_size(WINDOW).initial_connection_window_size(WINDOW);
    let (sender, connection) = builder.handshake(socket).await?;
    tokio::task::spawn_local(async move {
        let _ = connection.await;
    });
    Ok(sender)
}

/// Lets requests become due.
async fn drive(shared: &Shared, mut schedule: Schedule) -> anyhow::Result<()> {
    #[expect(deprecated, reason = "its successor takes `unsafe`; this descriptor is owned and stays the same")]
    let alarm = AsyncFd::new(Alarm::new()?)?;
    loop {
        let now = Instant::now();
        if now >= shared.end {
            return Ok(());
        }
        while schedule.next() <= now {
            shared.waiting.borrow_mut().push_back(schedule.advance());
            shared.more.notify_one();
        }
        alarm.get_ref().set(schedule.next().min(shared.end).saturating_duration_since(now))?;
        alarm.readable().await?.clear_ready();
    }
}

/// One stream after another.
async fn slot(shared: Rc<Shared>, mut sender: SendRequest<Bytes>) {
    loop {
        let due = if shared.closed { Instant::now() } else { next_due(&shared).await };
        if Instant::now() >= shared.end {
            return;
        }
        // Who is not answered by then was not completed.
        match timeout_at(shared.end.into(), ask(&shared, &mut sender)).await {
            Ok(Ok(())) => shared.recorder.borrow_mut().answered(due, Instant::now()),
            Ok(Err(_)) => {
                shared.recorder.borrow_mut().errors += 1;
                return;
            }
            Err(_) => return,
        }
    }
}

async fn next_due(shared: &Shared) -> Instant {
    loop {
        let due = shared.waiting.borrow_mut().pop_front();
        if let Some(due) = due {
            // A permit stands for one of possibly several.
            if !shared.waiting.borrow().is_empty() {
                shared.more.notify_one();
            }
            return due;
        }
        shared.more.notified().await;
    }
}

async fn ask(shared: &Shared, sender: &mut SendRequest<Bytes>) -> anyhow::Result<()> {
    let mut head = http::Request::builder().uri(shared.uri.as_str());
    for (name, value) in &shared.request.headers {
        head = head.header(name, value);
    }
    let head = head.method(if shared.body.is_some() { "POST" } else { "GET" }).body(())?;
    let mut ready = sender.clone().ready().await?;
    let (answer, mut stream) = ready.send_request(head, shared.body.is_none())?;
    if let Some(body) = &shared.body {
        stream.send_data(body.clone(), true)?;
    }
    let answer = answer.await?;
    ensure!(answer.status() == 200, "status {}", answer.status());
    let mut body = answer.into_body();
    let mut came = 0;
    while let Some(piece) = body.data().await {
        let length = piece?.len();
        came += length;
        body.flow_control().release_capacity(length)?;
    }
    ensure!(came == shared.request.expected, "{came} bytes came");
    if shared.request.grpc {
        let trailers = body.trailers().await?.context("no trailers")?;
        ensure!(trailers.get("grpc-status").is_some_and(|status| status == "0"), "{trailers:?}");
    }
    Ok(())
}
