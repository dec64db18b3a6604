//! Times as Go writes them, in UTC: containers have no other zone.

use policy::moment::Moment;
use std::fmt::Write;

const SECONDS_PER_DAY: i64 = 86_400;

/// Year, month and day of a day since the epoch.
fn date(days: i64) -> (i64, i64, i64) {
    // Howard Hinnant's `civil_from_days`: years begin with March, so that the
    // leap day is the last.
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let of_era = days.rem_euclid(146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let shifted = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    (year + era * 400 + i64::from(month <= 2), month, day)
}

/// `2006-01-02T15:04:05`.
fn whole_seconds(out: &mut String, at: Moment) {
    let seconds = at.unix_seconds();
    let (year, month, day) = date(seconds.div_euclid(SECONDS_PER_DAY));
    let of_day = seconds.rem_euclid(SECONDS_PER_DAY);
    let (hour, minute, second) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
    let _ = write!(out, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}");
}

fn nanos_of_second(at: Moment) -> i64 {
    at.unix_nanos().rem_euclid(1_000_000_000)
}

/// `time.RFC3339`.
pub fn rfc3339(out: &mut String, at: Moment) {
    whole_seconds(out, at);
    out.push('Z');
}

/// `time.RFC3339Nano`: trailing zeros fall.
pub fn rfc3339_nanos(out: &mut String, at: Moment) {
    whole_seconds(out, at);
    let nanos = nanos_of_second(at);
    if nanos > 0 {
        let digits = format!("{nanos:09}");
        out.push('.');
        out.push_str(digits.trim_end_matches('0'));
    }
    out.push('Z');
}

/// `2006-01-02T15:04:05.000Z0700`, zap's ISO 8601.
pub fn iso8601(out: &mut String, at: Moment) {
    whole_seconds(out, at);
    let _ = write!(out, ".{:03}Z", nanos_of_second(at) / 1_000_000);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(with: fn(&mut String, Moment), nanos: i64) -> String {
        let mut out = String::new();
        with(&mut out, Moment::from_unix_nanos(nanos));
        out
    }

    #[test]
    fn times_read_as_those_of_go() {
        let at = 1_796_012_389_063_448_390;
        assert_eq!(written(rfc3339_nanos, at), "2026-11-30T04:19:49.06344839Z");
        assert_eq!(written(rfc3339, at), "2026-11-30T04:19:49Z");
        assert_eq!(written(iso8601, at), "2026-11-30T04:19:49.063Z");
        assert_eq!(written(rfc3339_nanos, 0), "1970-01-01T00:00:00Z");
        assert_eq!(written(rfc3339, 951_782_400_000_000_000), "2000-02-29T00:00:00Z");
        assert_eq!(written(rfc3339, -1_000_000_000), "1969-12-31T23:59:59Z");
    }
}
