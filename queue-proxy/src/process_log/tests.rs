use super::*;
use policy::moment::Moment;
use tracing_subscriber::layer::SubscriberExt;

/// 2026-11-30T05:00:24.98271522Z
const AT: Moment = Moment::from_unix_nanos(1_796_014_824_982_715_220);

/// The config that Knative ships.
const STOCK: &str = r#"{"level": "info", "development": false, "outputPaths": ["stdout"], "errorOutputPaths": ["stderr"], "encoding": "json", "encoderConfig": {"timeKey": "timestamp", "levelKey": "severity", "nameKey": "logger", "callerKey": "caller", "messageKey": "message", "stacktraceKey": "stacktrace", "lineEnding": "", "levelEncoder": "", "timeEncoder": "iso8601", "durationEncoder": "", "callerEncoder": ""}}"#;

fn who() -> Identity {
    let text = |text: &str| text.into();
    Identity { namespace: text("ns1"), revision: text("rev1"), pod: text("pod-1"), ..Identity::default() }
}

/// A line with one of each kind of field, beside those recorded from Knative's logger.
fn line(config: &str, level: Level) -> String {
    let (log, fault) = ProcessLog::new(config, "", &who(), "");
    assert_eq!(fault, None);
    let place = line::Place { file: "/tmp/oracle-zap/main.go", line: 22 };
    let mut line = log.form.begin(level, AT, Some(&place), "hello \"x\"\n<>&é \u{1}");
    line.raw("n", "1");
    line.raw("f", "1.5");
    line.raw("b", "true");
    line.text("s", "t");
    line.end()
}

#[test]
fn lines_of_the_built_in_config_read_as_knatives() {
    let golden = r#"{"severity":"INFO","timestamp":"2026-11-30T05:00:24.98271522Z","logger":"queueproxy","caller":"oracle-zap/main.go:22","message":"hello \"x\"\n<>&é \u0001","knative.dev/key":"ns1/rev1","knative.dev/pod":"pod-1","n":1,"f":1.5,"b":true,"s":"t"}"#;
    assert_eq!(line("", Level::Info), format!("{golden}\n"));
    let severity = |level: Level| line("", level).split('"').nth(3).unwrap().to_owned();
    let all = [Level::Debug, Level::Warn, Level::Error, Level::DPanic, Level::Panic, Level::Fatal];
    assert_eq!(all.map(severity), ["DEBUG", "WARNING", "ERROR", "CRITICAL", "ALERT", "EMERGENCY"]);
}

#[test]
fn lines_of_the_stock_config_read_as_knatives() {
    let golden = r#"{"severity":"info","timestamp":"2026-11-30T05:00:24.982Z","logger":"queueproxy","caller":"oracle-zap/main.go:22","message":"hello \"x\"\n<>&é \u0001","knative.dev/key":"ns1/rev1","knative.dev/pod":"pod-1","n":1,"f":1.5,"b":true,"s":"t"}"#;
    assert_eq!(line(STOCK, Level::Info), format!("{golden}\n"));
    assert!(line(STOCK, Level::Warn).starts_with(r#"{"severity":"warn""#));
}

#[test]
fn other_encoders_read_as_zaps() {
    let console = r#"{"level":"info","encoding":"console","outputPaths":["stdout"],"encoderConfig":{"timeKey":"t","levelKey":"l","nameKey":"n","callerKey":"c","messageKey":"m","stacktraceKey":"s","levelEncoder":"capital","timeEncoder":"rfc3339","callerEncoder":"full"},"initialFields":{"a":1}}"#;
    let golden = "2026-11-30T05:00:24Z\tINFO\tqueueproxy\t/tmp/oracle-zap/main.go:22\thello \"x\"\n<>&é \u{1}\t{\"a\": 1, \"knative.dev/key\": \"ns1/rev1\", \"knative.dev/pod\": \"pod-1\", \"n\": 1, \"f\": 1.5, \"b\": true, \"s\": \"t\"}\n";
    assert_eq!(line(console, Level::Info), golden);
    let begins = |encoder: &str, golden: &str| {
        let config = format!(r#"{{"encoderConfig":{{"messageKey":"m",{encoder}}}}}"#);
        let line = line(&config, Level::Info);
        assert!(line.starts_with(golden), "{line}");
    };
    begins(r#""timeKey":"t","levelKey":"l","timeEncoder":"millis""#, r#"{"l":"INFO","t":1796014824982.715"#);
    begins(r#""timeKey":"t","levelKey":"","timeEncoder":"nanos""#, r#"{"t":1796014824982715220,"logger""#);
    begins(r#""timeEncoder":"weird","levelEncoder":"weird""#, r#"{"severity":"info","timestamp":1796014824.982715"#);
    begins(
        r#""callerKey":"""#,
        r#"{"severity":"INFO","timestamp":"2026-11-30T05:00:24.98271522Z","logger":"queueproxy","m":"hello"#,
    );
    assert!(line(r#"{"encoderConfig":{"lineEnding":"X\n"}}"#, Level::Info).ends_with("}X\n"));
    assert!(!line(r#"{"disableCaller":true}"#, Level::Info).contains("caller"));
}

#[test]
fn a_bad_config_falls_back_and_says_why() {
    for bad in ["{bad", r#"{"level":"loud"}"#, r#"{"encoding":"xml"}"#, r#"{"outputPaths":["/nowhere/x"]}"#, "[]"] {
        let (log, fault) = ProcessLog::new(bad, "debug", &who(), "");
        assert!(fault.is_some(), "{bad}");
        assert_eq!(log.level, Level::Debug, "the level is followed all the same");
        let line = log.form.begin(Level::Info, AT, None, "m").end();
        assert!(line.contains(r#""severity":"INFO""#) && line.contains(r#""logger":"fallback-logger.queueproxy""#));
    }
}

#[test]
fn the_level_variable_wins_if_it_is_a_level() {
    let level = |config: &str, level: &str| ProcessLog::new(config, level, &who(), "").0.level;
    assert_eq!(level(STOCK, "debug"), Level::Debug);
    assert_eq!(level(STOCK, "bogus"), Level::Info);
    assert_eq!(level(r#"{"level":"error"}"#, ""), Level::Error);
}

#[test]
fn events_are_lines_with_their_fields_and_only_from_the_level_on() {
    let kept = Arc::new(Mutex::new(Vec::new()));
    let (mut log, _) = ProcessLog::new("", "info", &who(), "abc");
    log.targets = Arc::new([Target::Kept(kept.clone())]);
    let subscriber = tracing_subscriber::registry().with(Layer::new(log.clone()));
    tracing::subscriber::with_default(subscriber, || {
        tracing::debug!("not this");
        tracing::error!(error = "boom", port = 8012, "error reverse proxying request");
    });
    log.fatal("failed to parse", "it is no JSON");
    let text = String::from_utf8(kept.lock().clone()).unwrap();
    let lines: Vec<serde_json::Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 2);
    assert_eq!(lines[0]["severity"], "ERROR");
    assert_eq!(lines[0]["message"], "error reverse proxying request");
    assert_eq!(
        (&lines[0]["error"], &lines[0]["port"], &lines[0]["commit"]),
        (&"boom".into(), &8012.into(), &"abc".into())
    );
    assert!(lines[0]["caller"].as_str().unwrap().starts_with("process_log/tests.rs:"));
    assert_eq!((&lines[1]["severity"], &lines[1]["error"]), (&"EMERGENCY".into(), &"it is no JSON".into()));
}
