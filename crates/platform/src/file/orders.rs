//! The order file: what is wanted of each revision. Always whole, and put in
//! place of the old one in a single step, so whoever reads it sees one or the
//! other.

use crate::file::{folder, read};
use policy::revision::RevisionId;
use policy::world::{Order, Path};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt::Write;
use std::io::Write as _;
use std::path::{Path as FilePath, PathBuf};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// Orders that may wait.
const ORDERS_MAX: usize = 1024;

/// How long to wait after the file could not be written.
const PAUSE: Duration = Duration::from_secs(1);

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

/// Writes orders into a file, on the current runtime, until `shutdown` is
/// cancelled and what was given before is written. Orders of earlier lives of
/// the file stay until there are newer ones.
///
/// # Panics
/// Outside a tokio runtime.
pub fn orders(path: PathBuf, shutdown: CancellationToken) -> (mpsc::Sender<Order>, tokio::task::JoinHandle<()>) {
    let (give, given) = mpsc::channel(ORDERS_MAX);
    (give, tokio::spawn(write_all(path, given, shutdown)))
}

async fn write_all(path: PathBuf, mut given: mpsc::Receiver<Order>, shutdown: CancellationToken) {
    let mut book: BTreeMap<RevisionId, Ordered> = match read_orders(&path) {
        Ok(earlier) => earlier.into_iter().map(|order| (order.revision.clone(), order)).collect(),
        Err(_) => BTreeMap::new(),
    };
    // Not yet in this life: the file may say less than the book.
    let (mut written, mut failing) = (false, false);
    loop {
        let first = tokio::select! {
            biased;
            order = given.recv() => order,
            () = shutdown.cancelled() => return,
        };
        let Some(first) = first else { return };
        // Whatever else waits goes into the same file.
        let more = std::iter::from_fn(|| given.try_recv().ok());
        let mut changed = failing || !written;
        for order in std::iter::once(first).chain(more) {
            changed |= note(&mut book, order);
        }
        // Orders come again and again; so a file that was taken away comes back.
        if !changed && path.exists() {
            continue;
        }
        let text = text(&book);
        let target = path.clone();
        match tokio::task::spawn_blocking(move || replace(&target, &text)).await {
            Ok(Ok(())) => {
                if failing {
                    tracing::info!(file = %path.display(), "orders are written again");
                }
                (written, failing) = (true, false);
            }
            Ok(Err(error)) => {
                if !failing {
                    tracing::error!(file = %path.display(), %error, "orders cannot be written; trying on");
                }
                failing = true;
                tokio::time::sleep(PAUSE).await;
            }
            Err(_) => return,
        }
    }
}

/// Takes an order in; false when it is the same as before.
fn note(book: &mut BTreeMap<RevisionId, Ordered>, order: Order) -> bool {
    let Order { revision, wanted, path, reason, go_first: _ } = order;
    if let Some(known) = book.get(&revision)
        && (known.wanted, known.path, &*known.reason) == (wanted, path, &*reason)
    {
        return false;
    }
    book.insert(revision.clone(), Ordered { revision, wanted, path, reason: reason.to_string() });
    true
}

fn text(book: &BTreeMap<RevisionId, Ordered>) -> String {
    let mut text = String::from("orders:");
    if book.is_empty() {
        text.push_str(" []");
    }
    for order in book.values() {
        let path = match order.path {
            Path::Activator => "activator",
            Path::Direct => "direct",
        };
        // Debug form of text is a double-quoted scalar of YAML for what
        // passes the snapshot file's check of names; reasons are our own.
        let _ = write!(
            text,
            "\n- revision: {:?}\n  wanted: {}\n  path: {path}\n  reason: {:?}",
            order.revision.to_string(),
            order.wanted,
            order.reason
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
