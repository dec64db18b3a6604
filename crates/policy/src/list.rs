//! Linked lists whose nodes live in one table: push, pop and removal from the
//! middle in constant time, no allocation once the table has grown.
//!
//! A waiter that leaves the queue, or a deadline that is called off, must go
//! at once and at no cost; a `VecDeque` would keep its tombstone.

/// Names an entry of an [`Arena`]; stale once the entry is removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    index: u32,
    generation: u32,
}

const NONE: u32 = u32::MAX;

#[derive(Debug)]
struct Node<T> {
    generation: u32,
    /// Neighbours in the list, or, in a free node, the next free one.
    prev: u32,
    next: u32,
    linked: bool,
    value: Option<T>,
}

/// The table of entries. An entry may stand in one list or in none.
#[derive(Debug)]
pub struct Arena<T> {
    nodes: Vec<Node<T>>,
    free: u32,
    len: usize,
    /// Generation of a node that is added to the table: above all that a
    /// dropped table had, so that keys given out before stay stale.
    first_generation: u32,
}

impl<T> Default for Arena<T> {
    fn default() -> Self {
        Arena { nodes: Vec::new(), free: NONE, len: 0, first_generation: 0 }
    }
}

impl<T> Arena<T> {
    /// Adds an entry that stands in no list yet.
    ///
    /// # Panics
    /// Beyond 2^32 - 1 entries; every caller has a bound far below.
    pub fn insert(&mut self, value: T) -> Key {
        self.len += 1;
        if self.free == NONE {
            let index = u32::try_from(self.nodes.len()).expect("an arena holds fewer than 2^32 entries");
            let generation = self.first_generation;
            self.nodes.push(Node { generation, prev: NONE, next: NONE, linked: false, value: Some(value) });
            return Key { index, generation };
        }
        let index = self.free;
        let node = &mut self.nodes[index as usize];
        self.free = node.next;
        *node = Node { generation: node.generation, prev: NONE, next: NONE, linked: false, value: Some(value) };
        Key { index, generation: node.generation }
    }

    /// Removes an entry that stands in no list.
    pub fn remove(&mut self, key: Key) -> Option<T> {
        let free = self.free;
        let node = self.node_mut(key)?;
        debug_assert!(!node.linked, "unlink an entry before it is removed");
        let value = node.value.take();
        node.generation = node.generation.wrapping_add(1);
        node.next = free;
        self.free = key.index;
        self.len -= 1;
        // A burst may have grown the table; do not keep its memory for ever.
        if self.len == 0 && self.nodes.len() > 1024 {
            let newest = self.nodes.iter().map(|node| node.generation).max().unwrap_or(0);
            self.first_generation = newest.wrapping_add(1);
            self.nodes = Vec::new();
            self.free = NONE;
        }
        value
    }

    /// The entry, unless it was removed.
    pub fn get(&self, key: Key) -> Option<&T> {
        let node = self.nodes.get(key.index as usize)?;
        if node.generation == key.generation { node.value.as_ref() } else { None }
    }

    /// The entry, unless it was removed.
    pub fn get_mut(&mut self, key: Key) -> Option<&mut T> {
        self.node_mut(key)?.value.as_mut()
    }

    /// Entries in the table.
    pub fn len(&self) -> usize {
        self.len
    }

    /// True without entries.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    fn node_mut(&mut self, key: Key) -> Option<&mut Node<T>> {
        let node = self.nodes.get_mut(key.index as usize)?;
        if node.generation == key.generation && node.value.is_some() { Some(node) } else { None }
    }

    fn key_at(&self, index: u32) -> Option<Key> {
        let node = self.nodes.get(index as usize)?;
        Some(Key { index, generation: node.generation })
    }
}

/// One list over the entries of an [`Arena`].
#[derive(Clone, Debug)]
pub struct List {
    head: u32,
    tail: u32,
    len: usize,
}

impl Default for List {
    fn default() -> Self {
        List { head: NONE, tail: NONE, len: 0 }
    }
}

impl List {
    /// Entries in the list.
    pub fn len(&self) -> usize {
        self.len
    }

    /// True without entries.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The first entry.
    pub fn front<T>(&self, arena: &Arena<T>) -> Option<Key> {
        arena.key_at(self.head)
    }

