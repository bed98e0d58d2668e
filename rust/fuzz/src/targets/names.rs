//! Pages of names and the manifest after the seal is removed.

use fleetcast_core::model::names::SeriesName;
use fleetcast_core::model::names::{NameReader, pack, put_field, unpack};
use fleetcast_core::storage::manifest::Manifest;

use super::target::Target;

pub(super) const TARGET: Target = Target {
    name: "names",
    seeds,
    words: &[b"\x00", b"\x01", b"\x7f", b"\xff\xff\xff\xff\x0f", b"link", b"entity_id"],
    memory_bytes_max: 4 << 20,
    cost: None,
    run,
};

fn seeds() -> Vec<Vec<u8>> {
    let series = SeriesName::new("link", &[("entity_id", "é"), ("site", "")]);
    let mut fields = Vec::new();
    put_field(&mut fields, Some("link"), "snr_db");
    put_field(&mut fields, None, "note");
    let remote = series.clone().of_remote_write("instance");
    let names = [series, remote].map(|name| name.view().as_bytes().to_vec());
    let packed = pack(&names[0].repeat(9)).into_owned();
    [&names[..], &[packed, fields, Manifest::default().encode()]].concat()
}

fn run(bytes: &[u8]) {
    // Names begin with the length of a measurement, which is never that of the mark of a packed page.
    if let Ok(page) = unpack(bytes.to_vec())
        && !page.starts_with(&[0xff; 4])
    {
        assert_eq!(unpack(pack(&page).into_owned()).ok(), Some(page));
    }
    let mut names = NameReader::new(bytes);
    while !names.is_empty() {
        let Ok(name) = names.series() else { break };
        let tags: Vec<_> = name.tags().collect();
        let mut again = SeriesName::new(name.measurement(), &tags);
        if let Some(entity) = name.remote_entity() {
            again = again.of_remote_write(entity);
        }
        assert_eq!(again.view(), name);
    }
    let mut fields = NameReader::new(bytes);
    while !fields.is_empty() {
        let Ok((measurement, field)) = fields.field() else { break };
        let mut again = Vec::new();
        put_field(&mut again, measurement, field);
        assert_eq!(NameReader::new(&again).field().ok(), Some((measurement, field)));
    }
    if let Ok(manifest) = Manifest::decode(bytes) {
        let again = Manifest::decode(&manifest.encode()).expect("what was encoded can be decoded");
        assert_eq!(again.encode(), manifest.encode());
    }
}
