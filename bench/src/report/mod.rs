//! What was measured, for people and for programs.

pub(crate) mod chart;
pub(crate) mod json;
pub(crate) mod markdown;
pub(crate) mod table;

use crate::book::Book;
use crate::goals::{Goal, Judged};
use crate::options::Options;

/// Goals of the rows that were asked for.
pub(crate) fn judged(goals: &[Goal], book: &Book, options: &Options) -> Vec<Judged> {
    goals.iter().filter(|goal| options.wants(goal.row())).map(|goal| goal.judge(book)).collect()
}
