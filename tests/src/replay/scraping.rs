//! The scrape rows of `autoscaler/collection`: rounds of questions, single
//! answers, and which errors are told.

use super::row::{Miss, Verdict, at, differs, exact, float, list, located, part, parts, same, seconds};
use super::stat_wire::{bytes, same_short_stat};
use autoscaler::collect::answer::{Fault, check_head, read_body};
use autoscaler::collect::question;
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, StatusCode};
use policy::compat::Compat;
use policy::mesh::MeshMode;
use policy::scrape::news::{News, Told};
use policy::scrape::way::Way;
use policy::scrape::{Ask, Candidate, Missed, Nothing, Outcome, Said, Scrape, ScrapeError};
use policy::stat::Stat;
use serde_json::Value;
use std::time::Duration;

/// The names of the errors.
const ERRORS: [(&str, ScrapeError); 5] = [
    ("pods_exhausted", ScrapeError::PodsExhausted),
    ("direct_not_available", ScrapeError::DirectNotAvailable),
    ("did_not_receive_stat", ScrapeError::DidNotReceiveStat),
    ("failed_get_endpoints", ScrapeError::FailedGetEndpoints),
    ("other", ScrapeError::Other),
];

/// Rows `scrape`: rounds of one revision, one after the other.
pub(super) fn scrape(row: &Value, mode: Compat) -> Verdict {
    let mesh: MeshMode = match part::<String>(&row["mesh_mode"])?.parse() {
        Ok(mesh) => mesh,
        Err(why) => return differs(format!("malformed row: mesh mode: {why}")),
    };
    let mut way = Way::new(mesh, part(&row["passthrough_lb"])?);
    let window = seconds(&row["window_s"])?;
    let now = at(0);
    let all: Vec<Value> = parts(&row["pods"])?;
    let pods: Vec<&Value> = all.iter().filter(|pod| pod["state"] == "ready").collect();
    let mut candidates = Vec::new();
    for pod in &pods {
        candidates.push(Candidate { since: now - Duration::from_secs_f64(float(&pod["age_s"])?) });
    }
    let service: Vec<Value> = parts(&row["service_responses_cyclic"])?;
    let mut service = service.iter().cycle();
    for (number, expected) in list(&row["results"])?.iter().enumerate() {
        let mut draw = |below| fastrand::usize(..below);
        let mut round = Scrape::new(way, &candidates, window, now, mode, &mut draw);
        while let Some(ask) = round.ask() {
            let answer = match ask {
                Ask::Pod(place) => of_pod(pods[place])?,
                Ask::Service(_) => match service.next() {
                    Some(response) => of_service(response)?,
                    None => Err(Missed::Other),
                },
            };
            round.answer(ask, answer);
        }
        same("over", true, round.is_over())?;
        let outcome = round.conclude(&mut way, &Nothing);
        located(|| format!("round {number}"), came_to(expected, &outcome, way))?;
    }
    Ok(())
}

fn came_to(expected: &Value, outcome: &Outcome, way: Way) -> Verdict {
    let error = outcome.stat.as_ref().err().and_then(|got| ERRORS.iter().find(|(_, error)| error == got));
    same("error", part::<String>(&expected["error"])?.as_str(), error.map_or("", |(name, _)| name))?;
    same("pods_addressable_after", part(&expected["pods_addressable_after"])?, way.pods_are_addressable())?;
    same("recorded", part(&expected["recorded"])?, outcome.is_recorded())?;
    let Ok(stat) = &outcome.stat else { return Ok(()) };
    let nothing = numbers("", [0.0; 4]);
    let (stat, expected) = (stat.as_ref().unwrap_or(&nothing), &expected["stat"]);
    same("pod_name", part::<String>(&expected["pod_name"])?.as_str(), &*stat.pod_name)?;
    exact("avg", &expected["avg"], stat.average_concurrency)?;
    exact("avg_proxied", &expected["avg_proxied"], stat.average_proxied_concurrency)?;
    exact("count", &expected["count"], stat.request_count)?;
    exact("count_proxied", &expected["count_proxied"], stat.proxied_request_count)
}

