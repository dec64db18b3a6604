//! The instruments, by all their names.

/// Who measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// The queue of a sidecar.
    Queue,
    /// The activator.
    Activator,
    /// HTTP, in and out.
    Http,
}

impl Scope {
    pub(crate) const ALL: [Scope; 3] = [Scope::Queue, Scope::Activator, Scope::Http];

    /// The reference's names: dashboards select by them.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Scope::Queue => "knative.dev/serving/pkg/queue",
            Scope::Activator => "knative.dev/serving/pkg/activator",
            Scope::Http => "go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp",
        }
    }

    /// Whose version of it this is: ours.
    pub(crate) fn version(self) -> &'static str {
        match self {
            Scope::Queue | Scope::Activator => "",
            Scope::Http => env!("CARGO_PKG_VERSION"),
        }
    }
}

/// What an instrument counts in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Seconds.
    Seconds,
    /// Bytes.
    Bytes,
    /// Things that are called so.
    Of(&'static str),
}

impl Unit {
    pub(crate) fn otlp(self) -> &'static str {
        match self {
            Unit::Seconds => "s",
            Unit::Bytes => "By",
            Unit::Of(what) => what,
        }
    }
}

/// One instrument.
#[derive(Debug)]
pub struct Instrument {
    /// With dots.
    pub name: &'static str,
    /// In the text form: dots become underscores, the unit a suffix.
    pub text_name: &'static str,
    /// What it shows, in a sentence.
    pub help: &'static str,
    /// What it counts in.
    pub unit: Unit,
    /// Who measured.
    pub scope: Scope,
}

pub(super) static INVOCATION_DURATION: Instrument = Instrument {
    name: "kn.serving.invocation.duration",
    text_name: "kn_serving_invocation_duration_seconds",
    help: "The duration of task execution",
    unit: Unit::Seconds,
    scope: Scope::Queue,
};

pub(super) static QUEUE_DEPTH: Instrument = Instrument {
    name: "kn.serving.queue.depth",
    text_name: "kn_serving_queue_depth",
    help: "Number of current items in the queue",
    unit: Unit::Of("{request}"),
    scope: Scope::Queue,
};

pub(super) static SERVER_DURATION: Instrument = Instrument {
    name: "http.server.request.duration",
    text_name: "http_server_request_duration_seconds",
    help: "Duration of HTTP server requests.",
    unit: Unit::Seconds,
    scope: Scope::Http,
};

pub(super) static SERVER_REQUEST_SIZE: Instrument = Instrument {
    name: "http.server.request.body.size",
    text_name: "http_server_request_body_size_bytes",
    help: "Size of HTTP server request bodies.",
    unit: Unit::Bytes,
    scope: Scope::Http,
};

pub(super) static SERVER_RESPONSE_SIZE: Instrument = Instrument {
    name: "http.server.response.body.size",
    text_name: "http_server_response_body_size_bytes",
    help: "Size of HTTP server response bodies.",
    unit: Unit::Bytes,
    scope: Scope::Http,
};

pub(super) static CLIENT_DURATION: Instrument = Instrument {
    name: "http.client.request.duration",
    text_name: "http_client_request_duration_seconds",
    help: "Duration of HTTP client requests.",
    unit: Unit::Seconds,
    scope: Scope::Http,
};

pub(super) static CLIENT_REQUEST_SIZE: Instrument = Instrument {
    name: "http.client.request.body.size",
    text_name: "http_client_request_body_size_bytes",
    help: "Size of HTTP client request bodies.",
    unit: Unit::Bytes,
    scope: Scope::Http,
};
