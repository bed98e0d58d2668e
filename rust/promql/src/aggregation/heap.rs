//! `topk` and `bottomk`: the largest or smallest values of a group at each step.
//!
//! Prometheus keeps of equal values those that its heap keeps, so this is the heap of Go's
//! `container/heap`.

use std::cmp::Ordering;

/// A value, and the index of its series.
pub(super) type HeapItem = (f64, usize);

/// A heap with the value on top that leaves first.
pub(super) struct Heap {
    items: Vec<HeapItem>,
    size_max: usize,
    is_largest: bool,
}

impl Heap {
    /// Makes a heap that keeps the `size_max` largest or smallest values, at least one.
    pub(super) fn new(size_max: usize, is_largest: bool) -> Self {
        Self { items: Vec::new(), size_max, is_largest }
    }

    /// Returns true if `one` leaves before `other`.
    fn leaves_first(&self, one: HeapItem, other: HeapItem) -> bool {
        one.0.is_nan() || if self.is_largest { one.0 < other.0 } else { one.0 > other.0 }
    }

    /// Adds an item, which may take the place of another item.
    pub(super) fn offer(&mut self, item: HeapItem) {
        if self.items.len() < self.size_max {
            self.push(item);
            return;
        }
        let top = self.items[0].0;
        let is_better = if self.is_largest { top < item.0 } else { top > item.0 };
        if is_better || top.is_nan() {
            self.pop();
            self.push(item);
        }
    }

    fn push(&mut self, item: HeapItem) {
        self.items.push(item);
        let mut at = self.items.len() - 1;
        while at > 0 {
            let parent = (at - 1) / 2;
            if !self.leaves_first(self.items[at], self.items[parent]) {
                break;
            }
            self.items.swap(at, parent);
            at = parent;
        }
    }

    fn pop(&mut self) {
        let last = self.items.len() - 1;
        self.items.swap(0, last);
        self.items.pop();
        let mut at = 0;
        loop {
            let mut child = 2 * at + 1;
            if child >= self.items.len() {
                return;
            }
            let right = child + 1;
            if right < self.items.len() && self.leaves_first(self.items[right], self.items[child]) {
                child = right;
            }
            if !self.leaves_first(self.items[child], self.items[at]) {
                return;
            }
            self.items.swap(at, child);
            at = child;
        }
    }

    /// Returns the items, the last to leave first.
    pub(super) fn into_sorted(self) -> Vec<HeapItem> {
        // Go sorts a dozen items by insertion: equal items stay in order, except for NaN.
        let (nan, mut items): (Vec<_>, Vec<_>) =
            self.items.into_iter().partition(|(value, _)| value.is_nan());
        items.sort_by(|(one, _), (other, _)| {
            let order = one.partial_cmp(other).unwrap_or(Ordering::Equal);
            if self.is_largest { order.reverse() } else { order }
        });
        items.extend(nan.into_iter().rev());
        items
    }
}
