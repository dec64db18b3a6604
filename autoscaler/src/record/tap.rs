//! Where inputs pass on their way to decisions. While nobody records it costs
//! one look at a flag.

use super::decided::Decided;
use super::line::{Begun, Gap, Gone, Got, Head, Heard, Line};
use super::stream::{self, Lines, Recording};
use super::view::View;
use super::{Ask, RECORDINGS_MAX, Refused};
use crate::Config;
use crate::decider::{Decider, Input, Taken};
use parking_lot::Mutex;
use policy::moment::Moment;
use policy::revision::RevisionId;
use policy::world::RevisionView;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether there is nothing yet that a revision remembers.
#[derive(Clone, Copy, PartialEq, Eq)]
enum IsNew {
    Yes,
    No,
}

/// Shared by all that give inputs to decisions; they do so one at a time.
#[derive(Default)]
pub(crate) struct Tap {
    is_on: AtomicBool,
    recorders: Mutex<Recorders>,
}

#[derive(Default)]
struct Recorders {
    all: Vec<Recorder>,
    ended: bool,
}

struct Recorder {
    lines: Lines,
    head: Head,
    file_bytes: u64,
    /// Bytes of this file; `None` = it has no head yet.
    written: Option<u64>,
    /// What stands for each revision that is known to the reader.
    numbers: HashMap<RevisionId, u32>,
    next: u32,
    /// Inputs of which the reader was not told.
    lost: u64,
}

impl Tap {
    pub(crate) fn attach(&self, config: &Config, ask: Ask, now: Moment) -> Result<Recording, Refused> {
        let mut recorders = self.recorders.lock();
        recorders.all.retain(|recorder| !recorder.lines.are_unheard());
        if recorders.ended {
            return Err(Refused::Ending);
        }
        if recorders.all.len() == RECORDINGS_MAX {
            return Err(Refused::TooMany);
        }
        let (lines, recording) = stream::pair();
        let head = Head::of(config, ask.services, now);
        let (file_bytes, numbers) = (ask.file_bytes, HashMap::new());
        let mut recorder = Recorder { lines, head, file_bytes, written: None, numbers, next: 0, lost: 0 };
        recorder.is_ready(now);
        recorders.all.push(recorder);
        self.is_on.store(true, Ordering::Relaxed);
        Ok(recording)
    }

    /// Ends all recordings, for good.
    pub(crate) fn end(&self, now: Moment) {
        let mut recorders = self.recorders.lock();
        recorders.all.iter_mut().for_each(|recorder| _ = recorder.is_ready(now));
        *recorders = Recorders { all: Vec::new(), ended: true };
        self.is_on.store(false, Ordering::Relaxed);
    }

    /// Whether somebody records.
    pub(crate) fn is_on(&self) -> bool {
        self.is_on.load(Ordering::Relaxed)
    }

    /// Gives a decider an input, on the record.
    pub(crate) fn pass(&self, decider: &mut Decider, input: &Input<'_>, now: Moment) -> Taken {
        if !self.is_on() {
            return decider.take(input, now);
        }
        let mut recorders = self.recorders.lock();
        recorders.all.retain(|recorder| !recorder.lines.are_unheard());
        self.is_on.store(!recorders.all.is_empty(), Ordering::Relaxed);
        let mut of_it: Vec<&mut Recorder> =
            recorders.all.iter_mut().filter(|of| of.wants(&decider.view, &decider.id)).collect();
        of_it.iter_mut().for_each(|recorder| recorder.introduce(decider, IsNew::No, now));
        let got = (!of_it.is_empty()).then(|| Got::of(input, decider));
        let taken = decider.take(input, now);
        if let Some(got) = got {
            let decided = taken.decided().map(Decided::of);
            let mut line = Line::Input(Heard { n: 0, now: now.unix_nanos(), got, decided }.into());
            of_it.into_iter().for_each(|recorder| recorder.hear(&decider.id, &mut line));
        }
        taken
    }

    /// A decider is new, and remembers nothing yet.
    pub(crate) fn begun(&self, decider: &Decider, now: Moment) {
        if self.is_on() {
            let mut recorders = self.recorders.lock();
            let of_it = recorders.all.iter_mut().filter(|of| of.wants(&decider.view, &decider.id));
            of_it.for_each(|recorder| recorder.introduce(decider, IsNew::Yes, now));
        }
    }

    /// A revision is not decided on any more.
    pub(crate) fn gone(&self, id: &RevisionId, now: Moment) {
        if self.is_on() {
            self.recorders.lock().all.iter_mut().for_each(|recorder| recorder.forget(id, now));
        }
    }
}

impl Recorder {
    fn wants(&self, view: &RevisionView, id: &RevisionId) -> bool {
        let is_it = |name: &String| {
            *name == *view.spec.service || *name == *id.name || name.split_once('/') == Some((&id.namespace, &id.name))
        };
        self.head.services.is_empty() || self.head.services.iter().any(is_it)
    }

    /// Writes a line; false when there is no room for it.
    fn put(&mut self, line: &Line) -> bool {
        let Ok(text) = serde_json::to_vec(line) else { return false };
        let put = self.lines.put(&text);
        if put && let Some(written) = &mut self.written {
            *written += text.len() as u64 + 1;
        }
        put
    }

    /// Begins a file and tells of what was lost, where that is due; false when
    /// there is no room for it.
    fn is_ready(&mut self, now: Moment) -> bool {
        if self.written.is_some_and(|written| written >= self.file_bytes) {
            // Who reads the new file knows nothing of the one before.
            self.numbers.clear();
            (self.written, self.next) = (None, 0);
            self.head.part += 1;
        }
        if self.written.is_none() {
            self.head.at = now.unix_nanos();
            if !self.put(&Line::Head(self.head.clone())) {
                return false;
            }
            self.written = Some(0);
        }
        if self.lost > 0 && self.put(&Line::Gap(Gap { now: now.unix_nanos(), lost: self.lost })) {
            self.lost = 0;
        }
        self.lost == 0
    }

    /// Tells of a revision, if the reader does not know it.
    fn introduce(&mut self, decider: &Decider, is_new: IsNew, now: Moment) {
        if !self.is_ready(now) || self.numbers.contains_key(&decider.id) {
            return;
        }
        let begun = Begun {
            n: self.next,
            now: now.unix_nanos(),
            id: decider.id.to_string(),
            view: View::whole(&decider.view),
            state: (is_new == IsNew::No).then(|| decider.held()),
        };
        if self.put(&Line::Revision(begun.into())) {
            self.numbers.insert(decider.id.clone(), self.next);
            self.next = self.next.wrapping_add(1);
        }
    }

    /// Tells of an input. If it cannot, the reader does not know the revision
    /// any more.
    fn hear(&mut self, id: &RevisionId, line: &mut Line) {
        let Some(&n) = self.numbers.get(id) else {
            self.lost += 1;
            return;
        };
        if let Line::Input(heard) = line {
            heard.n = n;
        }
        if !self.put(line) {
            self.numbers.remove(id);
            self.lost += 1;
        }
    }

    fn forget(&mut self, id: &RevisionId, now: Moment) {
        let Some(n) = self.numbers.remove(id) else { return };
        if !self.put(&Line::Gone(Gone { n, now: now.unix_nanos() })) {
            self.lost += 1;
        }
    }
}
