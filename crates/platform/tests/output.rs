//! What apps write: passed on, within limits.

mod support;

use std::time::Duration;
use support::{Floor, apps, command};

#[tokio::test]
async fn lines_of_both_streams_are_passed_on() {
    let app = apps::python(
        r#"
say("to stdout")
print("to stderr", file=sys.stderr, flush=True)
sys.stdout.buffer.write(b"not \xff text\r\n")
sys.stdout.buffer.flush()
serve(listen())
"#,
    );
    let floor = Floor::start(app);
    floor.want(1).await;
    floor.until_ready(1).await;
    floor.until_told("out: to stdout").await;
    floor.until_told("err: to stderr").await;
    floor.until_told("out: not \u{fffd} text").await;
    floor.end().await;
}

#[tokio::test]
async fn a_flood_is_rationed_and_counted_and_does_not_stop_the_app() {
    let flood = "for i in $(seq 3); do head -c 2000000 /dev/zero | tr '\\0' 'y'; echo; done; \
                 yes | head -c 20000000; echo the end >&2; sleep 1000";
    let floor = Floor::with(command(&["sh", "-c", flood]), |config| {
        config.output.rate = 10_000;
        config.output.burst = 50_000;
        config.output.line_limit = 1000;
    });
    floor.want(1).await;
    floor.until_told("err: the end").await;
    floor.until_told("lines dropped").await;
    let told = floor.told();
    let bytes: usize = told.iter().map(String::len).sum();
    println!("{} lines, {bytes} bytes of 26 MB", told.len());
    assert!(bytes < 200_000, "{bytes}");
    assert!(told.iter().all(|line| line.len() <= 1000 + "out: ".len()));
    floor.end().await;
}

#[tokio::test]
async fn the_last_line_of_an_ended_app_is_not_lost() {
    let app = command(&["sh", "-c", "printf 'no line end' >&2; exit 1"]);
    let floor = Floor::with(app, |config| config.backoff.first = Duration::from_millis(5));
    floor.want(1).await;
    floor.until_told("err: no line end").await;
    let view = floor.until("trouble", |view| view.trouble.is_some()).await;
    let text = &view.trouble.as_ref().unwrap().text;
    assert!(text.contains("its last line on stderr: no line end"), "{text}");
    floor.end().await;
}
