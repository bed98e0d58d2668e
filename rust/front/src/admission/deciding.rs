//! The values that decide about a request.

use std::hash::Hasher;

use zeroize::Zeroizing;

/// Values that a verdict may depend on.
const VALUES_MAX: usize = 16;
const LENGTH_BYTES: usize = size_of::<u32>();
/// The length of a value that is not there, which is another thing than an empty one.
const ABSENT: u32 = u32::MAX;

/// Values in an order that is always the same; `None` for one that is not there.
#[derive(Clone, Copy)]
pub struct Deciding<'v> {
    values: [Option<&'v [u8]>; VALUES_MAX],
    count: usize,
}

impl<'v> Deciding<'v> {
    /// Takes `values` together; `None` where there are more than may decide.
    pub fn of(values: impl IntoIterator<Item = Option<&'v [u8]>>) -> Option<Self> {
        let mut all = Self { values: [None; VALUES_MAX], count: 0 };
        for value in values {
            *all.values.get_mut(all.count)? = value;
            all.count += 1;
        }
        Some(all)
    }

    fn all(&self) -> impl Iterator<Item = (u32, &'v [u8])> {
        self.values[..self.count].iter().map(|value| match value {
            // No head is as long as that.
            Some(value) => (u32::try_from(value.len()).unwrap_or(ABSENT - 1), *value),
            None => (ABSENT, &[][..]),
        })
    }

    pub(super) fn hash(&self, hasher: &mut impl Hasher) {
        for (length, value) in self.all() {
            hasher.write_u32(length);
            hasher.write(value);
        }
    }

    /// The values in one text, each behind its length, that is wiped when it is dropped.
    pub(super) fn text(&self) -> Zeroizing<Vec<u8>> {
        let size = self.all().map(|(_, value)| LENGTH_BYTES + value.len()).sum();
        let mut text = Zeroizing::new(Vec::with_capacity(size)); // of that size, or it would move
        for (length, value) in self.all() {
            text.extend_from_slice(&length.to_le_bytes());
            text.extend_from_slice(value);
        }
        text
    }

    /// Compares with such a text, in a time that depends on lengths alone.
    pub(super) fn is(&self, mut text: &[u8]) -> bool {
        let mut difference = 0;
        for (length, value) in self.all() {
            let Some((prefix, rest)) = text.split_at_checked(LENGTH_BYTES) else { return false };
            let Some((known, rest)) = rest.split_at_checked(value.len()) else { return false };
            difference |= differing(prefix, &length.to_le_bytes()) | differing(known, value);
            text = rest;
        }
        difference == 0 && text.is_empty()
    }
}

/// Bits in which two texts of one length differ.
fn differing(a: &[u8], b: &[u8]) -> u8 {
    let bits = a.iter().zip(b).fold(0, |bits, (a, b)| bits | (a ^ b));
    // Else the compiler might end the comparison with the first difference.
    std::hint::black_box(bits)
}
