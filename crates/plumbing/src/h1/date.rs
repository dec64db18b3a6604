//! The `Date` field, rendered once a second on each thread.

use std::cell::Cell;
use std::time::{SystemTime, UNIX_EPOCH};

/// `Sun, 06 Nov 1994 08:49:37 GMT`
const DATE_BYTES: usize = 29;
const DAYS: [&[u8; 3]; 7] = [b"Thu", b"Fri", b"Sat", b"Sun", b"Mon", b"Tue", b"Wed"];
const MONTHS: [&[u8; 3]; 12] =
    [b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec"];

thread_local! {
    static LAST: Cell<(u64, [u8; DATE_BYTES])> = const { Cell::new((u64::MAX, [b' '; DATE_BYTES])) };
}

/// The current date as HTTP writes it.
pub(crate) fn now() -> [u8; DATE_BYTES] {
    let second = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    LAST.with(|last| {
        let (at, date) = last.get();
        if at == second {
            return date;
        }
        let date = render(second);
        last.set((second, date));
        date
    })
}

fn render(second: u64) -> [u8; DATE_BYTES] {
    let (days, of_day) = (second / 86_400, second % 86_400);
    let (year, month, day) = civil(days);
    let mut out = *b"Thu, 01 Jan 1970 00:00:00 GMT";
    out[..3].copy_from_slice(DAYS[(days % 7) as usize]);
    two_digits(&mut out, 5, day);
    out[8..11].copy_from_slice(MONTHS[(month - 1) as usize % 12]);
    two_digits(&mut out, 12, year / 100);
    two_digits(&mut out, 14, year % 100);
    two_digits(&mut out, 17, of_day / 3600);
    two_digits(&mut out, 20, of_day / 60 % 60);
    two_digits(&mut out, 23, of_day % 60);
    out
}

fn two_digits(out: &mut [u8; DATE_BYTES], at: usize, value: u64) {
    out[at] = b'0' + (value / 10 % 10) as u8;
    out[at + 1] = b'0' + (value % 10) as u8;
}

/// Year, month and day of a day since 1970, by counting from 1 March of year
/// 0, so that leap days stand at the end of their year.
fn civil(days: u64) -> (u64, u64, u64) {
    let shifted = days + 719_468;
    let era = shifted / 146_097;
    let of_era = shifted % 146_097;
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_read_as_http_writes_them() {
        for (second, text) in [
            (0, "Thu, 01 Jan 1970 00:00:00 GMT"),
            (784_111_777, "Sun, 06 Nov 1994 08:49:37 GMT"),
            (951_782_399, "Mon, 28 Feb 2000 23:59:59 GMT"),
            (951_782_400, "Tue, 29 Feb 2000 00:00:00 GMT"),
            (1_735_689_599, "Tue, 31 Dec 2024 23:59:59 GMT"),
            (4_107_542_400, "Mon, 01 Mar 2100 00:00:00 GMT"),
        ] {
            assert_eq!(std::str::from_utf8(&render(second)).unwrap(), text);
        }
    }
}
