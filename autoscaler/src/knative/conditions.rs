//! Conditions of an object's status, and how one of them, `Ready`, follows
//! from the others (autoscaler reference, section 14).

use policy::moment::Moment;
use std::cmp::Reverse;

/// The condition that sums an object up.
pub const READY: &str = "Ready";

/// Reason of `Ready` from when an object's spec has changed until somebody has
/// looked at it.
const NEW_GENERATION: (&str, &str) = ("NewObservedGenFailure", "unsuccessfully observed a new generation");

/// Whether a condition holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Truth {
    /// It does.
    True,
    /// It does not.
    False,
    /// That is not known.
    Unknown,
}

impl Truth {
    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Truth::True => "True",
            Truth::False => "False",
            Truth::Unknown => "Unknown",
        }
    }
}

/// One condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    /// Which one.
    pub kind: String,
    /// Whether it holds.
    pub truth: Truth,
    /// True for one that tells, and from which nothing follows.
    pub info: bool,
    /// Why, in a word.
    pub reason: String,
    /// Why, in a sentence.
    pub message: String,
    /// Since when it is as it is (`lastTransitionTime`).
    pub since: Moment,
}

impl Condition {
    /// The same but for the time.
    fn says_the_same(&self, other: &Condition) -> bool {
        let words = |it: &Condition| (it.truth, it.info);
        words(self) == words(other)
            && (&self.kind, &self.reason, &self.message) == (&other.kind, &other.reason, &other.message)
    }
}

/// The conditions of an object, by kind. Those in `needed` must all hold for
/// it to be ready.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conditions {
    needed: &'static [&'static str],
    list: Vec<Condition>,
}

