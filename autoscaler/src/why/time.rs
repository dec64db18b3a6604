//! Times as people write them, and as they read them.

use jiff::Timestamp;
use jiff::civil;
use jiff::tz::TimeZone;
use policy::moment::Moment;

/// The time zone of this process.
pub fn zone() -> TimeZone {
    TimeZone::try_system().unwrap_or(TimeZone::UTC)
}

/// From `2026-05-04T09:30:00Z` (RFC 3339), `-5m` (so long ago), or `9:30` and
/// `09:30:15` (the last time that the clock showed it in `zone`).
///
/// # Errors
/// One sentence, with what is understood.
pub fn parse(text: &str, now: Moment, zone: &TimeZone) -> Result<Moment, String> {
    let understood = || {
        format!("`{text}` is no time: give 2026-05-04T09:30:00Z (RFC 3339), -5m (five minutes ago), or 9:30 (the last)")
    };
    if let Some(span) = text.strip_prefix('-') {
        return plumbing::duration::parse(span).map(|span| now - span).map_err(|_| understood());
    }
    if let Ok(time) = text.parse::<Timestamp>() {
        return i64::try_from(time.as_nanosecond()).map(Moment::from_unix_nanos).map_err(|_| understood());
    }
    of_clock(text, now, zone).ok_or_else(understood)
}

/// The last time that a clock showed it.
fn of_clock(text: &str, now: Moment, zone: &TimeZone) -> Option<Moment> {
    let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit()) && (1..=2).contains(&part.len());
    let parts: Vec<&str> = text.split(':').collect();
    if !(2..=3).contains(&parts.len()) || !parts.iter().all(|part| digits(part)) {
        return None;
    }
    let number = |at: usize| parts.get(at).map_or(Some(0), |part| part.parse().ok());
    let time = civil::Time::new(number(0)?, number(1)?, number(2)?, 0).ok()?;
    let today = Timestamp::from_millisecond(now.unix_millis()).ok()?.to_zoned(zone.clone()).date();
    let at = |date: civil::Date| {
        let zoned = date.to_datetime(time).to_zoned(zone.clone()).ok()?;
        Some(Moment::from_unix_millis(zoned.timestamp().as_millisecond()))
    };
    at(today).filter(|at| *at <= now).or_else(|| at(today.yesterday().ok()?))
}

/// As RFC 3339, to the millisecond.
pub fn rfc3339(at: Moment) -> String {
    match Timestamp::from_millisecond(at.unix_millis()) {
        Ok(time) => format!("{time:.3}"),
        Err(_) => format!("{} ms since 1970", at.unix_millis()),
    }
}

/// `09:30:15`, with the day before it where that is another one than `now`'s.
pub(super) fn clock(seconds: f64, now: f64, zone: &TimeZone) -> String {
    // `as` takes the nearest that fits, and 0 for no number.
    let zoned = |seconds: f64| {
        Timestamp::from_millisecond((seconds * 1000.0) as i64).unwrap_or_default().to_zoned(zone.clone())
    };
    let (at, now) = (zoned(seconds), zoned(now));
    let (day, time) = (at.date(), at.time());
    let time = format!("{:02}:{:02}:{:02}", time.hour(), time.minute(), time.second());
    if day == now.date() { time } else { format!("{day} {time}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn read(text: &str) -> Result<String, String> {
        // 15:00 in Berlin.
        let now = parse("2026-05-04T13:00:00Z", Moment::default(), &TimeZone::UTC).unwrap();
        parse(text, now, &TimeZone::get("Europe/Berlin").unwrap()).map(rfc3339)
    }

    #[test]
    fn times_are_read_in_three_ways() {
        for (text, time) in [
            ("2026-05-04T09:30:00+02:00", "2026-05-04T07:30:00.000Z"),
            ("2026-05-04T09:30:00.25Z", "2026-05-04T09:30:00.250Z"),
            ("-5m", "2026-05-04T12:55:00.000Z"),
            ("-90s", "2026-05-04T12:58:30.000Z"),
            ("14:59", "2026-05-04T12:59:00.000Z"),
            ("9:30:15", "2026-05-04T07:30:15.000Z"),
            ("15:01", "2026-05-03T13:01:00.000Z"),
        ] {
            assert_eq!(read(text).as_deref(), Ok(time), "{text}");
        }
        for bad in ["", "5m", "yesterday", "25:00", "9:5:4:3", "-", "-x", "12:", "2026-05-04"] {
            assert!(read(bad).unwrap_err().starts_with(&format!("`{bad}` is no time")), "{bad}");
        }
    }

    #[test]
    fn the_day_is_shown_where_it_is_not_todays() {
        let at = |text| parse(text, Moment::default(), &TimeZone::UTC).unwrap();
        let seconds = |at: Moment| at.unix_millis() as f64 / 1000.0;
        let now = at("2026-05-04T00:10:00Z");
        let shown = |of: Moment| clock(seconds(of), seconds(now), &TimeZone::UTC);
        assert_eq!(shown(now - Duration::from_secs(60)), "00:09:00");
        assert_eq!(shown(now - Duration::from_secs(3600)), "2026-05-03 23:10:00");
        assert_eq!(clock(f64::NAN, 0.0, &TimeZone::UTC), "00:00:00");
    }
}
