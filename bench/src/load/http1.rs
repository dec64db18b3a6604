//! HTTP/1 on epoll.

use super::{Outcome, Pace, Plan, Recorder, Request, Schedule};
use crate::poller::{Alarm, Poller};
use crate::stream::{Got, Stream};
use anyhow::{Context, ensure};
use std::collections::VecDeque;
use std::fmt::Write;
use std::net::TcpStream;
use std::time::Instant;

const BUFFER: usize = 256 << 10;
const ALARM: usize = usize::MAX - 1;

/// Carries the plan out.
pub(crate) fn run(plan: &Plan) -> anyhow::Result<Outcome> {
    let poller = Poller::new()?;
    let alarm = Alarm::new()?;
    poller.add(&alarm, ALARM)?;
    let mut load = Load {
        requests: Requests::new(plan),
        expected: plan.request.expected,
        recorder: Recorder::new(plan.time)?,
        connections: Vec::new(),
        idle: Vec::new(),
        waiting: VecDeque::new(),
        closed: plan.pace == Pace::Closed,
    };
    for index in 0..plan.connections {
        let socket = TcpStream::connect(plan.to).with_context(|| format!("connecting to {}", plan.to))?;
        let stream = Stream::new(socket)?;
        poller.add(stream.socket(), index)?;
        load.connections.push(Connection { stream, due: None, body_left: None, partial: Vec::new() });
        load.idle.push(index);
    }
    load.recorder = Recorder::new(plan.time)?;
    load.go(poller, &alarm, plan)
}

/// Requests as they are sent.
struct Requests {
    all: Vec<Vec<u8>>,
    /// Sums of the shares up to each, where there are several.
    sums: Vec<f64>,
    draw: fastrand::Rng,
    /// Those from here on have not had their one time.
    first: usize,
}

impl Requests {
    fn new(plan: &Plan) -> Requests {
        let draw = fastrand::Rng::with_seed(7);
        if plan.hosts == 0 {
            let all = vec![bytes(&plan.to.to_string(), &plan.request)];
            return Requests { all, sums: Vec::new(), draw, first: 1 };
        }
        let first = if plan.each_once { 0 } else { plan.hosts };
        let all = (0..plan.hosts).map(|number| bytes(&format!("r{number}.example"), &plan.request)).collect();
        let mut sum = 0.0;
        let sums = (1..=plan.hosts).map(|rank| {
            sum += 1.0 / rank as f64;
            sum
        });
        Requests { all, sums: sums.collect(), draw, first }
    }

    fn next(&mut self) -> &[u8] {
        let Some(whole) = self.sums.last() else { return &self.all[0] };
        if self.first < self.all.len() {
            self.first += 1;
            return &self.all[self.first - 1];
        }
        let at = self.draw.f64() * whole;
        let rank = self.sums.partition_point(|sum| *sum < at);
        &self.all[rank.min(self.all.len() - 1)]
    }
}

/// A request as it is sent.
pub(crate) fn bytes(host: &str, request: &Request) -> Vec<u8> {
    let method = if request.body.is_some() { "POST" } else { "GET" };
    let mut head = format!("{method} {} HTTP/1.1\r\nHost: {host}\r\n", request.path);
    for (name, value) in &request.headers {
        let _ = write!(head, "{name}: {value}\r\n");
    }
    if let Some(length) = request.body {
        let _ = write!(head, "Content-Length: {length}\r\n");
    }
    head.push_str("\r\n");
    let mut bytes = head.into_bytes();
    bytes.resize(bytes.len() + request.body.unwrap_or(0), b'x');
    bytes
}

struct Load {
    requests: Requests,
    expected: usize,
    recorder: Recorder,
    connections: Vec<Connection>,
    idle: Vec<usize>,
    /// Due, without a connection so far.
    waiting: VecDeque<Instant>,
    closed: bool,
}

struct Connection {
    stream: Stream,
    due: Option<Instant>,
    /// Once the head is there.
    body_left: Option<usize>,
    partial: Vec<u8>,
}

