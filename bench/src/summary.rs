//! Figures of several rounds in five.

use serde::Serialize;

/// See the module.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Summary {
    pub(crate) min: f64,
    pub(crate) lower: f64,
    pub(crate) median: f64,
    pub(crate) upper: f64,
    pub(crate) max: f64,
    pub(crate) count: usize,
}

impl Summary {
    /// Of no value at all there is none.
    pub(crate) fn of(values: &[f64]) -> Option<Summary> {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let (min, max) = (*sorted.first()?, *sorted.last()?);
        // Between the two nearest, in proportion.
        let at = |share: f64| {
            let position = share * (sorted.len() - 1) as f64;
            let (below, above) = (position.floor() as usize, position.ceil() as usize);
            sorted[below] + (sorted[above] - sorted[below]) * position.fract()
        };
        Some(Summary { min, lower: at(0.25), median: at(0.5), upper: at(0.75), max, count: sorted.len() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn five_figures() {
        let summary = Summary::of(&[4.0, 1.0, 2.0, 3.0]).unwrap();
        assert_eq!((summary.min, summary.median, summary.max), (1.0, 2.5, 4.0));
        assert_eq!((summary.lower, summary.upper), (1.75, 3.25));
        assert_eq!(Summary::of(&[]), None);
    }
}
