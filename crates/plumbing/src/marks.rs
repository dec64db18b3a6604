//! Which fields of a head mean something to a proxy.
//!
//! A head is asked for some forty names on its way, and mostly has none of
//! them. Each question costs a hash; one look at each field answers them all.

use http::header::HeaderMap;

/// The names that a head has, of those that mean something.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Marks(u32);

impl Marks {
    /// None of all.
    pub const NONE: Marks = Marks(0);
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
        fields.keys().fold(Marks::NONE, |all, name| all.or(mark(name.as_str().as_bytes())))
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

/// The same name, whatever its case. Most differ in the first letter.
pub(crate) fn is(known: &[u8], name: &[u8]) -> bool {
    name.first().is_some_and(|first| first | 0x20 == known[0]) && known.eq_ignore_ascii_case(name)
}

/// True for names that only our parts use.
fn is_ours(name: &[u8]) -> bool {
    const OURS: &[u8] = b"x-zeroscale-";
    name.len() > OURS.len() && name[..OURS.len()].eq_ignore_ascii_case(OURS)
}

/// Of one name, whatever its case. By length first: most names of a head have one
/// that none of these has.
pub(crate) fn mark(name: &[u8]) -> Marks {
    let group: &[(&[u8], u32)] = match name.len() {
        16.. if is_ours(name) => &[
            (b"x-zeroscale-offer", INTERNAL | OURS),
            (b"x-zeroscale-lease", OURS | ANSWER),
            (b"x-zeroscale-proxy", INTERNAL | ANSWER),
            (b"x-zeroscale-free", INTERNAL | ANSWER),
            (b"x-zeroscale-reason", ANSWER),
            (b"x-zeroscale-handback", INTERNAL | OURS | ANSWER),
            (b"x-zeroscale-await-slot", INTERNAL | OURS),
        ],
        2 => &[(b"te", Marks::TE.0)],
        6 => &[(b"expect", Marks::EXPECT.0)],
        7 => &[(b"trailer", HOP), (b"upgrade", HOP)],
        9 => &[(b"forwarded", ORIGIN)],
        10 => &[(b"user-agent", Marks::AGENT.0), (b"connection", Marks::CONNECTION.0), (b"keep-alive", HOP)],
        14 => &[(b"k-network-hash", INTERNAL | OURS), (b"x-forwarded-by", ORIGIN)],
        15 => &[
            (b"x-forwarded-for", ORIGIN),
            (b"k-proxy-request", INTERNAL),
            (b"k-network-probe", INTERNAL | PROBE),
            (b"k-kubelet-probe", INTERNAL | PROBE),
            (b"k-original-host", INTERNAL),
        ],
        16 => &[(b"proxy-connection", HOP), (b"x-forwarded-host", ORIGIN), (b"k-passthrough-lb", INTERNAL)],
        17 => &[(b"x-forwarded-proto", ORIGIN), (b"transfer-encoding", HOP)],
        18 => &[(b"proxy-authenticate", HOP)],
        19 => &[(b"proxy-authorization", HOP), (b"knative-serving-tag", Marks::ROUTE.0)],
        24 => &[(b"knative-serving-revision", INTERNAL | OURS)],
        25 => &[(b"knative-serving-namespace", INTERNAL | OURS)],
        29 => &[(b"knative-serving-default-route", Marks::ROUTE.0)],
        _ => &[],
    };
    group.iter().find(|(known, _)| is(known, name)).map_or(Marks::NONE, |(_, mark)| Marks(*mark))
}
