//! Sealed bytes open under their key only, and damage shows.

use super::*;
use crate::model::error::Error;

const PLANE: [u8; 16] = [7; 16];
const PLAIN: &[u8] = b"names of a fleet and where it is";

fn sealer() -> Sealer {
    Sealer::new(&DataKey::from_bytes(&[1; 32]), PLANE)
}

/// Returns every prefix, every longer text, and the bytes with each single bit flipped.
fn damaged(bytes: &[u8]) -> impl Iterator<Item = Vec<u8>> {
    let cut = (0..bytes.len()).map(|len| bytes[..len].to_vec());
    let flipped = (0..bytes.len() * 8).map(|bit| {
        let mut bytes = bytes.to_vec();
        bytes[bit / 8] ^= 1 << (bit % 8);
        bytes
    });
    cut.chain(flipped).chain([[bytes, &[0]].concat()])
}

#[test]
fn what_was_sealed_comes_back() {
    for plain in [PLAIN, &[], &vec![0; 100_000]] {
        let sealed = sealer().seal(BlobKind::LogBlock, plain).unwrap();
        assert_eq!(sealed.len(), plain.len() + SEAL_OVERHEAD);
        assert_eq!(sealer().open(BlobKind::LogBlock, &sealed).unwrap(), plain);
    }
}

#[test]
fn nothing_shows_and_nothing_repeats() {
    let first = sealer().seal(BlobKind::Names, PLAIN).unwrap();
    let second = sealer().seal(BlobKind::Names, PLAIN).unwrap();
    assert!(!first.windows(4).any(|window| PLAIN.windows(4).any(|plain| plain == window)));
    assert_ne!(first[2..18], second[2..18]);
    assert_ne!(first[18..], second[18..]);
}

#[test]
fn any_damage_is_noticed() {
    let sealed = sealer().seal(BlobKind::LogBlock, PLAIN).unwrap();
    for damaged in damaged(&sealed) {
        let error = sealer().open(BlobKind::LogBlock, &damaged).unwrap_err();
        assert!(matches!(error, Error::Corrupt { what: "a sealed log block" }));
    }
}

#[test]
fn another_key_plane_or_kind_opens_nothing() {
    let sealed = sealer().seal(BlobKind::LogBlock, PLAIN).unwrap();
    let other_key = Sealer::new(&DataKey::from_bytes(&[3; 32]), PLANE);
    let other_plane = Sealer::new(&DataKey::from_bytes(&[1; 32]), [8; 16]);
    assert!(other_key.open(BlobKind::LogBlock, &sealed).is_err());
    assert!(other_plane.open(BlobKind::LogBlock, &sealed).is_err());
    assert!(sealer().open(BlobKind::Names, &sealed).is_err());
    // A blob with its kind changed does not open as the other kind.
    let mut renamed = sealed;
    renamed[1] = BlobKind::Names as u8;
    assert!(sealer().open(BlobKind::Names, &renamed).is_err());
}

#[test]
fn name_hashes_depend_on_key_and_name_and_on_nothing_else() {
    let hash = sealer().name_hash(b"link");
    assert_eq!(hash, sealer().name_hash(b"link"));
    assert_ne!(hash, sealer().name_hash(b"lin"));
    let other = Sealer::new(&DataKey::from_bytes(&[3; 32]), PLANE);
    assert_ne!(hash, other.name_hash(b"link"));
}

#[test]
fn a_key_file_gives_its_key_to_the_master_key_only() {
    let data_key = DataKey::random().unwrap();
    let key_file = wrap(&[2; 32], "plane", &PLANE, &data_key.clone().into()).unwrap();
    let (plane_id, unwrapped) = unwrap(&[2; 32], "plane", &key_file).unwrap();
    assert_eq!(plane_id, PLANE);
    assert_eq!(unwrapped.keys, [(0, data_key.clone())]);
    assert!(unwrap(&[4; 32], "plane", &key_file).is_err());
    assert!(unwrap(&[2; 32], "other", &key_file).is_err());
    assert_eq!(format!("{data_key:?}"), "DataKey(..)");
}

