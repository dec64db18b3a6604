//! What a pod answered: a stat, or what is wrong with it.

use http::{HeaderMap, StatusCode};
use policy::collect::{Dropped, check};
use policy::compat::Compat;
use policy::scrape::{Missed, Said};
use proto::stats::Stat;

/// What is asked for, and the only thing that is taken.
pub const CONTENT_TYPE: &str = "application/protobuf";
/// Bytes of an answer that are read: as much as the reference reads.
pub const BODY_BYTES_MAX: usize = 336;

/// Why an answer is no stat.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// No connection was made.
    Connect,
    /// It took too long, the connection included.
    Timeout,
    /// The connection broke, or what came is no HTTP.
    Broken,
    /// A status as a mesh answers who addresses a pod itself (502, 503).
    Mesh,
    /// Any other status that is no success; a redirect is not followed.
    Status,
    /// Not the content type that was asked for.
    ContentType,
    /// Longer than a stat is ([`Compat::Better`]; the reference looks at the
    /// first bytes only).
    TooLong,
    /// No stat.
    Format,
    /// Its numbers make no sense ([`Compat::Better`]).
    Value(Dropped),
    /// It is of another pod than the one asked ([`Compat::Better`]).
    WrongPod,
    /// The last question is open still, so no other is asked.
    Hung,
    /// Its turn had not come when the round was over.
    Late,
}

impl Fault {
    /// All of them, for counters.
    pub const ALL: [Fault; 14] = [
        Fault::Connect,
        Fault::Timeout,
        Fault::Broken,
        Fault::Mesh,
        Fault::Status,
        Fault::ContentType,
        Fault::TooLong,
        Fault::Format,
        Fault::Value(Dropped::NotFinite),
        Fault::Value(Dropped::Negative),
        Fault::Value(Dropped::Absurd),
        Fault::WrongPod,
        Fault::Hung,
        Fault::Late,
    ];

    /// The word for it in metrics and logs.
    pub const fn as_str(self) -> &'static str {
        match self {
            Fault::Connect => "connect",
            Fault::Timeout => "timeout",
            Fault::Broken => "broken",
            Fault::Mesh => "mesh",
            Fault::Status => "status",
            Fault::ContentType => "content-type",
            Fault::TooLong => "too-long",
            Fault::Format => "format",
            Fault::Value(dropped) => dropped.as_str(),
            Fault::WrongPod => "wrong-pod",
            Fault::Hung => "hung",
            Fault::Late => "late",
        }
    }

    /// What it means to the round.
    pub fn missed(self) -> Missed {
        if self == Fault::Mesh { Missed::Mesh } else { Missed::Other }
    }

    /// Whoever answers so may hold a place for long, or waste what it sends.
    pub(super) fn is_costly(self) -> bool {
        matches!(self, Fault::Connect | Fault::Timeout | Fault::Broken | Fault::TooLong)
    }
}

/// Whether the head of an answer lets a stat be expected.
///
/// # Errors
/// [`Fault::Mesh`], [`Fault::Status`] and [`Fault::ContentType`].
pub fn check_head(status: StatusCode, fields: &HeaderMap) -> Result<(), Fault> {
    if matches!(status, StatusCode::BAD_GATEWAY | StatusCode::SERVICE_UNAVAILABLE) {
        return Err(Fault::Mesh);
    }
    if !status.is_success() {
        return Err(Fault::Status);
    }
    // To the letter, as in the reference: no parameters either.
    match fields.get(http::header::CONTENT_TYPE) {
        Some(kind) if kind == CONTENT_TYPE => Ok(()),
        _ => Err(Fault::ContentType),
    }
}

/// The stat in a body, of which no more than one byte beyond
/// [`BODY_BYTES_MAX`] has to be read.
///
/// # Errors
/// [`Fault::TooLong`] and [`Fault::Format`].
pub fn read_body(body: &[u8], compat: Compat) -> Result<Stat, Fault> {
    let body = match body.get(..BODY_BYTES_MAX) {
        Some(_) if compat == Compat::Better && body.len() > BODY_BYTES_MAX => return Err(Fault::TooLong),
        Some(begin) => begin,
        None => body,
    };
    proto::decode(body, BODY_BYTES_MAX).map_err(|_| Fault::Format)
}

/// Whether a stat may be counted; `pod`: who was asked, where that is known.
///
/// # Errors
/// [`Fault::Value`] and [`Fault::WrongPod`].
pub fn judge(stat: &Stat, pod: Option<&str>, compat: Compat) -> Result<Said, Fault> {
    let said = Said { stat: stat.observed(), uptime: stat.process_uptime };
    if compat == Compat::Strict {
        return Ok(said);
    }
    check(&said.stat).map_err(Fault::Value)?;
    if pod.is_some_and(|pod| *pod != *said.stat.pod_name) {
        return Err(Fault::WrongPod);
    }
    Ok(said)
}
