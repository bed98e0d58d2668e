//! Pages of names and the manifest, as they are after the seal is off.

use fleetcast_core::batch::SeriesName;
use fleetcast_core::manifest::Manifest;
use fleetcast_core::names::{NameReader, encode_field, encode_series};

use super::Target;

pub(super) const TARGET: Target = Target {
    name: "names",
    seeds,
    words: &[b"\x00", b"\x01", b"\x7f", b"\xff\xff\xff\xff\x0f", b"link", b"entity_id"],
    memory_bytes_max: 4 << 20,
    run,
};

fn seeds() -> Vec<Vec<u8>> {
    let tag = |key: &str, value: &str| (key.to_owned(), value.to_owned());
    let series = SeriesName {
        measurement: "link".to_owned(),
        tags: vec![tag("entity_id", "é"), tag("site", "")],
    };
    vec![encode_series(&series), encode_field("link", "snr_db"), Manifest::default().encode()]
}

fn run(bytes: &[u8]) {
    let mut names = NameReader::new(bytes);
    while !names.is_empty() {
        let Ok(name) = names.series() else { break };
        let again = encode_series(&name);
        assert_eq!(NameReader::new(&again).series().ok(), Some(name));
    }
    let mut fields = NameReader::new(bytes);
    while !fields.is_empty() {
        let Ok((measurement, field)) = fields.field() else { break };
        let again = encode_field(&measurement, &field);
        assert_eq!(NameReader::new(&again).field().ok(), Some((measurement, field)));
    }
    if let Ok(manifest) = Manifest::decode(bytes) {
        let again = Manifest::decode(&manifest.encode()).expect("what was encoded can be decoded");
        assert_eq!(again.encode(), manifest.encode());
    }
}
