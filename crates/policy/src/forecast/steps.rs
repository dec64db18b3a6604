//! Loads as a forecast tells them apart: none, and from a thousandth on all of
//! four digits.

const PER_DECADE: u32 = 9000;
const LOWEST_EXPONENT: i32 = -6;
const DECADES: u32 = 12;

/// The highest step.
pub(super) const fn steps() -> u32 {
    PER_DECADE * DECADES
}

/// The highest load.
pub(super) fn most() -> f64 {
    load(steps())
}

/// The load of a step; 0 for the lowest.
pub(super) fn load(step: u32) -> f64 {
    let Some(step) = step.checked_sub(1) else { return 0.0 };
    let digits = f64::from(1000 + step % PER_DECADE);
    let exponent = LOWEST_EXPONENT + i32::try_from(step / PER_DECADE).unwrap_or(0);
    // Division by a whole power of ten gives the number that its digits name.
    match exponent {
        ..0 => digits / 10_f64.powi(-exponent),
        _ => digits * 10_f64.powi(exponent),
    }
}

/// The step whose load is the nearest below.
pub(super) fn step_of(wanted: f64) -> u32 {
    let (mut low, mut high) = (0, steps());
    while low < high {
        let middle = (low + high).div_ceil(2);
        if load(middle) <= wanted { low = middle } else { high = middle - 1 }
    }
    low
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_is_the_next_number_of_four_digits() {
        assert_eq!((load(0), load(1), load(2), load(9000), load(9001)), (0.0, 0.001, 0.001001, 0.009999, 0.01));
        assert_eq!((load(step_of(14.0)), load(step_of(14.0) + 1), most()), (14.0, 14.01, 999_900_000.0));
        for step in (0..=steps()).step_by(997) {
            assert_eq!(step_of(load(step)), step);
        }
        assert_eq!((step_of(0.0005), step_of(1e12), step_of(7.0009)), (0, steps(), step_of(7.0)));
    }
}
