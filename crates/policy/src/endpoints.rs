//! What the Endpoints objects of a revision say: the private one which pods
//! there are, the public one which activators are in its path.

use crate::backends::Destination;
use crate::compat::Compat;
use crate::moment::Moment;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

/// One subset of an Endpoints object: these addresses have these ports.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Subset {
    /// Ports of each address.
    pub ports: Vec<Port>,
    /// IP addresses that Kubernetes holds for ready.
    pub ready: Vec<Arc<str>>,
    /// IP addresses that it does not.
    pub not_ready: Vec<Arc<str>>,
}

/// A port with its name. For requests to a revision it is the revision's
/// protocol: `http`, or `http2` for h2c.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Port {
    /// Its name.
    pub name: Arc<str>,
    /// Its number.
    pub number: u16,
}

impl Subset {
    /// The first port of that name.
    fn port(&self, protocol: &str) -> Option<u16> {
        self.ports.iter().find(|port| &*port.name == protocol).map(|port| port.number)
    }
}

/// The pods of a revision, by what Kubernetes holds of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listed {
    /// Ready.
    pub ready: BTreeSet<Destination>,
    /// Not ready.
    pub not_ready: BTreeSet<Destination>,
}

impl Listed {
    /// From the subsets of the private Endpoints (activator reference, section 6.1).
    pub fn new(subsets: &[Subset], protocol: &str) -> Listed {
        let mut listed = Listed::default();
        for subset in subsets {
            let Some(port) = subset.port(protocol) else { continue };
            listed.ready.extend(subset.ready.iter().map(|ip| destination(ip, port)));
            listed.not_ready.extend(subset.not_ready.iter().map(|ip| destination(ip, port)));
        }
        listed
    }

    /// True when no pod is listed.
    pub fn is_empty(&self) -> bool {
        self.ready.is_empty() && self.not_ready.is_empty()
    }

    /// All pods, each once.
    pub fn all(&self) -> BTreeSet<Destination> {
        self.ready.union(&self.not_ready).cloned().collect()
    }
}

/// An address of its own text, with a port.
pub fn destination(host: &str, port: u16) -> Destination {
    if host.contains([':', '%']) { format!("[{host}]:{port}").into() } else { format!("{host}:{port}").into() }
}

/// Where an activator stands among those in the path of a revision.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// Activators in the path; 0 = not known yet.
    pub activators: u32,
    /// The position of this one in the order of their addresses' text; `None`
    /// = not known.
    pub index: Option<u32>,
    /// It has left the path, and serves what still comes to it.
    pub left: bool,
}

/// How long the last place stands after the own address has gone from the
/// list. By then those that stay have their new shares too, and most of what
/// was under way to this one has arrived.
pub const LEFT_AFTER: Duration = Duration::from_secs(10);

/// The own place in the path of one revision, from its public Endpoints
/// (activator reference, section 5.4).
///
/// The reference keeps the last place when its own address has gone from the
/// list, and goes on with only its old share of the pods for what still comes
/// to it. The better mode takes all pods then, a little of each, after
/// [`LEFT_AFTER`].
#[derive(Clone, Debug)]
pub struct Seat {
    own: Arc<str>,
    compat: Compat,
    place: Place,
    /// Since when the own address is not listed, though it was.
    missing: Option<Moment>,
}

impl Seat {
    /// Of the activator with that IP address; its place is not known yet.
    pub fn new(own: Arc<str>, compat: Compat) -> Seat {
        Seat { own, compat, place: Place::default(), missing: None }
    }

    /// The public Endpoints were made or changed. When the revision is reached
    /// directly they list its pods, and the own address is not among them.
    pub fn observe(&mut self, subsets: &[Subset], protocol: &str, now: Moment) {
        let in_path = subsets.iter().filter(|subset| subset.port(protocol).is_some());
        self.listed(in_path.flat_map(|subset| subset.ready.iter().map(|ip| &**ip)), now);
    }

