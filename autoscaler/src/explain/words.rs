//! A decision in words, and times as people write them.

use super::Step;
use crate::record::decided::{Decided, Limit, Wish};
use crate::status;
use policy::compat::Compat;
use policy::moment::Moment;
use policy::revision::Metric;
use std::fmt::Write;

/// In UTC, to the millisecond.
pub(super) fn time(moment: Moment) -> String {
    match jiff::Timestamp::from_millisecond(moment.unix_millis()) {
        Ok(time) => format!("{time:.3}"),
        Err(_) => moment.unix_millis().to_string(),
    }
}

pub(super) fn mode(compat: Compat) -> &'static str {
    match compat {
        Compat::Better => "default",
        Compat::Strict => "strict",
    }
}

impl Step {
    /// The recorded decision in one sentence, and the new one.
    pub fn in_words(&self) -> (String, String) {
        let words = |decided: Option<&Decided>| match decided {
            Some(decided) => decided.in_words(self.metric),
            None => "nothing is decided".to_owned(),
        };
        (words(self.recorded.as_ref()), words(self.now.as_ref()))
    }
}

impl Decided {
    fn in_words(&self, metric: Metric) -> String {
        let mut text = match self.ordered {
            Some(1) => "1 pod".to_owned(),
            Some(pods) => format!("{pods} pods"),
            None => "no order yet".to_owned(),
        };
        text.push_str(if self.direct { ", direct: " } else { ", through the activator: " });
        match (&self.wish, &self.undecided) {
            (Some(wish), _) => wish.put_into(&mut text, metric),
            (None, Some(why)) => _ = write!(text, "no decision ({why}); the last one stands"),
            (None, None) => text.push_str("no decision"),
        }
        limits(&mut text, &self.bounds);
        text
    }
}

impl Wish {
    fn put_into(&self, text: &mut String, metric: Metric) {
        let (window, load, pods) = match self.by_panic_window {
            true => ("panic", self.panic, self.wish_panic),
            false => ("stable", self.stable, self.wish_stable),
        };
        let (unit, load) = (status::metric(metric), status::tidy(load.0));
        let (pods, each) = (pods.0 + 0.0, if pods.0 == 1.0 { "pod" } else { "pods" });
        let _ = write!(text, "{unit} {load:.2} over the {window} window / target {} = {pods} {each}", self.target);
        if self.in_panic {
            text.push_str(", in panic");
        }
        limits(text, &self.limits);
    }
}

fn limits(text: &mut String, limits: &[Limit]) {
    limits.iter().for_each(|(name, from, to)| status::acted(text, name, *from, *to));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_utc_to_the_millisecond() {
        assert_eq!(time(Moment::from_unix_millis(1_767_225_600_100)), "2026-01-01T00:00:00.100Z");
        assert_eq!(time(Moment::from_unix_millis(i64::MAX)), "2262-04-11T23:47:16.854Z");
    }
}
