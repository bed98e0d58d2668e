//! Power cuts.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Write;
use std::sync::Arc;

use super::*;

/// Tests the simulated disk. A sync keeps changes. Changes without a sync are sometimes lost, in
/// whole or in part, content and name separately.
#[test]
fn only_what_was_synced_is_sure() {
    let root = scratch();
    let mut disk = calls::record(root.path(), Fault::None);
    let write = |name: &str, is_synced| {
        let mut file = File::create(root.path().join(name)).unwrap();
        file.write_all(&[7; 2_000]).unwrap();
        if is_synced {
            file.sync_all().unwrap();
        }
    };
    write("kept", true);
    File::open(root.path()).unwrap().sync_all().unwrap();
    write("nameless", true);
    write("torn", false);
    for change in &calls::stop().changes {
        disk.apply(change);
    }
    let mut dice = Dice::new(1);
    let images: Vec<Image> = (0..200).map(|_| disk.cut(&mut dice)).collect();
    let content = |image: &Image, name: &str| image.get(Path::new(name)).cloned().flatten();
    let contents =
        |name| -> BTreeSet<_> { images.iter().map(|each| content(each, name)).collect() };
    let whole = Some(Arc::new(vec![7; 2_000]));
    assert_eq!(contents("kept"), BTreeSet::from([whole.clone()]));
    assert_eq!(contents("nameless"), BTreeSet::from([None, whole.clone()]));
    let torn = contents("torn");
    assert!(torn.len() > 5 && torn.contains(&None) && torn.contains(&whole));
}

/// Acknowledged batches survive a power cut at any moment, and are whole.
#[test]
fn power_cuts() {
    let (images, crashes_each) = if is_full() { (10_200, 2) } else { (240, 1) };
    let (record, ..) = perform(&steps(if is_full() { 140 } else { 60 }), Fault::None);
    let mut dice = Dice::new(6);
    let mut tally = Tally::default();
    // Every third image is cut again while it recovers.
    let first = images * 3 / (3 + crashes_each);
    let moments = record.moments(first, &mut dice);
    let mut number = 0;
    let mut again = Dice::new(7);
    record.cuts(&moments, &mut dice, |image, expected| {
        let crashes = if number % 3 == 0 { crashes_each } else { 0 };
        number += 1;
        tally += recover(&image, &expected, crashes, &mut again);
    });
    eprintln!("power cuts during {} calls: {tally:?}", record.tape.calls);
    tally.assert_clean();
}