    /// The same, where it is known already whose addresses are meant.
    pub fn listed<'a>(&mut self, addresses: impl IntoIterator<Item = &'a str>, now: Moment) {
        let addresses: BTreeSet<&str> = addresses.into_iter().collect();
        match addresses.iter().position(|&address| address == &*self.own) {
            Some(index) => {
                let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
                self.place = Place { activators: count(addresses.len()), index: Some(count(index)), left: false };
                self.missing = None;
            }
            None if self.place.index.is_some() => self.missing = self.missing.or(Some(now)),
            None => {}
        }
    }

    /// The place now.
    pub fn place(&self, now: Moment) -> Place {
        match self.leaves_at() {
            Some(at) if now >= at => Place { index: None, left: true, ..self.place },
            _ => self.place,
        }
    }

    /// When the place changes by time alone, if it does.
    pub fn leaves_at(&self) -> Option<Moment> {
        let missing = self.missing.filter(|_| self.compat == Compat::Better)?;
        Some(missing + LEFT_AFTER)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn subset(name: &str, number: u16, ready: &[&str], not_ready: &[&str]) -> Subset {
        let texts = |list: &[&str]| list.iter().map(|&text| text.into()).collect();
        Subset { ports: vec![Port { name: name.into(), number }], ready: texts(ready), not_ready: texts(not_ready) }
    }

    fn seconds(s: i64) -> Moment {
        Moment::from_unix_millis(s * 1000)
    }

    fn place(activators: u32, index: u32) -> Place {
        Place { activators, index: Some(index), left: false }
    }

    #[test]
    fn pods_are_read_from_the_subsets_that_speak_the_protocol() {
        let mut twice = subset("http", 8012, &["fd00::1"], &["10.0.0.2"]);
        twice.ports.push(Port { name: "http".into(), number: 9 });
        let listed = Listed::new(&[twice, subset("https", 8112, &["10.0.0.7"], &[])], "http");
        assert_eq!(listed.ready, BTreeSet::from(["[fd00::1]:8012".into()]));
        assert_eq!(listed.not_ready, BTreeSet::from(["10.0.0.2:8012".into()]));
        assert_eq!(listed.all().len(), 2);
        assert!(Listed::new(&[subset("http", 8012, &["10.0.0.1"], &[])], "http2").is_empty());
    }

    #[test]
    fn the_place_is_that_of_the_own_address_in_the_order_of_text() {
        let mut seat = Seat::new("10.1.0.9".into(), Compat::Better);
        assert_eq!(seat.place(seconds(0)), Place::default());
        let of = |ready: &[&str]| [subset("http2", 8013, ready, &[]), subset("http2", 8013, ready, &[])];
        seat.observe(&of(&["10.1.0.9", "10.1.0.10", "10.1.0.2"]), "http2", seconds(0));
        assert_eq!(seat.place(seconds(0)), place(3, 2), "each address counts once");
        seat.observe(&of(&["10.1.0.9"]), "http", seconds(0));
        assert_eq!(seat.place(seconds(0)), place(3, 2), "another protocol says nothing");
    }

    #[test]
    fn one_that_left_the_path_keeps_its_place_for_a_while_or_in_strict_mode_for_ever() {
        for (compat, left) in [(Compat::Strict, false), (Compat::Better, true)] {
            let mut seat = Seat::new("b".into(), compat);
            let both = [subset("http", 8012, &["a", "b"], &[])];
            let pods = [subset("http", 8012, &["c"], &["b"])];
            seat.observe(&pods, "http", seconds(0));
            assert_eq!((seat.place(seconds(100)), seat.leaves_at()), (Place::default(), None), "it never had one");
            seat.observe(&both, "http", seconds(100));
            seat.observe(&pods, "http", seconds(200));
            seat.observe(&pods, "http", seconds(205));
            assert_eq!(seat.place(seconds(209)), place(2, 1));
            assert_eq!(seat.leaves_at(), left.then(|| seconds(210)));
            let after = if left { Place { activators: 2, index: None, left } } else { place(2, 1) };
            assert_eq!(seat.place(seconds(210)), after);
            seat.observe(&both, "http", seconds(300));
            assert_eq!((seat.place(seconds(400)), seat.leaves_at()), (place(2, 1), None), "it is back");
        }
    }
}
