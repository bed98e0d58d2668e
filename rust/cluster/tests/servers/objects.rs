//! Segments as objects of each kind of store, read with and without a cache.

use std::sync::Arc;

use fleetcast_cluster::{Cluster, ClusterPlanes, Settings};
use fleetcast_core::model::error::Error;
use fleetcast_core::storage::store::Planes;

use crate::database::{Database, random_name};

const BYTES: usize = 9 << 20;

/// Content of which no two pieces are alike.
fn content() -> Vec<u8> {
    (0..BYTES / 4).flat_map(|word| u32::try_from(word).unwrap().to_le_bytes()).collect()
}

fn is_read_as_it_was_written(database: &Database, settings: &Settings) {
    let plain = Arc::new(Cluster::new(settings.clone()).unwrap());
    database.installed();
    let planes = ClusterPlanes::new(plain);
    let name = random_name();
    planes.create(&name, b"wrapped", &mut |_| Ok(())).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let cache = Some((directory.path().to_owned(), 1 << 30));
    let cached = Cluster::new(Settings { cache, ..settings.clone() }).unwrap();
    let cached = ClusterPlanes::new(Arc::new(cached)).open(&name).unwrap();
    let stores = [planes.open(&name).unwrap(), cached];
    let content = content();
    for (id, length) in [([1; 16], BYTES), ([2; 16], 100)] {
        assert!(matches!(stores[0].read_segment(&id, 0, 1), Err(Error::Stale)));
        let mut segment = stores[0].create_segment(&id).unwrap();
        content[..length].chunks(1_000_003).for_each(|some| segment.append(some).unwrap());
        segment.finish().unwrap();
        stores[1].prefetch(&mut std::iter::once((id, length as u64)));
        for store in &stores {
            assert_eq!(store.segment_bytes(&id).unwrap(), length as u64);
            for (offset, count) in [(0, length), (length - 50, 50), (length / 2, 40), (length, 0)] {
                let part = store.read_segment(&id, offset as u64, count);
                if count > 0 {
                    assert!(part.unwrap() == content[offset..offset + count], "{offset} {count}");
                }
            }
            let beyond = store.read_segment(&id, length as u64 - 1, 2);
            assert!(matches!(beyond, Err(Error::Corrupt { .. })), "{beyond:?}");
        }
    }
}

#[test]
fn segments_in_a_folder_are_read_as_they_were_written() {
    let Some(database) = Database::new() else { return };
    is_read_as_it_was_written(&database, &database.settings());
}

#[test]
fn segments_in_s3_are_read_as_they_were_written() {
    let Some(database) = Database::new() else { return };
    let Some(settings) = database.with_s3() else { return };
    is_read_as_it_was_written(&database, &settings);
}

#[test]
fn objects_that_nobody_serves_are_unavailable() {
    let Some(database) = Database::new() else { return };
    let objects =
        Some("s3://fleet?endpoint=http://127.0.0.1:9&access_key=a&secret_key=secret".to_owned());
    let cluster = Arc::new(Cluster::new(Settings { objects, ..database.settings() }).unwrap());
    database.installed();
    let planes = ClusterPlanes::new(cluster);
    let name = random_name();
    planes.create(&name, b"wrapped", &mut |_| Ok(())).unwrap();
    let read = planes.open(&name).unwrap().read_segment(&[1; 16], 0, 1);
    let Err(Error::Unavailable { what }) = read else { panic!("{read:?}") };
    assert!(what.contains("object store") && !what.contains("secret"), "{what}");
}
