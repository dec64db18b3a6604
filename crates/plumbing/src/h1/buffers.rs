//! Read and write buffers, lent by the thread while a connection is active.
//! An idle connection holds none.

use super::limits::{BUFFER_BYTES, BUFFERS_KEPT};
use bytes::BytesMut;
use std::cell::RefCell;

thread_local! {
    static FREE: RefCell<[Vec<BytesMut>; 3]> = const { RefCell::new([Vec::new(), Vec::new(), Vec::new()]) };
}

/// An empty buffer of at least the size of `class`.
pub(super) fn take(class: usize) -> BytesMut {
    let class = class.min(BUFFER_BYTES.len() - 1);
    let kept = FREE.try_with(|free| free.borrow_mut()[class].pop()).ok().flatten();
    kept.unwrap_or_else(|| BytesMut::with_capacity(BUFFER_BYTES[class]))
}

/// Takes a buffer back; it is kept if nothing refers to its memory any more.
pub(super) fn give(mut buffer: BytesMut) {
    buffer.clear();
    let Some(class) = (0..BUFFER_BYTES.len()).rev().find(|class| buffer.try_reclaim(BUFFER_BYTES[*class])) else {
        return;
    };
    // On a thread that ends the buffer is simply dropped.
    let _ = FREE.try_with(|free| {
        let kept = &mut free.borrow_mut()[class];
        if kept.len() < BUFFERS_KEPT[class] {
            kept.push(buffer);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_comes_back_unless_something_still_refers_to_it() {
        let mut buffer = take(0);
        buffer.extend_from_slice(b"head and body");
        let head = buffer.split_to(4).freeze();
        let before = FREE.with(|free| free.borrow()[0].len());
        give(buffer);
        assert_eq!(FREE.with(|free| free.borrow()[0].len()), before, "the head lives");
        drop(head);
        let mut buffer = take(0);
        buffer.extend_from_slice(b"head and body");
        drop(buffer.split_to(4));
        give(buffer);
        assert_eq!(FREE.with(|free| free.borrow()[0].len()), before + 1);
        assert!(take(0).capacity() >= BUFFER_BYTES[0]);
    }
}
