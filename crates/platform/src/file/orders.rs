//! The order file: what is wanted of each revision. Always whole, and put in
//! place of the old one in a single step, so whoever reads it sees one or the
//! other.

use crate::file::{folder, read};
use policy::revision::RevisionId;
use policy::world::{Order, Path};
use serde::Deserialize;
use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::ffi::OsString;
use std::fmt::Write;
use std::io::Write as _;
use std::path::{Path as FilePath, PathBuf};
use std::time::{Duration, Instant};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// Orders that may wait.
const ORDERS_MAX: usize = 1024;
/// So many are taken in at a stretch.
const SLICE: usize = 256;

/// How long to wait after the file could not be written.
const PAUSE: Duration = Duration::from_secs(1);
/// After a write comes a pause of so many times as long as it took to make the
/// text: a long one takes a fifth of a core at most, a short one goes at once.
const REST: u32 = 4;

/// What is wanted of one revision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ordered {
    /// Of which.
    pub revision: RevisionId,
    /// How many pods there should be.
    pub wanted: u32,
    /// How requests should reach it.
    pub path: Path,
    /// Why, in a few words.
    pub reason: String,
}

/// Writes orders into a file until `shutdown` is cancelled and what was given
/// before is written. Orders of earlier lives of the file stay until there are
/// newer ones. They are taken in on the current runtime and never wait for the
/// file; it is made and written on a thread for what blocks, with all that came
/// meanwhile.
///
/// # Panics
/// Outside a tokio runtime.
pub fn orders(path: PathBuf, shutdown: CancellationToken) -> (mpsc::Sender<Order>, JoinHandle<()>) {
    let (give, given) = mpsc::channel(ORDERS_MAX);
    (give, tokio::spawn(write_all(path, given, shutdown)))
}

async fn write_all(path: PathBuf, mut given: mpsc::Receiver<Order>, shutdown: CancellationToken) {
    let mut desk = Desk::new(path);
    let mut writing = None;
    let mut slice = Vec::with_capacity(SLICE);
    loop {
        let count = tokio::select! {
            biased;
            done = ended(&mut writing) => {
                let Ok(done) = done else { return };
                desk.note_end(done);
                continue;
            }
            count = given.recv_many(&mut slice, SLICE) => count,
            () = desk.may_write() => {
                writing = desk.write();
                continue;
            }
            () = shutdown.cancelled() => 0,
        };
        if count == 0 {
            break;
        }
        desk.look();
        slice.drain(..).for_each(|order| desk.note(order));
    }
    // What is left.
    if writing.is_some() {
        let Ok(done) = ended(&mut writing).await else { return };
        desk.note_end(done);
    }
    if desk.has_news() {
        writing = desk.write();
        if let Ok(done) = ended(&mut writing).await {
            desk.note_end(done);
        }
    }
}

/// The end of the write under way.
async fn ended(writing: &mut Option<JoinHandle<Written>>) -> Result<Written, tokio::task::JoinError> {
    let Some(under_way) = writing else { return std::future::pending().await };
    let done = under_way.await;
    *writing = None;
    done
}

