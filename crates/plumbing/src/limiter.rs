//! The async face of [`policy::admit`]: one short lock, one waker per waiter,
//! and slots that come back by themselves, whenever the client leaves.

use crate::clock;
use parking_lot::Mutex;
use policy::admit::{Admission, Bounds, Claim, PodKey, Refused, Slot, Ticket, Verdict};
use policy::moment::Moment;
use policy::pick::Rule;
use std::collections::HashMap;
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};
use tokio::sync::Notify;

/// Called when a removed pod's last request has ended.
pub type LetGo = Box<dyn Fn(PodKey) + Send + Sync>;

/// A limiter. Clones share it.
#[derive(Clone)]
pub struct Limiter {
    shared: Arc<Shared>,
}

struct Shared {
    state: Mutex<State>,
    let_go: Option<LetGo>,
    /// Who waits for a free slot without wanting it.
    watchers: AtomicUsize,
    freed: Notify,
}

struct State {
    admission: Admission,
    wakers: HashMap<Ticket, Waker>,
    woken: Vec<Ticket>,
}

/// Answer to [`Limiter::ask`].
pub enum Asked {
    /// Go now.
    Go(Permit),
    /// Wait for the permit.
    Wait(Waiting),
    /// Leave.
    Refuse(Refused),
}

impl Limiter {
    /// Without pods.
    pub fn new(bounds: Bounds, rule: Rule, let_go: Option<LetGo>) -> Limiter {
        let state = State { admission: Admission::new(bounds, rule), wakers: HashMap::new(), woken: Vec::new() };
        let shared = Shared { state: Mutex::new(state), let_go, watchers: AtomicUsize::new(0), freed: Notify::new() };
        Limiter { shared: Arc::new(shared) }
    }

    /// Changes the state, then wakes whoever may go.
    pub fn update<R>(&self, change: impl FnOnce(&mut Admission, &mut Vec<Ticket>) -> R) -> R {
        let mut state = self.shared.state.lock();
        let state_ref = &mut *state;
        let result = change(&mut state_ref.admission, &mut state_ref.woken);
        if self.shared.watchers.load(Ordering::SeqCst) > 0 {
            self.shared.freed.notify_waiters();
        }
        if state_ref.woken.is_empty() {
            return result;
        }
        let State { wakers, woken, .. } = state_ref;
        let wake: Vec<Waker> = woken.drain(..).filter_map(|ticket| wakers.remove(&ticket)).collect();
        drop(state);
        wake.into_iter().for_each(Waker::wake);
        result
    }

    /// Reads the state.
    pub fn read<R>(&self, look: impl FnOnce(&Admission) -> R) -> R {
        look(&self.shared.state.lock().admission)
    }

    /// Ready when a newcomer could have a slot: how many there are. Takes none.
    pub async fn some_free(&self) -> u64 {
        let _watcher = Watcher::of(&self.shared.watchers);
        loop {
            let mut freed = pin!(self.shared.freed.notified());
            freed.as_mut().enable();
            match self.read(Admission::free) {
                Some(0) => freed.await,
                free => return free.unwrap_or(u64::MAX),
            }
        }
    }

    /// A request has come.
    pub fn ask(&self) -> Asked {
        self.ask_at(clock::now())
    }

    /// A request came then.
    pub fn ask_at(&self, at: Moment) -> Asked {
        let draw = fastrand::u64(..);
        let verdict = self.shared.state.lock().admission.ask(at, draw);
        match verdict {
            Verdict::Go(slot) => Asked::Go(self.permit(slot)),
            Verdict::Wait(ticket) => Asked::Wait(Waiting { limiter: self.clone(), ticket: Some(ticket) }),
            Verdict::Refuse(why) => Asked::Refuse(why),
        }
    }

    /// A slot if one is free now; never waits.
    pub fn try_take(&self) -> Option<Permit> {
        let slot = self.shared.state.lock().admission.try_take(clock::now(), fastrand::u64(..))?;
        Some(self.permit(slot))
    }

    /// A slot on the direct path, where pods keep their own limits.
    pub fn take_beyond_limit(&self) -> Option<Permit> {
        let slot = self.shared.state.lock().admission.take_beyond_limit(clock::now(), fastrand::u64(..))?;
        Some(self.permit(slot))
    }