impl Conditions {
    /// None yet, of an object that is ready when those in `needed` hold.
    pub const fn new(needed: &'static [&'static str]) -> Conditions {
        Conditions { needed, list: Vec::new() }
    }

    /// As they were written down before.
    pub fn restore(needed: &'static [&'static str], list: impl IntoIterator<Item = Condition>) -> Conditions {
        let mut conditions = Conditions::new(needed);
        conditions.list.extend(list);
        conditions.list.sort_by(|a, b| a.kind.cmp(&b.kind));
        conditions
    }

    /// All there are, in the order of their kinds.
    pub fn iter(&self) -> impl Iterator<Item = &Condition> {
        self.list.iter()
    }

    /// One of them.
    pub fn get(&self, kind: &str) -> Option<&Condition> {
        self.list.iter().find(|condition| condition.kind == kind)
    }

    /// True if that condition is there and holds.
    pub fn holds(&self, kind: &str) -> bool {
        self.get(kind).is_some_and(|condition| condition.truth == Truth::True)
    }

    /// Before an object is looked at: all conditions are there, and an object
    /// whose spec has changed is not known to be ready.
    pub fn begin(&mut self, new_generation: bool, now: Moment) {
        if self.get(READY).is_none() {
            self.set(READY, Truth::Unknown, "", "", now);
        }
        let initial = if self.holds(READY) { Truth::True } else { Truth::Unknown };
        for kind in self.needed {
            if self.get(kind).is_none() {
                self.set(kind, initial, "", "", now);
            }
        }
        if new_generation {
            let (reason, message) = NEW_GENERATION;
            self.mark_unknown(READY, reason, message, now);
        }
    }

    /// After an object was looked at: what says the same as `before` has not
    /// changed, and keeps its time; what does not has changed now.
    pub fn settle(&mut self, before: &Conditions, now: Moment) {
        for condition in &mut self.list {
            let same = before.get(&condition.kind).filter(|before| before.says_the_same(condition));
            condition.since = same.map_or(now, |before| before.since);
        }
    }

    /// It holds. `Ready` then says what the first of the others says that does
    /// not, if there is one.
    pub fn mark_true(&mut self, kind: &str, now: Moment) {
        self.set(kind, Truth::True, "", "", now);
        match self.unhappy().cloned() {
            Some(other) => self.set(READY, other.truth, &other.reason, &other.message, now),
            None => self.set(READY, Truth::True, "", "", now),
        }
    }

    /// It is not known. So is `Ready`, unless something is known not to hold.
    pub fn mark_unknown(&mut self, kind: &str, reason: &str, message: &str, now: Moment) {
        self.set(kind, Truth::Unknown, reason, message, now);
        let is = |kind: &str, truth| self.get(kind).is_some_and(|condition| condition.truth == truth);
        if self.needed.iter().any(|kind| is(kind, Truth::False)) {
            if !is(READY, Truth::False) {
                self.set(READY, Truth::False, reason, message, now);
            }
        } else if self.needed.contains(&kind) {
            self.set(READY, Truth::Unknown, reason, message, now);
        }
    }

    /// It does not hold, and the object is not ready.
    pub fn mark_false(&mut self, kind: &str, reason: &str, message: &str, now: Moment) {
        self.set(kind, Truth::False, reason, message, now);
        if self.needed.contains(&kind) {
            self.set(READY, Truth::False, reason, message, now);
        }
    }

    /// One from which nothing follows.
    pub fn tell(&mut self, kind: &str, holds: bool, reason: &str, message: &str, now: Moment) {
        let truth = if holds { Truth::True } else { Truth::False };
        self.set(kind, truth, reason, message, now);
    }

    /// The needed one that says most about why the object is not ready: false
    /// before unknown, then what changed last, then the order of kinds.
    fn unhappy(&self) -> Option<&Condition> {
        let of = |truth| {
            let needed = self.list.iter().filter(|condition| self.needed.contains(&condition.kind.as_str()));
            needed.filter(|condition| condition.truth == truth).min_by_key(|condition| Reverse(condition.since))
        };
        of(Truth::False).or_else(|| of(Truth::Unknown))
    }

    fn set(&mut self, kind: &str, truth: Truth, reason: &str, message: &str, now: Moment) {
        let info = kind != READY && !self.needed.contains(&kind);
        let new = Condition {
            kind: kind.to_owned(),
            truth,
            info,
            reason: reason.to_owned(),
            message: message.to_owned(),
            since: now,
        };
        match self.list.binary_search_by(|condition| condition.kind.as_str().cmp(kind)) {
            Ok(place) if self.list[place].says_the_same(&new) => {}
            Ok(place) => self.list[place] = new,
            Err(place) => self.list.insert(place, new),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEEDED: &[&str] = &["Active", "Initialized", "Served"];

    fn second(seconds: i64) -> Moment {
        Moment::from_unix_millis(seconds * 1000)
    }

    fn fresh() -> Conditions {
        let mut conditions = Conditions::new(NEEDED);
        conditions.begin(false, second(0));
        conditions
    }

    fn ready(conditions: &Conditions) -> (Truth, &str) {
        let ready = conditions.get(READY).unwrap();
        (ready.truth, &ready.reason)
    }

    #[test]
    fn an_object_is_ready_when_all_that_is_needed_holds() {
        let mut conditions = fresh();
        assert_eq!(ready(&conditions), (Truth::Unknown, ""));
        for kind in NEEDED {
            conditions.mark_true(kind, second(1));
        }
        assert_eq!(ready(&conditions), (Truth::True, ""));
        conditions.tell("Aside", false, "Why", "why", second(2));
        assert_eq!(ready(&conditions), (Truth::True, ""));
        assert!(conditions.get("Aside").unwrap().info && !conditions.get(READY).unwrap().info);
    }

    #[test]
    fn false_comes_before_unknown_then_the_newer_then_the_order_of_kinds() {
        let mut conditions = fresh();
        conditions.mark_unknown("Active", "A", "", second(1));
        conditions.mark_unknown("Initialized", "I", "", second(2));
        conditions.mark_true("Served", second(3));
        assert_eq!(ready(&conditions), (Truth::Unknown, "I"));
        conditions.mark_unknown("Active", "A2", "", second(2));
        conditions.mark_true("Served", second(3));
        assert_eq!(ready(&conditions), (Truth::Unknown, "A2"));
        conditions.mark_false("Active", "NotAtAll", "", second(1));
        conditions.mark_true("Served", second(3));
        assert_eq!(ready(&conditions), (Truth::False, "NotAtAll"));
    }

    #[test]
    fn an_unknown_one_hides_no_false_one() {
        let mut conditions = fresh();
        conditions.mark_false("Active", "NoTraffic", "", second(1));
        conditions.mark_unknown("Served", "NotReady", "", second(2));
        assert_eq!(ready(&conditions), (Truth::False, "NoTraffic"));
        // A new generation makes `Ready` unknown; the false one makes it false.
        conditions.begin(true, second(3));
        assert_eq!(ready(&conditions), (Truth::False, "NewObservedGenFailure"));
    }

    #[test]
    fn a_new_generation_is_not_known_to_be_ready() {
        let mut conditions = fresh();
        for kind in NEEDED {
            conditions.mark_true(kind, second(1));
        }
        conditions.begin(true, second(2));
        assert_eq!(ready(&conditions), (Truth::Unknown, "NewObservedGenFailure"));
    }

    #[test]
    fn what_a_ready_object_lacks_is_taken_to_hold() {
        let mut conditions = fresh();
        for kind in NEEDED {
            conditions.mark_true(kind, second(1));
        }
        let kept = conditions.iter().filter(|condition| condition.kind != "Served").cloned();
        let mut conditions = Conditions::restore(NEEDED, kept);
        conditions.begin(false, second(2));
        assert!(conditions.holds("Served"));
    }

    #[test]
    fn only_what_changed_in_the_end_has_a_new_time() {
        let before = fresh();
        let mut conditions = before.clone();
        conditions.mark_unknown("Active", "Queued", "", second(5));
        conditions.mark_unknown("Active", "", "", second(5));
        conditions.mark_true("Served", second(5));
        conditions.settle(&before, second(6));
        let since = |kind| conditions.get(kind).unwrap().since;
        assert_eq!((since("Active"), since("Served")), (second(0), second(6)));
    }
}