fn numbers(name: &str, [average, average_proxied, count, count_proxied]: [f64; 4]) -> Stat {
    Stat {
        pod_name: name.into(),
        average_concurrency: average,
        average_proxied_concurrency: average_proxied,
        request_count: count,
        proxied_request_count: count_proxied,
    }
}

fn stat(name: &str, row: &Value) -> Verdict<Stat> {
    match list(row)? {
        [average, average_proxied, count, count_proxied] => {
            let numbers_of = [float(average)?, float(average_proxied)?, float(count)?, float(count_proxied)?];
            Ok(numbers(name, numbers_of))
        }
        _ => differs("malformed row: a stat has four numbers"),
    }
}

fn of_pod(pod: &Value) -> Verdict<Result<Said, Missed>> {
    Ok(match part::<String>(&pod["scrape_result"])?.as_str() {
        "ok" => Ok(Said { stat: stat(&part::<String>(&pod["ip"])?, &pod["stat"])?, uptime: float(&pod["age_s"])? }),
        "mesh_error" => Err(Missed::Mesh),
        _ => Err(Missed::Other),
    })
}

fn of_service(response: &Value) -> Verdict<Result<Said, Missed>> {
    Ok(match response["error"].as_str() {
        None => {
            let name: String = part(&response["pod_name"])?;
            Ok(Said { stat: stat(&name, &response["stat"])?, uptime: float(&response["uptime_s"])? })
        }
        Some("mesh") => Err(Missed::Mesh),
        Some(_) => Err(Missed::Other),
    })
}

/// Rows `http_scrape`: one answer.
pub(super) fn answer(row: &Value, mode: Compat) -> Verdict {
    let mut fields = HeaderMap::new();
    let kind: String = part(&row["content_type"])?;
    if !kind.is_empty() {
        let Ok(kind) = HeaderValue::try_from(kind) else { return differs("malformed row: content type") };
        fields.insert(CONTENT_TYPE, kind);
    }
    let Ok(status) = StatusCode::from_u16(part(&row["status"])?) else { return differs("malformed row: status") };
    let body = bytes(&part::<String>(&row["body_hex"])?)?;
    let got = check_head(status, &fields).and_then(|()| read_body(&body, mode));
    let error = match &got {
        Ok(_) => "",
        Err(Fault::Mesh | Fault::Status) => "http_status",
        Err(Fault::ContentType) => "unsupported_content_type",
        Err(Fault::Format | Fault::TooLong) => "unmarshal",
        Err(other) => return differs(format!("error: got {other:?}")),
    };
    same("error", part::<String>(&row["error"])?.as_str(), error)?;
    same("might_be_mesh", part(&row["might_be_mesh"])?, got == Err(Fault::Mesh))?;
    let Ok(request) = question("10.0.0.1:9090") else { return differs("there is no question") };
    let accepts = request.headers().get(ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    same("request_accept", part::<String>(&row["request_accept"])?.as_str(), accepts)?;
    got.map_or(Ok(()), |stat| same_short_stat(&row["stat"], &stat))
}

/// Rows `scrape_error_inform`: one collection's errors, a second each.
pub(super) fn errors(row: &Value, mode: Compat) -> Verdict {
    let mut news = News::default();
    for (number, outcome) in list(&row["outcomes"])?.iter().enumerate() {
        let told = told(&part::<String>(&outcome[0])?)?;
        let verdict = same("informed", part(&outcome[1])?, news.note(told, mode));
        located(|| format!("outcome {number} {outcome}"), verdict)?;
    }
    Ok(())
}

fn told(name: &str) -> Verdict<Option<Told>> {
    if name == "ok" {
        return Ok(None);
    }
    let wrapped = name.starts_with("wrapped:");
    let name = name.trim_start_matches("wrapped:");
    match ERRORS.iter().find(|(known, _)| *known == name) {
        Some((_, error)) => Ok(Some(Told { error: *error, wrapped })),
        None => Err(Miss::NotJudged),
    }
}
