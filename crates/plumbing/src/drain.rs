//! The async face of [`policy::drain`]: one flag on the request path, one task
//! that sleeps only while a drain goes on.

use crate::clock;
use parking_lot::Mutex;
use policy::drain::{Drain as State, Phase, Rules};
use policy::moment::Moment;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::watch;

/// The drain of one sidecar. Clones share it.
#[derive(Clone)]
pub struct Drain {
    shared: Arc<Shared>,
}

struct Shared {
    state: Mutex<State>,
    /// True while health probes fail; all that a request looks at.
    draining: AtomicBool,
    /// Told of each change; the state itself is under the lock.
    changed: watch::Sender<Seen>,
}

/// What those who wait look at.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Seen {
    phase: Phase,
    called_off: u64,
    held: Option<Moment>,
}

impl Drain {
    /// Serving. Nothing happens by itself unless [`Drain::drive`] runs.
    pub fn new(rules: Rules) -> Drain {
        let state = State::new(rules);
        let (changed, _) = watch::channel(seen(&state));
        Drain { shared: Arc::new(Shared { state: Mutex::new(state), draining: AtomicBool::new(false), changed }) }
    }

    /// Its rules.
    pub fn rules(&self) -> Rules {
        *self.shared.state.lock().rules()
    }

    /// How far it is.
    pub fn phase(&self) -> Phase {
        self.shared.state.lock().phase()
    }

    /// True when health probes are to fail.
    pub fn is_draining(&self) -> bool {
        self.shared.draining.load(Ordering::Relaxed)
    }

    /// A request has come that is no probe.
    pub fn seen_request(&self) {
        if self.is_draining() {
            // Whoever drives it finds the later time when the earlier is due.
            self.shared.state.lock().request(clock::now());
        }
    }

    /// TERM has come.
    pub fn terminate(&self) {
        self.change(|state| state.terminate(clock::now()));
    }

    /// The app works until then: nothing closes before; `None` = no longer.
    pub fn hold(&self, until: Option<Moment>) {
        self.change(|state| state.hold(until));
    }

    /// Until when the app has said that it works; in the past when that is over.
    pub fn held(&self) -> Option<Moment> {
        self.shared.state.lock().held()
    }

    /// Ready when the app does not hold the end any more.
    pub async fn released(&self) {
        let mut changes = self.shared.changed.subscribe();
        loop {
            changes.mark_unchanged();
            let left = self.held().unwrap_or(Moment::MIN).since(clock::now());
            if left.is_zero() {
                return;
            }
            tokio::select! {
                () = tokio::time::sleep(left) => {}
                _ = changes.changed() => {}
            }
        }
    }

    /// What ran has ended.
    pub fn close(&self) {
        self.change(State::close);
    }

    /// The app's stop hook: begins a drain or joins the one that runs. Ready
    /// when the quiet time is over, or the drain was called off.
    pub async fn hook(&self) {
        let mut changes = self.shared.changed.subscribe();
        let before = self.change(|state| {
            state.hook(clock::now());
            state.called_off()
        });
        let over = |seen: &Seen| seen.called_off != before || matches!(seen.phase, Phase::Closing | Phase::Closed);
        // The sender lives as long as `self`.
        let _ = changes.wait_for(over).await;
    }

    /// Ready when it is time to close.
    pub async fn closing(&self) {
        let mut changes = self.shared.changed.subscribe();
        let _ = changes.wait_for(|seen| matches!(seen.phase, Phase::Closing | Phase::Closed)).await;
    }

    /// Does what is due, until it is time to close.
    pub async fn drive(&self) {
        let mut changes = self.shared.changed.subscribe();
        loop {
            let phase = self.change(|state| state.advance(clock::now()));
            if matches!(phase, Phase::Closing | Phase::Closed) {
                return;
            }
            // What has changed up to here is in `due`.
            changes.mark_unchanged();
            let due = self.shared.state.lock().due();
            let sleep = async {
                match due {
                    Some(due) => tokio::time::sleep(due.since(clock::now())).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = sleep => {}
                _ = changes.changed() => {}
            }
        }
    }

    fn change<R>(&self, change: impl FnOnce(&mut State) -> R) -> R {
        let mut state = self.shared.state.lock();
        let result = change(&mut state);
        let now = seen(&state);
        self.shared.draining.store(now.phase != Phase::Serving, Ordering::Relaxed);
        // Under the lock, so that changes are told in their order.
        self.shared.changed.send_if_modified(|before| std::mem::replace(before, now) != now);
        result
    }
}

fn seen(state: &State) -> Seen {
    Seen { phase: state.phase(), called_off: state.called_off(), held: state.held() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use policy::compat::Compat;
    use std::time::Duration;
    use tokio::time::Instant;

    fn driven(rules: Rules) -> Drain {
        let drain = Drain::new(rules);
        let driver = drain.clone();
        tokio::spawn(async move { driver.drive().await });
        drain
    }

    fn rules(quiet: u64) -> Rules {
        Rules::new(Compat::Strict, Some(Duration::from_secs(quiet)), None)
    }

    #[tokio::test(start_paused = true)]
    async fn late_requests_put_the_close_off() {
        let drain = driven(rules(30));
        let began = Instant::now();
        assert!(!drain.is_draining());
        drain.terminate();
        assert!(drain.is_draining());
        tokio::time::sleep(Duration::from_secs(8)).await;
        drain.seen_request();
        drain.closing().await;
        assert_eq!(began.elapsed().as_secs(), 38);
    }

    #[tokio::test(start_paused = true)]
    async fn a_hook_without_term_returns_after_a_second_and_all_is_as_before() {
        let drain = driven(rules(30));
        for _ in 0..2 {
            let began = Instant::now();
            drain.hook().await;
            assert_eq!(began.elapsed().as_millis() / 10, 100);
            assert!(!drain.is_draining());
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_hook_followed_by_term_returns_when_the_quiet_time_is_over() {
        let drain = driven(rules(30));
        let began = Instant::now();
        let hook = drain.hook();
        let term = async {
            tokio::time::sleep(Duration::from_millis(300)).await;
            drain.terminate();
        };
        tokio::join!(hook, term);
        assert_eq!(began.elapsed().as_secs(), 30);
        drain.hook().await;
        drain.closing().await;
        assert_eq!(began.elapsed().as_secs(), 30, "what comes later waits no longer");
    }

    #[tokio::test(start_paused = true)]
    async fn what_the_app_holds_ends_when_it_says_so_or_by_itself() {
        let drain = driven(rules(5));
        let began = Instant::now();
        let after = |seconds: u64| Some(clock::now() + Duration::from_secs(seconds));
        drain.hold(after(600));
        drain.terminate();
        tokio::time::sleep(Duration::from_secs(60)).await;
        assert_eq!(drain.phase(), Phase::Quiet);
        drain.hold(after(20));
        drain.closing().await;
        assert_eq!(began.elapsed().as_secs(), 80);
        // What was announced while all is being closed holds the end as well.
        drain.hold(after(600));
        let called_off = async {
            tokio::time::sleep(Duration::from_secs(7)).await;
            drain.hold(None);
        };
        tokio::join!(drain.released(), called_off);
        assert_eq!(began.elapsed().as_secs(), 87);
    }

    #[tokio::test(start_paused = true)]
    async fn without_a_quiet_time_term_closes_at_once() {
        let drain = driven(Rules::at_once());
        tokio::task::yield_now().await;
        let began = Instant::now();
        drain.terminate();
        drain.closing().await;
        assert!(began.elapsed() < Duration::from_millis(5));
    }
}
