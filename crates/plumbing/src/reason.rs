//! Why an answer is ours: a closed list, shown in `x-zeroscale-reason`, the
//! log, and the metrics. Each code has a page in `docs/reasons/`.

use http::StatusCode;
use std::fmt;

macro_rules! reasons {
    ($($(#[$doc:meta])* $name:ident = $code:literal, $status:ident;)*) => {
        /// A stable reason code.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Reason { $($(#[$doc])* $name,)* }

        impl Reason {
            /// All of them.
            pub const ALL: &'static [Reason] = &[$(Reason::$name),*];

            /// The code as it stands in headers, logs and metrics.
            pub fn code(self) -> &'static str {
                match self { $(Reason::$name => $code),* }
            }

            /// The status that goes with it in the default mode.
            pub fn status(self) -> StatusCode {
                match self { $(Reason::$name => StatusCode::$status),* }
            }
        }
    };
}

reasons! {
    /// No route leads to a revision for this request.
    NoRoute = "no_route", NOT_FOUND;
    /// As many requests wait as may.
    QueueFull = "queue_full", SERVICE_UNAVAILABLE;
    /// The bodies of held requests fill their budget.
    HeldBytesFull = "held_bytes_full", SERVICE_UNAVAILABLE;
    /// No slot came free within the wait limit.
    WaitTimeout = "wait_timeout", SERVICE_UNAVAILABLE;
    /// The app did not begin its answer in time.
    FirstByteTimeout = "first_byte_timeout", GATEWAY_TIMEOUT;
    /// The answer stood still for too long.
    IdleTimeout = "idle_timeout", GATEWAY_TIMEOUT;
    /// The request took longer than it may in all.
    TotalTimeout = "total_timeout", GATEWAY_TIMEOUT;
    /// The revision's pods cannot be started.
    StartFailed = "start_failed", SERVICE_UNAVAILABLE;
    /// The revision's pods do not become ready in time.
    StartTimeout = "start_timeout", SERVICE_UNAVAILABLE;
    /// The pod or the app could not be reached; nothing was sent.
    ConnectFailed = "connect_failed", BAD_GATEWAY;
    /// The app broke off after the request was sent and before it answered.
    ResetBeforeAnswer = "reset_before_answer", BAD_GATEWAY;
    /// The app's answer is not valid HTTP.
    BadAnswer = "bad_answer", BAD_GATEWAY;
    /// This pod or process is shutting down.
    Draining = "draining", SERVICE_UNAVAILABLE;
    /// The request is not valid HTTP, or not one that can be forwarded.
    Malformed = "malformed", BAD_REQUEST;
    /// The process has nearly used up its file descriptors.
    FdLimit = "fd_limit", SERVICE_UNAVAILABLE;
    /// The host has no room for another pod (`--max-pods`).
    NoRoom = "no_room", SERVICE_UNAVAILABLE;
    /// An upgraded connection lived longer than it may.
    UpgradeTimeout = "upgrade_timeout", GATEWAY_TIMEOUT;
    /// The revision was removed while the request waited.
    RevisionRemoved = "revision_removed", SERVICE_UNAVAILABLE;
    /// The caller wakes services more often than it may.
    WakeLimited = "wake_limited", TOO_MANY_REQUESTS;
    /// The client left; only in the log.
    ClientGone = "client_gone", BAD_REQUEST;
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code())
    }
}