/// What is wanted of a revision, as far as the file says.
type Wanted = (u32, Path, Cow<'static, str>);

/// Every order so far, for whoever writes them.
type Book = BTreeMap<RevisionId, Wanted>;

struct Written {
    book: Book,
    failed: Option<std::io::Error>,
    /// To make the text, without the disc.
    took: Duration,
}

/// Orders that came, and the thread that writes them.
struct Desk {
    path: PathBuf,
    /// The last order of each revision.
    known: HashMap<RevisionId, Wanted>,
    /// Those that are not in the book yet.
    changed: HashMap<RevisionId, Wanted>,
    /// The file may say something else than the book.
    differs: bool,
    /// `None` while it is being written.
    book: Option<Book>,
    /// The next write comes not before.
    not_before: Instant,
    failing: bool,
}

impl Desk {
    fn new(path: PathBuf) -> Desk {
        let earlier = read_orders(&path).unwrap_or_default();
        let earlier = earlier.into_iter().map(|of| (of.revision, (of.wanted, of.path, Cow::from(of.reason))));
        let book: Book = earlier.collect();
        let known = book.iter().map(|(id, wanted)| (id.clone(), wanted.clone())).collect();
        let (not_before, book) = (Instant::now(), Some(book));
        Desk { path, known, changed: HashMap::new(), differs: false, book, not_before, failing: false }
    }

    /// Orders come again and again; so a file that was taken away comes back.
    fn look(&mut self) {
        self.differs |= self.book.is_some() && !self.path.exists();
    }

    /// Takes an order in.
    fn note(&mut self, order: Order) {
        let Order { revision, wanted, path, reason, go_first: _ } = order;
        match self.known.get_mut(&revision) {
            Some(known) if (known.0, known.1, &*known.2) == (wanted, path, reason) => return,
            Some(known) => *known = (wanted, path, reason.into()),
            None => _ = self.known.insert(revision.clone(), (wanted, path, reason.into())),
        }
        self.changed.insert(revision, (wanted, path, reason.into()));
    }

    fn has_news(&self) -> bool {
        !self.changed.is_empty() || self.differs
    }

    /// Ready when there is something to write, somebody to do it, and time.
    async fn may_write(&self) {
        if self.book.is_none() || !self.has_news() {
            std::future::pending::<()>().await;
        }
        tokio::time::sleep_until(self.not_before.into()).await;
    }

    fn write(&mut self) -> Option<JoinHandle<Written>> {
        let mut book = self.book.take()?;
        let (changed, path) = (std::mem::take(&mut self.changed), self.path.clone());
        self.differs = false;
        Some(tokio::task::spawn_blocking(move || {
            let began = Instant::now();
            book.extend(changed);
            let text = text(&book);
            let took = began.elapsed();
            Written { failed: replace(&path, &text).err(), book, took }
        }))
    }

    fn note_end(&mut self, done: Written) {
        let file = self.path.display();
        match &done.failed {
            Some(error) if !self.failing => tracing::error!(%file, %error, "orders cannot be written; trying on"),
            None if self.failing => tracing::info!(%file, "orders are written again"),
            _ => {}
        }
        self.failing = done.failed.is_some();
        self.differs |= self.failing;
        self.not_before = Instant::now() + if self.failing { PAUSE } else { done.took * REST };
        self.book = Some(done.book);
    }
}

fn text(book: &Book) -> String {
    let mut text = String::from("orders:");
    if book.is_empty() {
        text.push_str(" []");
    }
    for (revision, (wanted, path, reason)) in book {
        let path = match path {
            Path::Activator => "activator",
            Path::Direct => "direct",
        };
        // Debug form of text is a double-quoted scalar of YAML for what
        // passes the snapshot file's check of names; reasons are our own.
        let _ = write!(
            text,
            "\n- revision: {:?}\n  wanted: {wanted}\n  path: {path}\n  reason: {reason:?}",
            revision.to_string(),
        );
    }
    text.push_str("\n...\n");
    text
}

/// Puts a file in place whole.
fn replace(path: &FilePath, content: &str) -> std::io::Result<()> {
    let mut name = OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(format!(".{}", std::process::id()));
    let beside = folder(path).join(name);
    let written = (|| {
        let mut file = std::fs::File::create(&beside)?;
        file.write_all(content.as_bytes())?;
        file.sync_data()?;
        std::fs::rename(&beside, path)
    })();
    if written.is_err() {
        let _ = std::fs::remove_file(&beside);
    }
    written
}

/// Reads an order file, as whoever carries orders out does.
///
/// # Errors
/// Why it is of no use.
pub fn read_orders(path: &FilePath) -> Result<Vec<Ordered>, String> {
    let text = read::text(path).map_err(|fault| fault.to_string())?;
    let file: File = read::parse(&text).map_err(|fault| fault.to_string())?;
    file.orders
        .into_iter()
        .map(|order| {
            let (namespace, name) =
                order.revision.split_once('/').ok_or_else(|| format!("`{}` is no revision", order.revision))?;
            let path = match order.path {
                Way::Activator => Path::Activator,
                Way::Direct => Path::Direct,
            };
            Ok(Ordered { revision: RevisionId::new(namespace, name), wanted: order.wanted, path, reason: order.reason })
        })
        .collect()
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    orders: Vec<Line>,
}

#[derive(Deserialize)]
struct Line {
    revision: String,
    wanted: u32,
    path: Way,
    reason: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
enum Way {
    Activator,
    Direct,
}
