//! Read and write buffers, lent by the thread while a connection is active.
//! An idle connection holds none.

use super::limits::{BUFFER_BYTES, BUFFERS_KEPT, BUFFERS_LENT};
use bytes::BytesMut;
use std::cell::RefCell;
use std::collections::VecDeque;

#[derive(Default)]
struct Kept {
    free: [Vec<BytesMut>; BUFFER_BYTES.len()],
    /// Given back while a head or a piece of a body still referred to them.
    /// That is over a moment later.
    lent: VecDeque<BytesMut>,
}

thread_local! {
    static KEPT: RefCell<Kept> = RefCell::default();
}

/// An empty buffer of at least the size of `class`.
pub(super) fn take(class: usize) -> BytesMut {
    let class = class.min(BUFFER_BYTES.len() - 1);
    let kept = KEPT.try_with(|kept| kept.borrow_mut().take(class)).ok().flatten();
    kept.unwrap_or_else(|| BytesMut::with_capacity(BUFFER_BYTES[class]))
}

/// Takes a buffer back.
pub(super) fn give(mut buffer: BytesMut) {
    if buffer.capacity() == 0 {
        return;
    }
    buffer.clear();
    // On a thread that ends the buffer is simply dropped.
    let _ = KEPT.try_with(|kept| kept.borrow_mut().give(buffer));
}

impl Kept {
    fn take(&mut self, class: usize) -> Option<BytesMut> {
        if self.free[class].is_empty()
            && let Some(buffer) = self.lent.pop_front()
        {
            self.give(buffer);
        }
        self.free[class].pop()
    }

    fn give(&mut self, mut buffer: BytesMut) {
        // What is left of it says which it was, unless its front was given away.
        let class = BUFFER_BYTES.iter().position(|bytes| buffer.capacity() <= *bytes);
        let likely = class.filter(|class| buffer.try_reclaim(BUFFER_BYTES[*class]));
        let any = || (0..BUFFER_BYTES.len()).rev().find(|class| buffer.try_reclaim(BUFFER_BYTES[*class]));
        let reclaimed = likely.or_else(any);
        match reclaimed {
            Some(class) if self.free[class].len() < BUFFERS_KEPT[class] => self.free[class].push(buffer),
            None if self.lent.len() < BUFFERS_LENT && buffer.capacity() <= BUFFER_BYTES[0] => {
                self.lent.push_back(buffer);
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn free() -> usize {
        KEPT.with_borrow(|kept| kept.free[0].len())
    }

    #[test]
    fn a_buffer_comes_back_once_nothing_refers_to_it_any_more() {
        let mut buffer = take(0);
        buffer.extend_from_slice(b"head and body");
        let head = buffer.split_to(4).freeze();
        let start = head.as_ptr();
        give(buffer);
        assert_eq!(free(), 0, "the head lives");
        assert_ne!(take(0).as_ptr(), start);
        drop(head);
        // The one that was looked at in vain stands at the end of the row.
        let mut again = take(0);
        assert_eq!(again.as_ptr(), start);
        again.extend_from_slice(b"head and body");
        drop(again.split_to(4));
        give(again);
        assert_eq!(free(), 1);
        assert!(take(0).capacity() >= BUFFER_BYTES[0]);
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let mut heads = Vec::new();
        for _ in 0..10 * BUFFERS_LENT {
            let mut buffer = BytesMut::with_capacity(BUFFER_BYTES[0]);
            buffer.extend_from_slice(b"head and body");
            heads.push(buffer.split_to(4).freeze());
            give(buffer);
            give(BytesMut::with_capacity(BUFFER_BYTES[0]));
            give(BytesMut::with_capacity(BUFFER_BYTES[2]));
        }
        KEPT.with_borrow(|kept| {
            assert_eq!((kept.free[0].len(), kept.free[2].len()), (BUFFERS_KEPT[0], BUFFERS_KEPT[2]));
            assert_eq!(kept.lent.len(), BUFFERS_LENT);
        });
    }
}
