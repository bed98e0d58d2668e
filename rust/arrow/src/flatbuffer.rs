//! Writes flatbuffers: tables whose children follow them, so that bytes are only appended.

/// A field of a table, in the order of its schema.
#[derive(Clone, Copy)]
pub(crate) enum Slot {
    /// The field has its default.
    Default,
    /// A byte or a boolean.
    Byte(u8),
    Short(i16),
    Int(i32),
    Long(i64),
    /// A table, a vector or a text that is appended later, at the position that [`table`] returns.
    Child,
}

impl Slot {
    const fn size(self) -> usize {
        match self {
            Self::Default => 0,
            Self::Byte(_) => 1,
            Self::Short(_) => 2,
            Self::Int(_) | Self::Child => 4,
            Self::Long(_) => 8,
        }
    }
}

/// Appends zeros until the length is a multiple of `size`.
pub(crate) fn align(out: &mut Vec<u8>, size: usize) {
    out.resize(out.len().next_multiple_of(size), 0);
}

/// Appends a table and writes its position to `holder`. Returns the positions of its children, in
/// order.
pub(crate) fn table(out: &mut Vec<u8>, holder: usize, slots: &[Slot]) -> Vec<usize> {
    align(out, 2);
    let directory = out.len();
    out.resize(directory + 4 + 2 * slots.len(), 0);
    align(out, 8);
    let start = out.len();
    point(out, holder, start);
    out.extend(int(start - directory).to_le_bytes());
    let mut children = Vec::new();
    for (index, slot) in slots.iter().enumerate() {
        if let Slot::Default = slot {
            continue;
        }
        align(out, slot.size());
        let at = out.len();
        let entry = directory + 4 + 2 * index;
        out[entry..entry + 2].copy_from_slice(&short(at - start).to_le_bytes());
        match slot {
            Slot::Default => {}
            Slot::Byte(value) => out.push(*value),
            Slot::Short(value) => out.extend(value.to_le_bytes()),
            Slot::Int(value) => out.extend(value.to_le_bytes()),
            Slot::Long(value) => out.extend(value.to_le_bytes()),
            Slot::Child => {
                children.push(at);
                out.extend([0; 4]);
            }
        }
    }
    let sizes = [short(4 + 2 * slots.len()), short(out.len() - start)];
    out[directory..directory + 4].copy_from_slice(&sizes.map(u16::to_le_bytes).concat());
    children
}

/// Appends a vector of `count` children and writes its position to `holder`. Returns the positions
/// of the children.
pub(crate) fn children(out: &mut Vec<u8>, holder: usize, count: usize) -> Vec<usize> {
    align(out, 4);
    let start = out.len();
    point(out, holder, start);
    out.extend(int(count).to_le_bytes());
    out.resize(start + 4 + 4 * count, 0);
    (0..count).map(|index| start + 4 + 4 * index).collect()
}

/// Appends a vector of pairs of numbers, which are structures in place.
pub(crate) fn pairs(out: &mut Vec<u8>, holder: usize, pairs: &[(i64, i64)]) {
    align(out, 8);
    out.extend([0; 4]); // so that the pairs behind the length are aligned
    let start = out.len();
    point(out, holder, start);
    out.extend(int(pairs.len()).to_le_bytes());
    for (first, second) in pairs {
        out.extend(first.to_le_bytes());
        out.extend(second.to_le_bytes());
    }
}

pub(crate) fn text(out: &mut Vec<u8>, holder: usize, text: &str) {
    align(out, 4);
    let start = out.len();
    point(out, holder, start);
    out.extend(int(text.len()).to_le_bytes());
    out.extend_from_slice(text.as_bytes());
    out.push(0);
}

/// Writes the way from `holder` to `target`.
fn point(out: &mut [u8], holder: usize, target: usize) {
    out[holder..holder + 4].copy_from_slice(&int(target - holder).to_le_bytes());
}

fn int(number: usize) -> u32 {
    u32::try_from(number).expect("metadata has less than 4 GiB")
}

fn short(number: usize) -> u16 {
    u16::try_from(number).expect("a table has a few fields")
}