    fn permit(&self, slot: Slot) -> Permit {
        Permit { limiter: self.clone(), slot: Some(slot), pod: slot.pod }
    }

    fn release(&self, slot: Slot) {
        if self.update(|admission, woken| admission.release(slot, woken)) {
            self.tell_let_go(slot.pod);
        }
    }

    fn tell_let_go(&self, pod: PodKey) {
        if let Some(tell) = &self.shared.let_go {
            tell(pod);
        }
    }
}

/// Why a pod gave a request back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Back {
    /// It is no pod any more.
    Gone,
    /// Others have filled it: see [`Admission::note_full`].
    Full,
    /// It gets no new work until it is resumed.
    Doubted,
}

struct Watcher<'a>(&'a AtomicUsize);

impl Watcher<'_> {
    fn of(count: &AtomicUsize) -> Watcher<'_> {
        count.fetch_add(1, Ordering::SeqCst);
        Watcher(count)
    }
}

impl Drop for Watcher<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// The right to have one request at a pod; comes back when it is dropped.
pub struct Permit {
    limiter: Limiter,
    slot: Option<Slot>,
    pod: PodKey,
}

impl Permit {
    /// The pod to go to.
    pub fn pod(&self) -> PodKey {
        self.pod
    }

    /// The pod gave the request back: wait at the old place again.
    pub fn hand_back(mut self, why: Back) -> Waiting {
        let limiter = self.limiter.clone();
        let ticket = self.slot.take().map(|slot| {
            let (ticket, held) = limiter.update(|admission, woken| {
                match why {
                    Back::Gone => {}
                    Back::Full => admission.note_full(slot.pod),
                    Back::Doubted => admission.suspend_pod(slot.pod),
                }
                let ticket = admission.hand_back(slot, woken);
                (ticket, admission.holds(slot.pod))
            });
            if !held {
                limiter.tell_let_go(slot.pod);
            }
            ticket
        });
        Waiting { limiter, ticket }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        if let Some(slot) = self.slot.take() {
            self.limiter.release(slot);
        }
    }
}

/// A place in the queue; given up when it is dropped.
pub struct Waiting {
    limiter: Limiter,
    ticket: Option<Ticket>,
}

