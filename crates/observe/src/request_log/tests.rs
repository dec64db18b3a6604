use super::capture::Wanted;
use super::golden::{captured, who};
use super::*;

const TARGET: &str = "/l?x=1&y='q'";

fn line_of(template: &str, target: &str, compat: Compat) -> String {
    let template = Template::compile(template).unwrap();
    let request = captured(&template, target);
    let who = who();
    let entry = Entry { request: &request, code: 200, size: 2, seconds: 0.00118, who: &who };
    let mut line = String::new();
    template.line(&entry, compat, &mut line);
    line
}

fn faults(template: &str) -> Vec<String> {
    Template::compile(template).err().unwrap_or_default()
}

#[test]
fn the_default_line_is_the_references() {
    let golden = concat!(
        r#"{"httpRequest": {"requestMethod": "GET", "requestUrl": "/l?x\u003D1\u0026y\u003D\'q\'", "requestSize": "-1", "#,
        r#""status": 200, "responseSize": "2", "userAgent": "u\"a\'\u003Cé\u0009", "remoteIp": "1.2.3.4:5", "#,
        r#""serverIp": "10.0.0.7", "referer": "http://r/?a\u003Db", "latency": "0.00118s", "protocol": "HTTP/1.1"}, "#,
        r#""traceId": "0af7651916cd43dd8448eb211c80319c"}"#,
        "\n"
    );
    assert_eq!(line_of(DEFAULT_TEMPLATE, TARGET, Compat::Strict), golden);
}

