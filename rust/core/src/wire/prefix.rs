//! Text that probably comes next.

/// Bytes to compare with the beginning of a text, fast where they are few.
#[derive(Default, PartialEq)]
pub(super) struct Prefix {
    /// The first sixteen bytes, and which bits of them count.
    start: u128,
    mask: u128,
    /// All of them.
    bytes: Box<[u8]>,
}

impl Prefix {
    pub(super) fn new(bytes: &[u8]) -> Self {
        let start = std::array::from_fn(|at| bytes.get(at).copied().unwrap_or(0));
        let mask = std::array::from_fn(|at| if at < bytes.len() { 0xff } else { 0 });
        Self {
            start: u128::from_le_bytes(start),
            mask: u128::from_le_bytes(mask),
            bytes: bytes.into(),
        }
    }

    /// The length of this prefix if `text` begins with it; 0 if not.
    #[inline]
    pub(super) fn begins(&self, text: &[u8]) -> usize {
        let begins = if let Some((chunk, rest)) = text.split_first_chunk::<16>() {
            (u128::from_le_bytes(*chunk) ^ self.start) & self.mask == 0
                && self.bytes.get(16..).is_none_or(|tail| rest.starts_with(tail))
        } else {
            text.starts_with(&self.bytes)
        };
        if begins { self.bytes.len() } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_is_found_at_every_length() {
        let text: Vec<u8> = (1..=50).collect();
        for length in 0..=40 {
            let prefix = Prefix::new(&text[..length]);
            for end in 0..=text.len() {
                assert_eq!(prefix.begins(&text[..end]), if end < length { 0 } else { length });
            }
            for changed in 0..text.len() {
                let mut text = text.clone();
                text[changed] = 0;
                assert_eq!(prefix.begins(&text), if changed < length { 0 } else { length });
            }
        }
    }
}