    /// The entry after `key`.
    pub fn after<T>(&self, arena: &Arena<T>, key: Key) -> Option<Key> {
        arena.nodes.get(key.index as usize).and_then(|node| arena.key_at(node.next))
    }

    /// Puts an entry at the end.
    pub fn push_back<T>(&mut self, arena: &mut Arena<T>, key: Key) {
        self.link(arena, key, self.tail, NONE);
    }

    /// Puts an entry before another, or at the end with `None`.
    pub fn insert_before<T>(&mut self, arena: &mut Arena<T>, key: Key, other: Option<Key>) {
        match other {
            Some(other) => {
                let prev = arena.nodes[other.index as usize].prev;
                self.link(arena, key, prev, other.index);
            }
            None => self.push_back(arena, key),
        }
    }

    /// Takes the first entry out of the list; it stays in the arena.
    pub fn pop_front<T>(&mut self, arena: &mut Arena<T>) -> Option<Key> {
        let key = self.front(arena)?;
        self.unlink(arena, key);
        Some(key)
    }

    /// Takes an entry out of the list; it stays in the arena.
    pub fn unlink<T>(&mut self, arena: &mut Arena<T>, key: Key) {
        let Some(node) = arena.node_mut(key) else { return };
        debug_assert!(node.linked, "an entry is unlinked once");
        let (prev, next) = (node.prev, node.next);
        (node.prev, node.next, node.linked) = (NONE, NONE, false);
        match prev {
            NONE => self.head = next,
            at => arena.nodes[at as usize].next = next,
        }
        match next {
            NONE => self.tail = prev,
            at => arena.nodes[at as usize].prev = prev,
        }
        self.len -= 1;
    }

    fn link<T>(&mut self, arena: &mut Arena<T>, key: Key, prev: u32, next: u32) {
        let Some(node) = arena.node_mut(key) else { return };
        debug_assert!(!node.linked, "an entry stands in one list at most");
        (node.prev, node.next, node.linked) = (prev, next, true);
        match prev {
            NONE => self.head = key.index,
            at => arena.nodes[at as usize].next = key.index,
        }
        match next {
            NONE => self.tail = key.index,
            at => arena.nodes[at as usize].prev = key.index,
        }
        self.len += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drain(list: &mut List, arena: &mut Arena<u32>) -> Vec<u32> {
        std::iter::from_fn(|| list.pop_front(arena).and_then(|key| arena.remove(key))).collect()
    }

    #[test]
    fn entries_leave_in_the_order_in_which_they_came() {
        let (mut arena, mut list) = (Arena::default(), List::default());
        for n in 0..5 {
            let key = arena.insert(n);
            list.push_back(&mut arena, key);
        }
        assert_eq!(drain(&mut list, &mut arena), [0, 1, 2, 3, 4]);
        assert!(list.is_empty() && arena.is_empty());
    }

    #[test]
    fn an_entry_can_leave_from_any_place_and_its_key_goes_stale() {
        let (mut arena, mut list) = (Arena::default(), List::default());
        let keys: Vec<Key> = (0..5)
            .map(|n| {
                let key = arena.insert(n);
                list.push_back(&mut arena, key);
                key
            })
            .collect();
        for key in [keys[2], keys[0], keys[4]] {
            list.unlink(&mut arena, key);
            assert!(arena.remove(key).is_some());
            assert!(arena.remove(key).is_none());
            assert!(arena.get(key).is_none());
        }
        let again = arena.insert(9);
        list.insert_before(&mut arena, again, Some(keys[1]));
        assert_eq!(drain(&mut list, &mut arena), [9, 1, 3]);
    }

    #[test]
    fn a_table_that_a_burst_grew_is_given_back_and_old_keys_stay_stale() {
        let mut arena = Arena::default();
        let keys: Vec<Key> = (0..5000).map(|n| arena.insert(n)).collect();
        for key in &keys {
            arena.remove(*key);
        }
        assert!(arena.nodes.len() < 10);
        let fresh: Vec<Key> = (0..5000).map(|n| arena.insert(n)).collect();
        assert!(keys.iter().all(|key| arena.get(*key).is_none()));
        assert!(keys.iter().zip(&fresh).all(|(old, new)| old != new));
    }
}
