//! The parts of a request, and one decision, each by itself: what they cost
//! when everything they touch is at hand. What a whole request costs is
//! counted in instructions (`counts` of the tests) and measured beside others
//! (`bench/compare`).
//!
//! | bench | what |
//! | --- | --- |
//! | `admission` | a slot of the limiter and back: free, and handed over to who waits |
//! | `timeline` | a request that is counted in and out; the report of a second |
//! | `lookup` | the revision of a request among many, by its host |
//! | `headers` | a request's headers on their way to the app, an answer's back |
//! | `decision` | a revision's wish and order, with windows full of load |

mod admission;
mod decision;
mod headers;
mod lookup;
mod timeline;

use criterion::{criterion_group, criterion_main};

criterion_group!(all, admission::run, timeline::run, lookup::run, headers::run, decision::run);
criterion_main!(all);
