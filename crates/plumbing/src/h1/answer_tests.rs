use super::*;
use http::Response;

fn written(method: Method, version: Version, keep_alive: bool, response: Response<()>, exact: Option<u64>) -> String {
    let asked = Asked::of(&method, version, true, keep_alive);
    let parts = response.into_parts().0;
    let plan = Plan::of(&asked, &parts, exact);
    let mut out = Vec::new();
    write(&asked, plan, &parts, exact, &mut out);
    let text = String::from_utf8(out).unwrap();
    let lines = text.split("\r\n").filter(|line| !line.is_empty() && !line.starts_with("Date: "));
    format!("{} {:?} {}", lines.collect::<Vec<_>>().join("|"), plan.encoder, plan.keep_alive)
}

#[test]
fn answers_are_framed_as_method_status_and_version_demand() {
    let of = |status: u16, fields: &[(&str, &str)]| {
        let response = Response::builder().status(status);
        fields.iter().fold(response, |response, (name, value)| response.header(*name, *value)).body(()).unwrap()
    };
    let (new, old) = (Version::HTTP_11, Version::HTTP_10);
    for (method, version, alive, response, exact, shown) in [
        (Method::GET, new, true, of(200, &[]), Some(2), "HTTP/1.1 200 OK|Content-Length: 2 Length(2) true"),
        (
            Method::GET,
            new,
            true,
            of(200, &[("content-length", "5")]),
            None,
            "HTTP/1.1 200 OK|Content-Length: 5 Length(5) true",
        ),
        (Method::GET, new, true, of(200, &[]), None, "HTTP/1.1 200 OK|Transfer-Encoding: chunked Chunked true"),
        (
            Method::GET,
            new,
            true,
            of(200, &[("transfer-encoding", "gzip"), ("content-length", "x")]),
            Some(1),
            "HTTP/1.1 200 OK|Content-Length: 1 Length(1) true",
        ),
        (
            Method::GET,
            new,
            false,
            of(200, &[]),
            Some(0),
            "HTTP/1.1 200 OK|Content-Length: 0|Connection: close Length(0) false",
        ),
        (
            Method::GET,
            new,
            true,
            of(503, &[("connection", "Close, x")]),
            Some(0),
            "HTTP/1.1 503 Service Unavailable|Content-Length: 0|Connection: close Length(0) false",
        ),
        (
            Method::GET,
            old,
            true,
            of(200, &[]),
            Some(0),
            "HTTP/1.0 200 OK|Content-Length: 0|Connection: keep-alive Length(0) true",
        ),
        (Method::GET, old, false, of(200, &[]), Some(0), "HTTP/1.0 200 OK|Content-Length: 0 Length(0) false"),
        (Method::GET, old, true, of(200, &[]), None, "HTTP/1.0 200 OK UntilClose false"),
        (
            Method::HEAD,
            new,
            true,
            of(200, &[("content-length", "1234")]),
            Some(0),
            "HTTP/1.1 200 OK|Content-Length: 1234 Nothing true",
        ),
        (Method::HEAD, new, true, of(200, &[]), Some(0), "HTTP/1.1 200 OK Nothing true"),
        (Method::HEAD, new, true, of(200, &[]), Some(7), "HTTP/1.1 200 OK|Content-Length: 7 Nothing true"),
        (Method::GET, new, true, of(204, &[("content-length", "0")]), Some(0), "HTTP/1.1 204 No Content Nothing true"),
        (Method::GET, new, true, of(304, &[("etag", "x")]), Some(0), "HTTP/1.1 304 Not Modified|Etag: x Nothing true"),
        (Method::GET, new, true, of(299, &[]), Some(0), "HTTP/1.1 299 |Content-Length: 0 Length(0) true"),
        (
            Method::GET,
            new,
            true,
            of(101, &[("connection", "Upgrade"), ("upgrade", "x")]),
            Some(0),
            "HTTP/1.1 101 Switching Protocols|Connection: Upgrade|Upgrade: x Nothing false",
        ),
        (Method::CONNECT, new, true, of(200, &[]), Some(0), "HTTP/1.1 200 OK Nothing false"),
        (Method::CONNECT, new, true, of(403, &[]), Some(0), "HTTP/1.1 403 Forbidden|Content-Length: 0 Length(0) true"),
    ] {
        assert_eq!(written(method, version, alive, response, exact), shown);
    }
}

#[test]
fn a_date_is_added_unless_there_is_one() {
    let asked = Asked::of(&Method::GET, Version::HTTP_11, false, true);
    for (given, count) in [(None, 1), (Some("Mon, 01 Jan 2024 00:00:00 GMT"), 1)] {
        let response = Response::builder();
        let response = given.into_iter().fold(response, |response, date| response.header(DATE, date));
        let parts = response.body(()).unwrap().into_parts().0;
        let mut out = Vec::new();
        write(&asked, Plan::of(&asked, &parts, Some(0)), &parts, Some(0), &mut out);
        let text = String::from_utf8(out).unwrap();
        assert_eq!(text.matches("\r\nDate: ").count(), count);
        assert!(given.is_none_or(|given| text.contains(given)));
    }
}