#[test]
fn any_damage_of_a_key_file_is_noticed() {
    let key_file = wrap(&[2; 32], "plane", &PLANE, &DataKey::from_bytes(&[1; 32]).into()).unwrap();
    assert_eq!(key_file.len(), 8 + 1 + 16 + 32 + SEAL_OVERHEAD);
    for damaged in damaged(&key_file) {
        let error = unwrap(&[2; 32], "plane", &damaged).unwrap_err();
        assert!(matches!(error, Error::Corrupt { what: "the key file" }));
    }
}

/// Returns the keys of the three steps of a turn, and before them the first key.
fn steps_of_a_turn(first: DataKeys) -> [DataKeys; 4] {
    let known = with_new_key(first.clone(), &PLANE).unwrap();
    let sealing = known.clone().turned();
    [first, known, sealing.clone(), sealing.without_old()]
}

#[test]
fn each_step_of_a_turn_opens_what_the_step_before_sealed() {
    let mut keys: DataKeys = DataKey::from_bytes(&[1; 32]).into();
    // The third key takes the slot that the first key left.
    for turn in 0..3_u8 {
        let steps = steps_of_a_turn(keys);
        let slots = steps.each_ref().map(DataKeys::sealing);
        let (old, new) = (turn % 2, 1 - turn % 2);
        assert_eq!(slots, [old, old, new, new]);
        assert_eq!(steps.each_ref().map(DataKeys::old), [None, None, Some(old), None]);
        for pair in steps.windows(2).take(2) {
            let [before, after] = [0, 1].map(|at| Sealer::of(&pair[at], PLANE));
            let sealed = before.seal(BlobKind::LogBlock, PLAIN).unwrap();
            assert_eq!(after.open(BlobKind::LogBlock, &sealed).unwrap(), PLAIN);
            let part = before.segment(&[5; 16]).seal(1, PLAIN.to_vec());
            let segment = after.segment_of(pair[0].sealing(), &[5; 16]).unwrap();
            assert_eq!(segment.open(1, part).unwrap(), PLAIN);
        }
        let [first, _, sealing, dropped] = steps.each_ref().map(|keys| Sealer::of(keys, PLANE));
        let sealed = sealing.seal(BlobKind::LogBlock, PLAIN).unwrap();
        assert_eq!(blob_slot(&sealed), Some(new));
        assert_eq!(dropped.open(BlobKind::LogBlock, &sealed).unwrap(), PLAIN);
        let old_blob = first.seal(BlobKind::LogBlock, PLAIN).unwrap();
        assert!(dropped.open(BlobKind::LogBlock, &old_blob).is_err(), "its key is gone");
        assert!(dropped.segment_of(old, &[5; 16]).is_none());
        // Names are found by the same hash for ever.
        assert_eq!(first.name_hash(b"link"), dropped.name_hash(b"link"));
        let [.., last] = steps;
        keys = last;
    }
}

#[test]
fn a_blob_under_another_key_does_not_pass_for_its_own() {
    let [_, _, keys, _] = steps_of_a_turn(DataKey::from_bytes(&[1; 32]).into());
    let sealer = Sealer::of(&keys, PLANE);
    let mut sealed = sealer.seal(BlobKind::LogBlock, PLAIN).unwrap();
    sealed[0] -= 1;
    assert!(sealer.open(BlobKind::LogBlock, &sealed).is_err());
}

#[test]
fn a_key_file_keeps_the_keys_of_every_step() {
    for keys in steps_of_a_turn(DataKey::from_bytes(&[1; 32]).into()) {
        let key_file = wrap(&[2; 32], "plane", &PLANE, &keys).unwrap();
        let (_, found) = unwrap(&[2; 32], "plane", &key_file).unwrap();
        assert!(found.keys == keys.keys && found.sealing() == keys.sealing());
        let [of_file, of_keys] = [&found, &keys].map(|keys| Sealer::of(keys, PLANE));
        assert_eq!(of_file.name_hash(b"link"), of_keys.name_hash(b"link"));
        for damaged in damaged(&key_file) {
            assert!(unwrap(&[2; 32], "plane", &damaged).is_err());
        }
    }
}
