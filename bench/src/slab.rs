//! Connections by number; numbers of those that have gone are used again.

/// See the module.
pub(crate) struct Slab<T> {
    entries: Vec<Option<T>>,
    free: Vec<usize>,
}

impl<T> Slab<T> {
    pub(crate) fn new() -> Slab<T> {
        Slab { entries: Vec::new(), free: Vec::new() }
    }

    pub(crate) fn add(&mut self, entry: T) -> usize {
        match self.free.pop() {
            Some(index) => {
                self.entries[index] = Some(entry);
                index
            }
            None => {
                self.entries.push(Some(entry));
                self.entries.len() - 1
            }
        }
    }

    pub(crate) fn get(&mut self, index: usize) -> Option<&mut T> {
        self.entries.get_mut(index)?.as_mut()
    }

    pub(crate) fn remove(&mut self, index: usize) -> Option<T> {
        let entry = self.entries.get_mut(index)?.take();
        if entry.is_some() {
            self.free.push(index);
        }
        entry
    }
}
