//! Room for heads of answers, which live for a moment: kept by the thread.

use std::cell::RefCell;

/// Kept at a time, and bytes of each.
const KEPT_MAX: usize = 32;
const BYTES_MAX: usize = 8 << 10;
/// What most heads fit with a small body.
const BYTES: usize = 2 << 10;

thread_local! {
    static KEPT: RefCell<Vec<Vec<u8>>> = const { RefCell::new(Vec::new()) };
}

/// An empty one.
pub(super) fn take() -> Vec<u8> {
    let kept = KEPT.try_with(|kept| kept.borrow_mut().pop()).ok().flatten();
    kept.unwrap_or_else(|| Vec::with_capacity(BYTES))
}

/// Takes one back.
pub(super) fn give(mut room: Vec<u8>) {
    if room.capacity() == 0 || room.capacity() > BYTES_MAX {
        return;
    }
    room.clear();
    // On a thread that ends it is simply dropped.
    let _ = KEPT.try_with(|kept| {
        let mut kept = kept.borrow_mut();
        if kept.len() < KEPT_MAX {
            kept.push(room);
        }
    });
}
