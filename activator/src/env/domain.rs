//! The cluster's domain, as the resolver knows it.

const UNKNOWN: &str = "cluster.local";

/// From the text of `resolv.conf`: the first domain to search that begins with
/// `svc.` is that of the services.
pub(super) fn of_resolver(text: &str) -> String {
    let lines = text.lines().filter_map(|line| line.trim_start().strip_prefix("search"));
    let mut domains = lines.flat_map(str::split_whitespace);
    let found = domains.find_map(|domain| domain.strip_prefix("svc."));
    found.map_or(UNKNOWN, |domain| domain.strip_suffix('.').unwrap_or(domain)).to_owned()
}

#[cfg(test)]
mod tests {
    use super::of_resolver;

    #[test]
    fn the_first_service_domain_is_taken() {
        let text =
            "nameserver 10.96.0.10\nsearch ns.svc.prod.example svc.prod.example. prod.example\noptions ndots:5\n";
        assert_eq!(of_resolver(text), "prod.example");
        for text in ["", "search example.com\n", "nameserver 1.1.1.1\n"] {
            assert_eq!(of_resolver(text), "cluster.local");
        }
    }
}