impl Future for Waiting {
    type Output = Result<Permit, Refused>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Some(ticket) = self.ticket else { return Poll::Ready(Err(Refused::RevisionRemoved)) };
        let claim = {
            let mut state = self.limiter.shared.state.lock();
            let claim = state.admission.claim(ticket);
            if claim == Claim::Pending {
                state.wakers.insert(ticket, cx.waker().clone());
                return Poll::Pending;
            }
            state.wakers.remove(&ticket);
            claim
        };
        self.ticket = None;
        Poll::Ready(match claim {
            Claim::Go(slot) => Ok(self.limiter.permit(slot)),
            Claim::Refused(why) => Err(why),
            Claim::Pending => return Poll::Pending,
        })
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket.take() {
            self.limiter.shared.state.lock().wakers.remove(&ticket);
            if let Some(pod) = self.limiter.update(|admission, woken| admission.abandon(ticket, woken)) {
                self.limiter.tell_let_go(pod);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUNDS: Bounds = Bounds { waiting_max: 100, places_max: usize::MAX };

    fn one_slot() -> (Limiter, PodKey) {
        let limiter = Limiter::new(BOUNDS, Rule::FirstFree, None);
        let pod = limiter.update(|admission, woken| admission.add_pod(Some(1), woken));
        (limiter, pod)
    }

    fn go(asked: Asked) -> Permit {
        match asked {
            Asked::Go(permit) => permit,
            _ => panic!("a slot is free"),
        }
    }

    fn wait(asked: Asked) -> Waiting {
        match asked {
            Asked::Wait(waiting) => waiting,
            _ => panic!("no slot is free"),
        }
    }

    fn counts(limiter: &Limiter) -> (usize, usize) {
        limiter.read(|admission| (admission.running(), admission.waiting()))
    }

    #[tokio::test]
    async fn waiters_are_served_in_order_by_hand_over() {
        let (limiter, _) = one_slot();
        let first = go(limiter.ask());
        let (send, mut served) = tokio::sync::mpsc::unbounded_channel();
        for n in 0..20 {
            let waiting = wait(limiter.ask());
            let send = send.clone();
            tokio::spawn(async move {
                let permit = waiting.await.unwrap();
                send.send(n).unwrap();
                tokio::task::yield_now().await;
                drop(permit);
            });
        }
        drop((first, send));
        let mut order = Vec::new();
        while let Some(n) = served.recv().await {
            order.push(n);
        }
        assert_eq!(order, (0..20).collect::<Vec<_>>());
        assert_eq!(counts(&limiter), (0, 0));
    }

    #[tokio::test]
    async fn a_client_that_leaves_in_any_state_gives_its_place_back() {
        let (limiter, _) = one_slot();
        let held = go(limiter.ask());
        let queued = wait(limiter.ask());
        let granted = wait(limiter.ask());
        drop(queued);
        assert_eq!(counts(&limiter), (1, 1));
        drop(held);
        assert_eq!(counts(&limiter), (1, 0));
        drop(granted);
        assert_eq!(counts(&limiter), (0, 0));
        assert!(limiter.try_take().is_some());
    }

    #[tokio::test]
    async fn the_last_request_of_a_removed_pod_is_told() {
        let (send, receive) = std::sync::mpsc::channel();
        let limiter = Limiter::new(BOUNDS, Rule::FirstFree, Some(Box::new(move |pod| send.send(pod).unwrap())));
        let pod = limiter.update(|admission, woken| admission.add_pod(Some(1), woken));
        let permit = go(limiter.ask());
        assert!(!limiter.update(|admission, _| admission.remove_pod(pod)));
        assert!(receive.try_recv().is_err());
        drop(permit);
        assert_eq!(receive.try_recv(), Ok(pod));
    }

    #[tokio::test]
    async fn a_removed_pod_is_told_too_when_its_last_slot_was_never_used() {
        let (send, receive) = std::sync::mpsc::channel();
        let limiter = Limiter::new(BOUNDS, Rule::FirstFree, Some(Box::new(move |pod| send.send(pod).unwrap())));
        for leave_unclaimed in [true, false] {
            let pod = limiter.update(|admission, woken| admission.add_pod(Some(1), woken));
            let first = go(limiter.ask());
            let second = wait(limiter.ask());
            drop(first);
            assert!(!limiter.update(|admission, _| admission.remove_pod(pod)));
            let _place = if leave_unclaimed {
                drop(second);
                None
            } else {
                Some(second.await.unwrap().hand_back(Back::Gone))
            };
            assert_eq!(receive.try_recv(), Ok(pod));
        }
    }

    #[tokio::test]
    async fn a_watcher_is_told_of_a_free_slot_and_takes_none() {
        let (limiter, _) = one_slot();
        assert_eq!(limiter.some_free().await, 1);
        let held = go(limiter.ask());
        let queued = wait(limiter.ask());
        let watching = tokio::spawn({
            let limiter = limiter.clone();
            async move { limiter.some_free().await }
        });
        tokio::task::yield_now().await;
        drop(held);
        tokio::task::yield_now().await;
        assert!(!watching.is_finished(), "it is another's");
        drop(queued.await.unwrap());
        assert_eq!(watching.await.unwrap(), 1);
        assert_eq!((counts(&limiter), limiter.shared.watchers.load(Ordering::SeqCst)), ((0, 0), 0));
    }

    #[tokio::test]
    async fn a_request_handed_back_with_doubt_waits_for_the_pod_to_come_back() {
        let (limiter, pod) = one_slot();
        let mut waiting = go(limiter.ask()).hand_back(Back::Doubted);
        assert!(limiter.try_take().is_none());
        let pending = std::future::poll_fn(|cx| Poll::Ready(Pin::new(&mut waiting).poll(cx).is_pending())).await;
        assert!(pending);
        limiter.update(|admission, woken| admission.resume_pod(pod, woken));
        assert_eq!(waiting.await.map(|permit| permit.pod()), Ok(pod));
    }
}