impl Load {
    fn go(mut self, mut poller: Poller, alarm: &Alarm, plan: &Plan) -> anyhow::Result<Outcome> {
        let began = Instant::now();
        let end = began + plan.time;
        let mut schedule = match plan.pace {
            Pace::Closed => None,
            Pace::Open { rate, seed } => Some(Schedule::new(rate, seed, began)),
        };
        if self.closed {
            for index in std::mem::take(&mut self.idle) {
                self.send(index, Instant::now())?;
            }
            alarm.set(plan.time)?;
        }
        let mut buffer = vec![0; BUFFER];
        let mut ready = Vec::new();
        loop {
            let now = Instant::now();
            if now >= end {
                break;
            }
            if let Some(schedule) = &mut schedule {
                while schedule.next() <= now {
                    self.waiting.push_back(schedule.advance());
                }
                while let Some(due) = self.waiting.front().copied()
                    && let Some(index) = self.idle.pop()
                {
                    self.waiting.pop_front();
                    self.send(index, due)?;
                }
                alarm.set(schedule.next().min(end).saturating_duration_since(now))?;
            }
            poller.wait_into(&mut ready)?;
            for event in ready.iter().filter(|event| event.token != ALARM) {
                self.connections[event.token].stream.on(*event)?;
                self.turn(event.token, &mut buffer, end)?;
            }
        }
        Ok(self.recorder.outcome(self.waiting.len() as u64))
    }

    fn send(&mut self, index: usize, due: Instant) -> anyhow::Result<()> {
        let connection = &mut self.connections[index];
        connection.due = Some(due);
        connection.stream.write(self.requests.next(), &[])?;
        Ok(())
    }

    fn turn(&mut self, index: usize, buffer: &mut [u8], end: Instant) -> anyhow::Result<()> {
        while self.connections[index].stream.readable {
            match self.connections[index].stream.read(buffer) {
                Got::Bytes(read) => {
                    if self.take(index, &buffer[..read])? {
                        self.answered(index, end)?;
                    }
                }
                Got::Nothing => {}
                Got::End => {
                    // One lost connection spoils the round: it is not made anew.
                    self.recorder.errors += 1;
                    self.connections[index].stream.readable = false;
                    self.connections[index].due = None;
                    self.idle.retain(|idle| *idle != index);
                }
            }
        }
        Ok(())
    }

    /// True when the answer is whole.
    fn take(&mut self, index: usize, bytes: &[u8]) -> anyhow::Result<bool> {
        let connection = &mut self.connections[index];
        if let Some(left) = connection.body_left {
            ensure!(bytes.len() <= left, "more than one answer came");
            connection.body_left = Some(left - bytes.len());
            return Ok(left == bytes.len());
        }
        let mut whole = std::mem::take(&mut connection.partial);
        whole.extend_from_slice(bytes);
        let mut headers = [httparse::EMPTY_HEADER; 64];
        let mut answer = httparse::Response::new(&mut headers);
        let httparse::Status::Complete(head) = answer.parse(&whole)? else {
            connection.partial = whole;
            return Ok(false);
        };
        let length = answer.headers.iter().find(|header| header.name.eq_ignore_ascii_case("content-length"));
        let length = length.and_then(|header| std::str::from_utf8(header.value).ok()?.parse::<usize>().ok());
        if answer.code != Some(200) || length != Some(self.expected) {
            self.recorder.errors += 1;
        }
        let length = length.context("an answer without a length")?;
        let came = whole.len() - head;
        ensure!(came <= length, "more than one answer came");
        connection.body_left = Some(length - came);
        Ok(came == length)
    }

    fn answered(&mut self, index: usize, end: Instant) -> anyhow::Result<()> {
        let now = Instant::now();
        let connection = &mut self.connections[index];
        connection.body_left = None;
        let due = connection.due.take().context("an answer that nobody asked for")?;
        self.recorder.answered(due, now);
        if !self.closed {
            match self.waiting.pop_front() {
                Some(due) => self.send(index, due)?,
                None => self.idle.push(index),
            }
        } else if now < end {
            self.send(index, now)?;
        }
        Ok(())
    }
}
