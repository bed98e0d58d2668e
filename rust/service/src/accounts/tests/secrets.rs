//! Texts of secrets in their grammar, and their hashes.

use std::collections::HashSet;

use crate::accounts::{SecretHasher, SecretKind, SecretText, new_secret_text, read_hash};

const KINDS: [SecretKind; 3] = [SecretKind::Key, SecretKind::Token, SecretKind::Session];
const ID: &str = "abcdefghijklmnop";
const SECRET: &str = "abcdefghijklmnopabcdefghijklmnop";

fn with_checksum(text: &str) -> String {
    format!("{text}{:08x}", crc32fast::hash(text.as_bytes()))
}

fn environment(kind: SecretKind) -> &'static str {
    if kind == SecretKind::Key { "gov-development" } else { "" }
}

#[test]
fn a_text_is_read_as_it_was_made_and_by_its_own_kind_alone() {
    for kind in KINDS {
        let text = new_secret_text(kind, environment(kind)).unwrap();
        let read = SecretText::read(kind, &text).unwrap();
        assert_eq!((read.id.len(), read.secret.len()), (16, 32));
        assert_eq!(read.environment, environment(kind));
        for other in KINDS.into_iter().filter(|other| *other != kind) {
            assert!(SecretText::read(other, &text).is_none(), "{text} as {other:?}");
        }
    }
}

#[test]
fn no_two_texts_have_an_id_or_a_secret_in_common() {
    let mut parts = HashSet::new();
    for _ in 0..100 {
        let text = new_secret_text(SecretKind::Session, "").unwrap();
        parts.extend(text.split('.').map(str::to_owned));
    }
    assert_eq!(parts.len(), 200);
}

#[test]
fn a_mistyped_character_is_noticed() {
    for kind in [SecretKind::Key, SecretKind::Token] {
        let text = new_secret_text(kind, environment(kind)).unwrap();
        for at in 0..text.len() {
            let other = if text.as_bytes()[at] == b'a' { "b" } else { "a" };
            let mistyped = format!("{}{other}{}", &text[..at], &text[at + 1..]);
            assert!(SecretText::read(kind, &mistyped).is_none(), "{mistyped}");
        }
    }
}

/// A23, to the letter.
#[test]
fn other_texts_are_none() {
    let text = with_checksum(&format!("ftk_sandbox_{ID}_{SECRET}"));
    assert!(SecretText::read(SecretKind::Key, &text).is_some());
    for other in [
        String::new(),
        "ftk_".to_owned(),
        text[..text.len() - 1].to_owned(),
        format!("{text} "),
        format!("{text}\n"),
        format!("{text},{text}"),
        text.to_uppercase(),
        with_checksum(&format!("ftk_{ID}_{SECRET}")),
        with_checksum(&format!("ftk__{ID}_{SECRET}")),
        with_checksum(&format!("ftk_{}_{ID}_{SECRET}", "a".repeat(64))),
        with_checksum(&format!("ftk_san.box_{ID}_{SECRET}")),
        with_checksum(&format!("ftk_sandbox_{}_{SECRET}", &ID[1..])),
        with_checksum(&format!("ftk_sandbox_{ID}_{}1", &SECRET[1..])),
        with_checksum(&format!("ftk_sandbox_{ID}_{SECRET}_")),
        with_checksum(&format!("fto_sandbox_{ID}_{SECRET}")),
        with_checksum(&format!("fto__{ID}_{SECRET}")),
        with_checksum(&format!("ftk_sandböx_{ID}_{SECRET}")),
        format!("{ID}.{SECRET}."),
        format!("{ID}.{}", &SECRET[1..]),
        format!("{ID}.{}", SECRET.to_uppercase()),
    ] {
        for kind in KINDS {
            assert!(SecretText::read(kind, &other).is_none(), "{other} as {kind:?}");
        }
    }
}

/// The second test case of RFC 4231.
#[test]
fn secrets_are_kept_as_hmac_sha256() {
    let hash = SecretHasher::new(b"Jefe").hash("what do ya want for nothing?");
    assert_eq!(hash, "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
}

#[test]
fn a_hash_proves_its_secret_alone() {
    let hasher = SecretHasher::new(b"pepper");
    let kept = read_hash(&hasher.hash(SECRET));
    assert!(hasher.proves(SECRET, kept.as_ref()));
    assert!(!hasher.proves(ID, kept.as_ref()));
    assert!(!hasher.proves(SECRET, None));
    assert!(!SecretHasher::new(b"salt").proves(SECRET, kept.as_ref()));
    for other in ["", "00", &"g".repeat(64), &"0".repeat(65)] {
        assert_eq!(read_hash(other), None, "{other}");
    }
}
