//! The log of requests: a line each, by a template of the operator's.
//!
//! Templates are Go's `text/template`, of which this is the part that such
//! templates use (`docs/queue-proxy-telemetry.md` lists it). What lies outside
//! of it is told by name at the start, and the log stays off, as the reference
//! leaves it off for a template that does not parse. It is never half done.

mod capture;
mod check;
mod escape;
mod funcs;
mod lex;
mod number;
mod parse;
mod printf;
mod program;
mod run;
mod url;
mod value;
mod write;

#[cfg(test)]
mod golden;
#[cfg(test)]
mod tests;

pub use program::Template;

pub(crate) use capture::{Captured, Entry};
pub(crate) use write::Lines;

use super::component::Component;
use super::facts::RequestFacts;
use super::identity::Identity;
use super::trace::RequestTrace;
use http::{HeaderName, HeaderValue};
use policy::compat::Compat;
use std::cell::RefCell;
use std::fmt::Write;

/// The reference's template when none is configured.
pub const DEFAULT_TEMPLATE: &str = concat!(
    r#"{"httpRequest": {"requestMethod": "{{.Request.Method}}", "requestUrl": "{{js .Request.RequestURI}}", "#,
    r#""requestSize": "{{.Request.ContentLength}}", "status": {{.Response.Code}}, "#,
    r#""responseSize": "{{.Response.Size}}", "userAgent": "{{js .Request.UserAgent}}", "#,
    r#""remoteIp": "{{js .Request.RemoteAddr}}", "serverIp": "{{.Revision.PodIP}}", "#,
    r#""referer": "{{js .Request.Referer}}", "latency": "{{.Response.Latency}}s", "#,
    r#""protocol": "{{.Request.Proto}}"}, "traceId": "{{.TraceID}}"}"#
);

/// A line longer than this does not keep its room.
const LINE_KEPT: usize = 16 << 10;

thread_local! {
    /// Where a line is put together; kept, so that lines allocate nothing.
    static LINE: RefCell<String> = const { RefCell::new(String::new()) };
}

/// The log, switched on.
pub(crate) struct RequestLog {
    template: Template,
    /// Of a sidecar; of an activator each request has its own.
    who: Identity,
    component: Component,
    compat: Compat,
    /// True when probes are logged too.
    pub(crate) probes: bool,
    lines: Lines,
}

impl RequestLog {
    pub(crate) fn new(
        template: Template,
        who: Identity,
        component: Component,
        compat: Compat,
        probes: bool,
        lines: Lines,
    ) -> RequestLog {
        RequestLog { template, who, component, compat, probes, lines }
    }

    /// Keeps what the template will want of a request.
    pub(crate) fn capture(&self, facts: &RequestFacts<'_>, trace: Option<&RequestTrace>) -> Captured {
        let mut captured = Captured::of(facts, self.template.headers());
        captured.trace = match (self.component, self.compat) {
            (Component::Sidecar, _) => None,
            // The reference's activator does not look.
            (Component::Activator, Compat::Strict) => Some(String::new()),
            (Component::Activator, Compat::Better) => trace.map(RequestTrace::id),
        };
        captured
    }

    /// Keeps a header that was set on the way, if the template wants it.
    pub(crate) fn capture_header(&self, captured: &mut Captured, name: &HeaderName, value: &HeaderValue) {
        captured.add(self.template.headers(), name, value);
    }

    /// Writes a request's line. An activator does not log one without a revision.
    pub(crate) fn write(&self, request: &Captured, who: Option<&Identity>, outcome: (u16, u64), seconds: f64) {
        let who = match (who, self.component) {
            (Some(who), _) => who,
            (None, Component::Sidecar) => &self.who,
            (None, Component::Activator) => return,
        };
        let (code, size) = outcome;
        let entry = Entry { request, code, size, seconds, who };
        LINE.with_borrow_mut(|line| {
            line.clear();
            self.template.line(&entry, self.compat, line);
            self.lines.push(line.as_bytes());
            line.clear();
            line.shrink_to(LINE_KEPT);
        });
    }
}

impl Template {
    /// The line of one request, as [`super::Observer`] would write it.
    pub fn show(
        &self,
        facts: &RequestFacts<'_>,
        (code, size, seconds): (u16, u64, f64),
        who: &Identity,
        compat: Compat,
    ) -> String {
        let request = Captured::of(facts, self.headers());
        let mut line = String::new();
        self.line(&Entry { request: &request, code, size, seconds, who }, compat, &mut line);
        line
    }

    /// A line, with its end: what the template makes of a request, or that it
    /// cannot be run.
    pub(crate) fn line(&self, entry: &Entry<'_>, compat: Compat, line: &mut String) {
        if self.run(entry, compat, line).is_ok() {
            // Trimmed off by the template's last action; two lines must not
            // become one. No line at all may be what is wanted.
            if compat == Compat::Better && !line.is_empty() && !line.ends_with('\n') {
                line.push('\n');
            }
            return;
        }
        line.clear();
        let (method, code) = (entry.request.method.as_str(), entry.code);
        let _ = write!(line, "Invalid request log template: method: {method}, response code: {code}, latency: ");
        super::go_text::float(line, entry.seconds);
        line.push_str(", url: ");
        url::write(line, &entry.request.target);
        line.push('\n');
    }
}
