//! `autoscaler/hash`: which replica works for a revision, and which
//! activators serve it.

use super::row::{Verdict, differs, list, located, part, parts, same};
use policy::compat::Compat;
use policy::own::{Holder, bucket_names, bucket_of, is_bucket_host};
use policy::revision::RevisionId;
use policy::subset::choose;
use serde_json::Value;

pub(super) fn judge(row: &Value, _mode: Compat) -> Verdict {
    match row["kind"].as_str() {
        Some("bucket_owner") => owners(row),
        Some("subset") => subset(row),
        Some("is_bucket_host") => {
            let host: String = part(&row["host"])?;
            same("is a bucket's host", part(&row["out"])?, is_bucket_host(&host))
        }
        Some("holder_identity") => holder(row),
        _ => differs("malformed row: unknown kind"),
    }
}

fn owners(row: &Value) -> Verdict {
    let names = bucket_names(part(&row["buckets"])?);
    same("names", parts(&row["names"])?, names.clone())?;
    for pair in list(&row["owners"])? {
        let [key, owner]: [String; 2] = part(pair)?;
        let Some((namespace, name)) = key.split_once('/') else {
            return differs(format!("malformed row: key {key:?}"));
        };
        let got = bucket_of(&RevisionId::new(namespace, name), names.iter().map(String::as_str));
        located(|| key.clone(), same("owner", Some(owner.as_str()), got))?;
    }
    Ok(())
}

fn subset(row: &Value) -> Verdict {
    let from: Vec<String> = parts(&row["from"])?;
    let target: String = part(&row["target"])?;
    let chosen = choose(from.iter().map(String::as_str), &target, part(&row["n"])?);
    let expected: Vec<String> = parts(&row["chosen"])?;
    same("chosen", expected.iter().map(String::as_str).collect(), chosen)
}

fn holder(row: &Value) -> Verdict {
    let identity: String = part(&row["id"])?;
    let got = Holder::parse(&identity);
    same("ok", part(&row["ok"])?, got.is_some())?;
    let Holder { pod, ip } = got.unwrap_or(Holder { pod: "", ip: "" });
    same("pod", row["pod"].as_str(), Some(pod))?;
    same("ip", row["ip"].as_str(), Some(ip))
}
