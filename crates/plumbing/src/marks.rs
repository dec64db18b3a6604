//! Which fields of a head mean something to a proxy.
//!
//! A head is asked for some forty names on its way, and mostly has none of
//! them. Each question costs a hash; one look at each field answers them all.

use http::header::HeaderMap;

/// The names that a head has, of those that mean something.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Marks(u32);

impl Marks {
    /// What our parts say to each other in requests.
    pub const INTERNAL: Marks = Marks(1);
    /// Marks that nobody may bring along on the way to an app or a pod.
    pub const OURS: Marks = Marks(1 << 1);
    /// What our parts and apps say in answers: of no concern to clients.
    pub const ANSWER: Marks = Marks(1 << 2);
    /// Where a request came from, as proxies before us say it.
    pub const ORIGIN: Marks = Marks(1 << 3);
    /// What belongs to one connection, but for `Connection` and `TE`.
    pub const HOP: Marks = Marks(1 << 4);
    /// `Connection`.
    pub const CONNECTION: Marks = Marks(1 << 5);
    /// What makes a request a probe, with its user agent.
    pub const PROBE: Marks = Marks(1 << 6);
    /// Which route of a service was meant.
    pub const ROUTE: Marks = Marks(1 << 7);
    /// `User-Agent`.
    pub const AGENT: Marks = Marks(1 << 8);
    /// `Expect`.
    pub const EXPECT: Marks = Marks(1 << 9);
    /// `TE`.
    pub const TE: Marks = Marks(1 << 10);

    /// Looks at each field once.
    pub fn of(fields: &HeaderMap) -> Marks {
        fields.keys().fold(Marks::default(), |all, name| Marks(all.0 | mark(name.as_str())))
    }

    /// True if one of `these` is there.
    pub fn have(self, these: Marks) -> bool {
        self.0 & these.0 != 0
    }

    /// Both.
    pub const fn or(self, other: Marks) -> Marks {
        Marks(self.0 | other.0)
    }
}

const INTERNAL: u32 = Marks::INTERNAL.0;
const OURS: u32 = Marks::OURS.0;
const ANSWER: u32 = Marks::ANSWER.0;
const ORIGIN: u32 = Marks::ORIGIN.0;
const HOP: u32 = Marks::HOP.0;
const PROBE: u32 = Marks::PROBE.0;

/// By length first: most names of a head have one that none of these has.
fn mark(name: &str) -> u32 {
    let group: &[(&str, u32)] = match name.len() {
        16.. if name.starts_with("x-zeroscale-") => &[
            ("x-zeroscale-offer", INTERNAL | OURS),
            ("x-zeroscale-lease", OURS | ANSWER),
            ("x-zeroscale-proxy", INTERNAL | ANSWER),
            ("x-zeroscale-free", INTERNAL | ANSWER),
            ("x-zeroscale-reason", ANSWER),
            ("x-zeroscale-handback", INTERNAL | OURS | ANSWER),
            ("x-zeroscale-await-slot", INTERNAL | OURS),
        ],
        2 => &[("te", Marks::TE.0)],
        6 => &[("expect", Marks::EXPECT.0)],
        7 => &[("trailer", HOP), ("upgrade", HOP)],
        9 => &[("forwarded", ORIGIN)],
        10 => &[("user-agent", Marks::AGENT.0), ("connection", Marks::CONNECTION.0), ("keep-alive", HOP)],
        14 => &[("k-network-hash", INTERNAL | OURS), ("x-forwarded-by", ORIGIN)],
        15 => &[
            ("x-forwarded-for", ORIGIN),
            ("k-proxy-request", INTERNAL),
            ("k-network-probe", INTERNAL | PROBE),
            ("k-kubelet-probe", INTERNAL | PROBE),
            ("k-original-host", INTERNAL),
        ],
        16 => &[("proxy-connection", HOP), ("x-forwarded-host", ORIGIN), ("k-passthrough-lb", INTERNAL)],
        17 => &[("x-forwarded-proto", ORIGIN), ("transfer-encoding", HOP)],
        18 => &[("proxy-authenticate", HOP)],
        19 => &[("proxy-authorization", HOP), ("knative-serving-tag", Marks::ROUTE.0)],
        24 => &[("knative-serving-revision", INTERNAL | OURS)],
        25 => &[("knative-serving-namespace", INTERNAL | OURS)],
        29 => &[("knative-serving-default-route", Marks::ROUTE.0)],
        _ => &[],
    };
    group.iter().find(|(known, _)| *known == name).map_or(0, |(_, mark)| *mark)
}
