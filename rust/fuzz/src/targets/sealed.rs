//! Sealed blobs and key files: only sealed bytes may open.

use fleetcast_core::storage::seal::{BlobKind, DataKey, Sealer, unwrap, wrap};

use super::target::Target;

pub(super) const BLOB: Target = Target {
    name: "sealed",
    seeds: blobs,
    words: &[b"\x01", b"\x02", b"\x03", b"\x04"],
    memory_bytes_max: 1 << 20,
    cost: None,
    run: open,
};

pub(super) const KEY_FILE: Target = Target {
    name: "key_file",
    seeds: key_files,
    words: &[b"\x01", b"\x02"],
    memory_bytes_max: 1 << 20,
    cost: None,
    run: read_key_file,
};

const MASTER_KEY: [u8; 32] = [3; 32];
const PLANE: [u8; 16] = [7; 16];
const NAME: &str = "plane";
const KINDS: [BlobKind; 5] =
    [BlobKind::LogBlock, BlobKind::Names, BlobKind::Key, BlobKind::Manifest, BlobKind::Record];

fn sealer() -> Sealer {
    Sealer::new(&DataKey::from_bytes(&[1; 32]), PLANE)
}

fn plain(kind: BlobKind) -> Vec<u8> {
    format!("a {kind:?} of a fleet").into_bytes()
}

fn blobs() -> Vec<Vec<u8>> {
    KINDS.map(|kind| sealer().seal(kind, &plain(kind)).expect("random bytes")).to_vec()
}

/// A blob that opens was sealed here and as this kind: 128 bits cannot be guessed.
fn open(bytes: &[u8]) {
    let opened = KINDS.map(|kind| sealer().open(kind, bytes).ok());
    for (kind, opened) in KINDS.into_iter().zip(&opened) {
        assert!(opened.as_ref().is_none_or(|opened| *opened == plain(kind)), "forged");
    }
    assert!(opened.iter().flatten().count() <= 1, "two kinds at once");
}

fn key_files() -> Vec<Vec<u8>> {
    vec![
        wrap(&MASTER_KEY, NAME, &PLANE, &DataKey::from_bytes(&[1; 32]).into())
            .expect("random bytes"),
    ]
}

fn read_key_file(bytes: &[u8]) {
    if let Ok((plane, _)) = unwrap(&MASTER_KEY, NAME, bytes) {
        assert_eq!(plane, PLANE, "forged");
    }
}
