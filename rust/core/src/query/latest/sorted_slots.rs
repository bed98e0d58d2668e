//! Slots in byte order of their entity ids.

/// Maximum number of slots in a part. A larger part is split in half.
const PART_SLOTS_MAX: usize = 512;

/// Minimum number of known slots per new slot for inserting new slots one by one. With fewer known
/// slots, sorting all slots is cheaper.
const SLOTS_PER_NEW: usize = 16;

/// Sorted slots in parts. An insertion then moves only the slots of one part.
#[derive(Default)]
pub(super) struct SortedSlots {
    /// Parts. No part is empty.
    parts: Vec<Vec<u32>>,
    len: u32,
}

impl SortedSlots {
    /// Adds the slots from the number of known slots up to `end`. `id` returns the entity id of a
    /// slot.
    pub(super) fn extend_to<'i, I: Ord + ?Sized + 'i>(
        &mut self,
        end: u32,
        id: impl Fn(u32) -> &'i I,
    ) {
        let known = std::mem::replace(&mut self.len, end);
        let added = known..end;
        if added.len() > known as usize / SLOTS_PER_NEW {
            let mut slots: Vec<u32> = self.iter().chain(added).collect();
            // The stable sort takes the sorted slots at the front as a single run.
            slots.sort_by_key(|slot| id(*slot));
            self.parts = slots.chunks(PART_SLOTS_MAX / 2).map(<[u32]>::to_vec).collect();
        } else {
            added.for_each(|slot| self.insert(slot, &id));
        }
    }

    fn insert<'i, I: Ord + ?Sized + 'i>(&mut self, slot: u32, id: &impl Fn(u32) -> &'i I) {
        let is_before = |other: u32| id(other) < id(slot);
        let at = self.parts.partition_point(|part| is_before(part[0])).saturating_sub(1);
        let Some(part) = self.parts.get_mut(at) else {
            self.parts.push(vec![slot]);
            return;
        };
        part.insert(part.partition_point(|other| is_before(*other)), slot);
        if part.len() > PART_SLOTS_MAX {
            let second = part.split_off(PART_SLOTS_MAX / 2);
            self.parts.insert(at + 1, second);
        }
    }

    /// Returns all slots.
    pub(super) fn iter(&self) -> impl Iterator<Item = u32> {
        self.parts.iter().flatten().copied()
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    fn ids(count: u32) -> Vec<String> {
        (0..count).map(|slot| format!("{:08x}", slot.wrapping_mul(2_654_435_761))).collect()
    }

    #[test]
    fn g4_slots_come_in_order_of_their_ids_however_they_were_added() {
        let ids = ids(5_000);
        for step in [1, 7, 400, 5_000] {
            let mut slots = SortedSlots::default();
            for end in (0..5_000).step_by(step).skip(1).chain([5_000]) {
                slots.extend_to(end, |slot| &ids[slot as usize]);
            }
            let found: Vec<&str> = slots.iter().map(|slot| &*ids[slot as usize]).collect();
            assert_eq!(found.len(), 5_000);
            assert!(found.is_sorted_by(|a, b| a < b), "{step}");
            assert!(slots.parts.iter().all(|part| (1..=PART_SLOTS_MAX).contains(&part.len())));
        }
    }

    #[test]
    fn one_more_among_many_is_compared_with_few() {
        let ids = ids(100_001);
        let mut slots = SortedSlots::default();
        slots.extend_to(100_000, |slot| &ids[slot as usize]);
        let looks = Cell::new(0);
        slots.extend_to(100_001, |slot| {
            looks.set(looks.get() + 1);
            &ids[slot as usize]
        });
        assert!(looks.get() < 64, "{}", looks.get());
    }
}
