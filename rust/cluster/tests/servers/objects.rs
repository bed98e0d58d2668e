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

fn is_read_as_it_was_written(settings: &Settings) {
    let plain = Arc::new(Cluster::new(settings.clone()).unwrap());
    plain.install("test", b"check").unwrap();
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
    is_read_as_it_was_written(&database.settings());
}

#[test]
fn segments_in_s3_are_read_as_they_were_written() {
    let Some(database) = Database::new() else { return };
    let Some(settings) = database.with_s3() else { return };
    is_read_as_it_was_written(&settings);
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

/// A node with another bucket or prefix made its first compaction hide rows from every node.
#[test]
fn a_node_with_other_objects_neither_joins_nor_uses_them() {
    let Some(database) = Database::new() else { return };
    let own = database.installed();
    let elsewhere = tempfile::tempdir().unwrap();
    let objects = Some(format!("file://{}", elsewhere.path().display()));
    let settings = Settings { objects, ..database.settings() };
    let other = Arc::new(Cluster::new(settings.clone()).unwrap());
    let name = random_name();
    let planes = ClusterPlanes::new(Arc::clone(&own));
    planes.create(&name, b"wrapped", &mut |_| Ok(())).unwrap();
    for joined in [other.install("test", b"check").map(drop), other.check("test", &[b"check"])] {
        let Err(Error::Invalid { message }) = joined else { panic!("{joined:?}") };
        assert!(message.contains("store.objects"), "{message}");
    }
    let store = ClusterPlanes::new(other).open(&name).unwrap();
    let used = store.create_segment(&[1; 16]).map(drop);
    assert!(matches!(used, Err(Error::Unavailable { .. })), "{used:?}");
    assert!(store.segments().unwrap().is_empty(), "it is not even registered");
    // A marker that was deleted is made again where the segments are, and nowhere else.
    let mut segment = planes.open(&name).unwrap().create_segment(&[2; 16]).unwrap();
    segment.append(b"rows").unwrap();
    segment.finish().unwrap();
    std::fs::remove_file(database.objects().join("fleetcast-marker")).unwrap();
    assert!(Cluster::new(settings).unwrap().check("test", &[b"check"]).is_err());
    database.open().check("test", &[b"check"]).unwrap();
    assert!(database.objects().join("fleetcast-marker").exists());
}
