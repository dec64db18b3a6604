//! Loads of our own. They are for the rules to be judged by, not to be fitted
//! to: each is a kind of load, written with round numbers.

use super::{Load, Second, Setting};
use crate::simulation::draw::Draw;

/// A load, and the setting that it is meant for.
pub struct Shape {
    /// The load.
    pub load: Load,
    /// The revision under it.
    pub setting: Setting,
}

/// So many pods' load in each second, made from the second and from noise in
/// `-1..=1`.
type Pods = fn(f64, f64) -> f64;

/// Name, seconds, start time of pods, restarts, load in pods.
type Row = (&'static str, usize, f64, &'static [usize], Pods);

/// Between `a` and `b` as `t` goes from `from` to `to`.
fn ramp(t: f64, from: f64, to: f64, a: f64, b: f64) -> f64 {
    a + (b - a) * ((t - from) / (to - from)).clamp(0.0, 1.0)
}

fn within(t: f64, from: f64, to: f64) -> bool {
    (from..to).contains(&t)
}

/// Twenty kinds of load.
const ROWS: [Row; 20] = [
    ("step up 10x", 300, 2.0, &[], |t, _| if t < 90.0 { 1.0 } else { 10.0 }),
    ("step up 10x, slow starters", 300, 20.0, &[], |t, _| if t < 90.0 { 1.0 } else { 10.0 }),
    ("spike of a panic window, slow starters", 300, 20.0, &[], |t, _| if within(t, 90.0, 96.0) { 10.0 } else { 1.0 }),
    ("step down 8x", 300, 2.0, &[], |t, _| if t < 120.0 { 8.0 } else { 1.0 }),
    ("halving and halving again", 480, 5.0, &[], |t, _| 16.0 / 2f64.powf((t / 120.0).floor())),
    ("doubling", 360, 10.0, &[], |t, _| 2f64.powf((t / 60.0).floor())),
    ("slow ramp up and down", 600, 5.0, &[], |t, _| ramp(t, 0.0, 300.0, 1.0, 20.0) - ramp(t, 300.0, 600.0, 0.0, 19.0)),
    ("steep ramp, slow starters", 300, 20.0, &[], |t, _| ramp(t, 60.0, 120.0, 2.0, 40.0)),
    ("flash crowd, slow starters", 400, 30.0, &[], |t, _| {
        ramp(t, 60.0, 70.0, 0.5, 30.0) - ramp(t, 180.0, 240.0, 0.0, 28.0)
    }),
    ("short bursts each half a minute", 600, 3.0, &[], |t, _| if t % 30.0 < 4.0 { 6.0 } else { 1.0 }),
    ("bursts that grow", 600, 8.0, &[], |t, _| if t % 90.0 < 20.0 { 2.0 + t / 60.0 } else { 1.0 }),
    ("noise of a third", 900, 5.0, &[], |_, noise| 8.0 * (1.0 + noise / 3.0)),
    ("noise of a tenth just above a target", 1800, 5.0, &[], |_, noise| 4.08 * (1.0 + noise / 10.0)),
    ("noise of a tenth just below a target", 900, 5.0, &[], |_, noise| 1.97 * (1.0 + noise / 10.0)),
    ("sawtooth", 900, 5.0, &[], |t, _| 1.0 + (t % 150.0) / 10.0),
    ("a day in an hour", 3600, 10.0, &[], |t, noise| {
        (10.0 - 9.0 * (t / 3600.0 * std::f64::consts::TAU).cos()) * (1.0 + noise / 10.0)
    }),
    ("idle gaps", 900, 4.0, &[], |t, _| if t % 300.0 < 60.0 { 3.0 } else { 0.0 }),
    (
        "a trickle, now and then nothing",
        600,
        2.0,
        &[],
        |t, noise| if noise > 0.3 { 0.1 + (t % 3.0) / 30.0 } else { 0.0 },
    ),
    ("restart under steady and rising load", 480, 5.0, &[120, 260], |t, noise| {
        (6.0 + ramp(t, 200.0, 400.0, 0.0, 12.0)) * (1.0 + noise / 20.0)
    }),
    ("restart, and 4x three seconds later", 300, 5.0, &[120], |t, _| if t < 126.0 { 2.0 } else { 8.0 }),
];

/// All of them. Every second one has pods of 10 requests, the others of 100.
pub fn all() -> Vec<Shape> {
    ROWS.iter().enumerate().map(|(number, row)| shape(number, row)).collect()
}

fn shape(number: usize, &(name, seconds, start, restarts, pods): &Row) -> Shape {
    let setting = if number.is_multiple_of(2) {
        Setting { target: 7.0, total: 10, ..Setting::default() }
    } else {
        Setting::default()
    };
    let mut draw = Draw::new(number as u64);
    let seconds = (0..seconds).map(|second| {
        let noise = draw.below(1 << 32) as f64 / f64::from(1u32 << 31) - 1.0;
        Second { offered: (pods(second as f64, noise) * setting.target).max(0.0), start }
    });
    Shape { load: Load { name: name.to_owned(), seconds: seconds.collect(), restarts: restarts.to_vec() }, setting }
}
