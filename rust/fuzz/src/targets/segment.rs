//! Segment files: the frame around the index, and the index itself.
//!
//! An input that begins with an odd byte is a whole file. Any other input is the content of the
//! sealed index, in a file with a valid frame.

use fleetcast_core::codec::Effort;
use fleetcast_core::model::catalog::Catalog;
use fleetcast_core::storage::seal::{DataKey, Sealer};
use fleetcast_core::storage::segment::{Representatives, Segment, SegmentPart, SegmentWriter};
use fleetcast_core::storage::store::{MemoryStore, SegmentId, Store};

use super::target::Target;

pub(super) const TARGET: Target = Target {
    name: "segment",
    seeds,
    words: &[b"\x00", b"\x01", b"\x7f", b"\xff\xff\xff\xff\x0f"],
    memory_bytes_max: 16 << 20,
    cost: None,
    run,
};

const ID: SegmentId = [9; 16];
const TAIL_BYTES: usize = 8;
const BODY_BYTES_MAX: usize = 4_096;

fn sealer() -> Sealer {
    Sealer::new(&DataKey::from_bytes(&[1; 32]), [7; 16])
}

/// Returns a segment without rows, as the writer makes it, under the id of this target.
fn empty_file() -> Vec<u8> {
    let store = MemoryStore::default();
    let representatives = Representatives::new(&Catalog::default());
    let writer =
        SegmentWriter::begin(&store, &sealer(), &representatives, 0, Effort::High).expect("memory");
    let written = writer.finish().expect("memory");
    let length = usize::try_from(written.bytes).expect("small");
    store.read_segment(&written.id, 0, length).expect("just written")
}

/// Returns the head of a file under the id of this target: the bytes before the id, and the id.
fn head() -> Vec<u8> {
    let file = empty_file();
    let index_len =
        u32::from_le_bytes(file[file.len() - TAIL_BYTES..][..4].try_into().expect("four bytes"));
    let head_len = file.len() - TAIL_BYTES - index_len as usize;
    [&file[..head_len - ID.len()], &ID].concat()
}

fn framed(plain_index: &[u8], body_len: usize) -> Vec<u8> {
    let head = head();
    let index = sealer().segment(&ID).seal(0, plain_index.to_vec());
    let length = u32::try_from(index.len()).expect("small").to_le_bytes();
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&head);
    hasher.update(&index);
    hasher.update(&length);
    let checksum = hasher.finalize().to_le_bytes();
    [head, vec![0; body_len], index, length.to_vec(), checksum.to_vec()].concat()
}

fn seeds() -> Vec<Vec<u8>> {
    // No block, and a block of twenty bytes: see `docs/format.md`, "Segments".
    let whole = [vec![1], framed(&[1, 0], 0)].concat();
    vec![whole, vec![0, 0, 0, 1, 0], vec![0, 20, 0, 1, 1], vec![0, 64, 0, 1, 2, 3, 4, 5, 6, 7, 8]]
}

fn run(input: &[u8]) {
    let file = match input {
        [kind, file @ ..] if kind % 2 == 1 => file.to_vec(),
        [_, low, high, index @ ..] => {
            let body_len = usize::from(u16::from_le_bytes([*low, *high])) % BODY_BYTES_MAX;
            framed(index, body_len)
        }
        _ => return,
    };
    let store = MemoryStore::default();
    let mut writing = store.create_segment(&ID).expect("memory");
    writing.append(&file).expect("memory");
    writing.finish().expect("memory");
    let Ok(segment) = Segment::open(&store, &sealer(), &ID, file.len() as u64) else { return };
    for at in 0..segment.blocks().len() {
        for part in [SegmentPart::Block(at), SegmentPart::Statistics(at)] {
            assert!(segment.read(&store, part).is_err(), "forged");
        }
    }
}
