//! `autoscaler/collection`: sample sizes, the merging of reports, the wire,
//! and scraping.

use super::pipeline::{same_load, silence, stat};
use super::row::{Miss, Verdict, float, list, located, part, same, time};
use super::spec::window_spec;
use super::{scraping, stat_wire};
use policy::collect::{Collection, sample_size};
use policy::compat::Compat;
use policy::revision::Metric;
use serde_json::Value;

pub(super) fn judge(row: &Value, mode: Compat) -> Verdict {
    match row["kind"].as_str() {
        Some("sample_size") => same("size", part(&row["size"])?, sample_size(float(&row["population"])?)),
        Some("merge") => merge(row, mode),
        Some("wire_encode") => stat_wire::wire_encode(row),
        Some("wire_decode") => stat_wire::wire_decode(row),
        Some("scrape") => scraping::scrape(row, mode),
        Some("http_scrape") => scraping::answer(row, mode),
        Some("scrape_error_inform") => scraping::errors(row, mode),
        _ => Err(Miss::NotJudged),
    }
}

fn merge(row: &Value, mode: Compat) -> Verdict {
    let windows = window_spec(row)?;
    let mut collection = Collection::new(&windows, silence(row), mode);
    for record in list(&row["records"])? {
        // A report that is dropped shows in the averages that follow.
        let _ = collection.record(time(&record[0])?, &stat(&list(record)?[1..])?);
    }
    for (number, query) in list(&row["queries"])?.iter().enumerate() {
        let now = time(&query[0])?;
        // `[t, "nodata"]` stands for both metrics.
        let rps = if query[1] == "nodata" { 1 } else { 3 };
        for (metric, column) in [(Metric::Concurrency, 1), (Metric::Rps, rps)] {
            let got = collection.load(metric, now);
            let verdict = same_load(&query[column], &query[column + 1], got, windows.aggregation);
            located(|| format!("query {number} {query}: {metric:?}"), verdict)?;
        }
    }
    Ok(())
}