#[test]
fn the_default_line_is_json_but_in_strict_mode() {
    let better = line_of(DEFAULT_TEMPLATE, "/a<b>&c='x'\\%22\u{1f000}\u{e0001}", Compat::Better);
    let json: serde_json::Value = serde_json::from_str(&better).unwrap();
    assert_eq!(json["httpRequest"]["requestUrl"], "/a<b>&c='x'\\%22\u{1f000}\u{e0001}");
    let strict = line_of(DEFAULT_TEMPLATE, "/a<b>&c='x'\\%22", Compat::Strict);
    assert!(strict.contains(r#""requestUrl": "/a\u003Cb\u003E\u0026c\u003D\'x\'\\%22""#));
}

#[test]
fn the_stock_template_of_the_controller_is_the_default() {
    let stock = "{\"httpRequest\": {\"requestMethod\": \"{{.Request.Method}}\", \"requestUrl\": \"{{js .Request.RequestURI}}\", \"requestSize\": \"{{.Request.ContentLength}}\", \"status\": {{.Response.Code}}, \"responseSize\": \"{{.Response.Size}}\", \"userAgent\": \"{{js .Request.UserAgent}}\", \"remoteIp\": \"{{js .Request.RemoteAddr}}\", \"serverIp\": \"{{.Revision.PodIP}}\", \"referer\": \"{{js .Request.Referer}}\", \"latency\": \"{{.Response.Latency}}s\", \"protocol\": \"{{.Request.Proto}}\"}, \"traceId\": \"{{.TraceID}}\"}";
    assert_eq!(DEFAULT_TEMPLATE, stock);
}

#[test]
fn a_template_that_fails_says_so_in_its_line() {
    let line = line_of("{{.Request.Method}} {{.Request.Nope}}", "/l", Compat::Better);
    assert_eq!(line, "Invalid request log template: method: GET, response code: 200, latency: 0.00118, url: /l\n");
}

#[test]
fn a_text_that_grows_without_end_fails_instead() {
    let long = format!("{{{{range 99000}}}}{}{{{{end}}}}", "x".repeat(200));
    for template in [
        r#"{{$x := "ab"}}{{range 60}}{{$x = print $x $x}}{{end}}{{$x}}"#,
        r#"{{$x := printf "%1000s" "x"}}{{range 90000}}{{$y := $x}}{{end}}"#,
        r#"{{range 90000}}{{printf "%1000s" "x"}}{{end}}"#,
        &long,
    ] {
        let line = line_of(template, "/l", Compat::Better);
        assert!(line.starts_with("Invalid request log template: "), "{} bytes of {template}", line.len());
    }
    let agent = "{{range 10}}{{js $.Request.RequestURI}}{{end}}";
    assert_eq!(line_of(agent, &format!("/{}", "=".repeat(64_000)), Compat::Better).len(), 10 * (1 + 6 * 64_000) + 1);
}

#[test]
fn a_newline_is_added_only_if_it_is_missing() {
    assert_eq!(line_of("a", TARGET, Compat::Better), "a\n");
    assert_eq!(line_of("a\n", TARGET, Compat::Better), "a\n");
    // The template's own newline may be trimmed away with the last action.
    assert_eq!(line_of("a{{if false}}{{end -}}", TARGET, Compat::Better), "a\n");
    assert_eq!(line_of("a{{if false}}{{end -}}", TARGET, Compat::Strict), "a");
    assert_eq!(line_of("{{if false}}{{end -}}", TARGET, Compat::Better), "");
}

#[test]
fn what_is_not_supported_is_told_by_name() {
    for (template, name) in [
        ("{{define \"x\"}}{{end}}", "{{define}}"),
        ("{{template \"x\"}}", "{{template}}"),
        ("{{range .Request.Header}}{{end}}", "range over .Request.Header"),
        ("{{.Request.TLS}}", ".Request.TLS"),
        ("{{.Request.FormValue \"a\"}}", ".Request.FormValue"),
        ("{{.Request.URL.Query}}", ".Request.URL.Query"),
        ("{{.Request.Header}}", ".Request.Header as text"),
        ("{{.}}", ". as text"),
        ("{{js .Revision}}", ".Revision as text"),
        ("{{slice \"abc\" 1}}", "function slice"),
        ("{{call .X}}", "function call"),
        ("{{printf \"%c\" 65}}", "printf verb %c"),
        ("{{printf \"%d\" 1 2}}", "2 values for 1 verbs"),
        ("{{printf .TraceID}}", "printf with a format"),
        ("{{with $r := .Request}}{{$r.Cookies}}{{end}}", ".Request.Cookies"),
        ("{{if true}}{{.Request.Body}}{{end}}", ".Request.Body"),
        ("{{len .Request.Header}}", "len of .Request.Header"),
        ("{{and false ($x := 1)}}", "$x set inside of parentheses"),
        ("{{if .Request.Header}}{{end}}", "the truth of .Request.Header"),
    ] {
        let faults = faults(template);
        assert!(faults.iter().any(|fault| fault.contains(name)), "{template}: {faults:?}");
    }
}

#[test]
fn only_headers_that_the_template_reads_are_kept() {
    let wanted = |text: &str| match Template::compile(text).unwrap().headers() {
        Wanted::Some(names) => names.iter().map(|name| name.as_str().to_owned()).collect(),
        Wanted::All => vec!["*".to_owned()],
    };
    assert_eq!(wanted(DEFAULT_TEMPLATE), ["user-agent", "referer", "traceparent", "x-b3-traceid"]);
    let some = r#"{{.Request.Header.Get "X-A"}}{{index $.Request.Header "X-B"}}{{.Request.Header.Accept}}"#;
    assert_eq!(wanted(some), ["x-a", "x-b", "accept"]);
    assert_eq!(wanted(r#"{{$n := "X-A"}}{{.Request.Header.Get $n}}"#), ["*"]);
    assert_eq!(wanted(r#"{{"X-A" | .Request.Header.Get}}"#), ["*"]);
    assert_eq!(wanted("{{.Request.Method}}"), Vec::<String>::new());
}

#[test]
fn the_trace_id_is_b3s_without_a_parent() {
    let template = Template::compile("{{.TraceID}}").unwrap();
    let mut request = captured(&template, "/");
    request.headers.retain(|(name, _)| name != "traceparent");
    request.headers.push((http::HeaderName::from_static("x-b3-traceid"), http::HeaderValue::from_static("b3id")));
    let who = who();
    let entry = Entry { request: &request, code: 200, size: 2, seconds: 0.1, who: &who };
    let mut line = String::new();
    template.line(&entry, Compat::Better, &mut line);
    assert_eq!(line, "b3id\n");
}

#[test]
fn a_range_without_end_stops() {
    let line = line_of("{{range 1000000000}}{{range 1000000000}}{{end}}{{end}}", "/", Compat::Better);
    assert!(line.starts_with("Invalid request log template"));
}

/// Pieces that random templates are made of.
const PIECES: [&str; 58] = [
    "{{",
    "}}",
    "{{-",
    "-}}",
    "{{- ",
    " -}}",
    "/*",
    "*/",
    "\"",
    "`",
    "'",
    "\\",
    "(",
    ")",
    "|",
    ",",
    ":=",
    "=",
    " ",
    "\n",
    ".",
    "..",
    "$",
    "$x",
    ".Request",
    ".Response",
    ".Code",
    ".Header",
    ".Get",
    ".URL",
    "if",
    "else",
    "end",
    "range",
    "with",
    "define",
    "js",
    "printf",
    "index",
    "and",
    "or",
    "not",
    "eq",
    "len",
    "html",
    "nil",
    "true",
    "0",
    "-1",
    "1e9",
    "0x",
    "1_0",
    "%",
    "%5d",
    "%q",
    "X-A",
    "é",
    "\u{0}",
];

fn random_template(random: &mut fastrand::Rng) -> String {
    let mut text = String::new();
    for _ in 0..random.usize(0..24) {
        text.push_str(PIECES[random.usize(0..PIECES.len())]);
        if random.bool() {
            text.push(' ');
        }
    }
    text
}

/// A good template with a few of its bytes changed.
fn broken_template(random: &mut fastrand::Rng, rows: &[String]) -> String {
    let mut bytes = rows[random.usize(0..rows.len())].clone().into_bytes();
    for _ in 0..random.usize(0..4) {
        let at = random.usize(0..=bytes.len());
        match random.u8(0..3) {
            0 if at < bytes.len() => drop(bytes.remove(at)),
            1 => bytes.insert(at, random.u8(b' '..=b'~')),
            _ => bytes.splice(at..at, PIECES[random.usize(0..PIECES.len())].bytes()).for_each(drop),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[test]
fn no_template_makes_it_panic_or_run_for_ever() {
    let rows: Vec<String> = include_str!("golden.jsonl")
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()["template"].as_str().unwrap().to_owned())
        .collect();
    let mut random = fastrand::Rng::with_seed(7);
    let mut good = 0;
    for round in 0..40_000 {
        let text = if round % 2 == 0 { random_template(&mut random) } else { broken_template(&mut random, &rows) };
        let Ok(template) = Template::compile(&text) else { continue };
        let request = captured(&template, "/l?x=1");
        let who = who();
        let entry = Entry { request: &request, code: 200, size: 2, seconds: 0.1, who: &who };
        let mut line = String::new();
        template.line(&entry, Compat::Better, &mut line);
        good += 1;
    }
    assert!(good > 4000, "only {good} of the random templates were any good");
}
