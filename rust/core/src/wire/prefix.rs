//! Text that probably comes next.

/// Bytes per comparison.
const WINDOW: usize = 16;

/// Bytes to compare with the start of a text. Comparing a few bytes is fast.
#[derive(PartialEq)]
pub(super) struct Prefix {
    /// The first and the last bytes, and a mask of the bits that count. They overlap. If a window
    /// holds all bytes, they are equal.
    first: u128,
    last: u128,
    mask: u128,
    last_at: usize,
    /// All bytes of the prefix.
    bytes: Box<[u8]>,
}

impl Prefix {
    pub(super) fn new(bytes: &[u8]) -> Self {
        let last_at = bytes.len().saturating_sub(WINDOW);
        let window = |from: usize| {
            let byte = |at| bytes.get(from + at).copied().unwrap_or(0);
            u128::from_le_bytes(std::array::from_fn(byte))
        };
        let mask = std::array::from_fn(|at| if at < bytes.len() { 0xff } else { 0 });
        Self {
            first: window(0),
            last: window(last_at),
            mask: u128::from_le_bytes(mask),
            last_at,
            bytes: bytes.into(),
        }
    }

    pub(super) const fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns the length of this prefix if `text` begins with it.
    #[inline]
    pub(super) fn length_in(&self, text: &[u8]) -> Option<usize> {
        let begins = match text.first_chunk::<{ 2 * WINDOW }>() {
            Some(window) if self.last_at <= WINDOW => {
                let differ =
                    window_at(window, 0) ^ self.first | window_at(window, self.last_at) ^ self.last;
                differ & self.mask == 0
            }
            _ => text.starts_with(&self.bytes),
        };
        begins.then_some(self.bytes.len())
    }
}

#[inline]
fn window_at(text: &[u8; 2 * WINDOW], at: usize) -> u128 {
    let window = text.get(at..).and_then(|rest| rest.first_chunk());
    u128::from_le_bytes(*window.unwrap_or(&[0; WINDOW]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_is_found_at_every_length() {
        let text: Vec<u8> = (1..=80).collect();
        for length in 0..=40 {
            let prefix = Prefix::new(&text[..length]);
            for end in 0..=text.len() {
                assert_eq!(prefix.length_in(&text[..end]), (end >= length).then_some(length));
            }
            for changed in 0..text.len() {
                let mut text = text.clone();
                text[changed] = 0;
                assert_eq!(prefix.length_in(&text), (changed >= length).then_some(length));
            }
        }
    }
}
