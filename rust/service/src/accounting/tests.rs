use std::collections::HashSet;
use std::fs::File;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::thread;
use std::time::{Duration, UNIX_EPOCH};

use super::{AnswerStatus, Counters, Histogram, ServedRequest, new_request_id};

fn word(file: &File, index: u64) -> u64 {
    let mut bytes = [0; 8];
    file.read_exact_at(&mut bytes, 8 * index).unwrap();
    u64::from_le_bytes(bytes)
}

fn memory() -> (File, Counters) {
    let file = tempfile::tempfile().unwrap();
    file.set_len(4096).unwrap();
    let counters = Counters::map(file.as_fd(), 4096).unwrap();
    (file, counters)
}

#[test]
fn counters_are_exact_however_many_count() {
    let (file, counters) = memory();
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..1_000 {
                    counters.add(3, 2);
                    counters.add(4, 1);
                    counters.take(4, 1);
                    counters.add(512, 1); // does not exist
                }
            });
        }
    });
    assert_eq!([3, 4].map(|index| word(&file, index)), [8_000, 0]);
}

#[test]
fn a_duration_counts_in_the_first_bucket_that_holds_it() {
    let (file, counters) = memory();
    let bounds = [0.001, 0.5, 1.0].into();
    let histogram = Histogram { bounds, buckets: [1, 2, 3, 4].into(), sum: 5 };
    for milliseconds in [0, 1, 2, 500, 501, 1_000, 1_001, 60_000] {
        histogram.observe(&counters, Duration::from_millis(milliseconds));
    }
    let counts = [1, 2, 3, 4].map(|index| word(&file, index));
    assert_eq!(counts, [2, 2, 2, 2]);
    assert_eq!(word(&file, 5), (1 + 2 + 500 + 501 + 1_000 + 1_001 + 60_000) * 1_000_000);
}

#[test]
fn ids_are_hexadecimal_and_never_the_same() {
    let ids: HashSet<_> = (0..10_000).map(|_| new_request_id()).collect();
    assert_eq!(ids.len(), 10_000);
    let is_digit = |byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    assert!(ids.iter().all(|id| id.len() == 32 && id.bytes().all(is_digit)));
    let other = thread::spawn(new_request_id).join().unwrap();
    assert!(!ids.contains(&other));
}

#[test]
fn a_line_has_all_that_was_found_out() {
    let served = ServedRequest {
        request_id: "abc",
        method: "GET",
        route: "/topology",
        status: AnswerStatus::Http(200),
        error: None,
        tenant: Some("acme"),
        key_id: Some("k\"1"),
        client: "192.0.2.1",
        duration: Duration::from_micros(12_034),
        bytes_in: 7,
        bytes_out: 89,
        process: "http",
    };
    let of = |served: ServedRequest<'_>, at| String::from_utf8(served.line(at)).unwrap();
    assert_eq!(
        of(served, UNIX_EPOCH + Duration::new(1_709_251_199, 4_567)),
        concat!(
            r#"{"event":"request","request_id":"abc","method":"GET","route":"/topology","#,
            r#""status":200,"error":null,"tenant":"acme","key_id":"k\"1","client":"192.0.2.1","#,
            r#""duration_ms":12.034,"bytes_in":7,"bytes_out":89,"level":"info","#,
            r#""logger":"fleetcast.access","process":"http","#,
            r#""timestamp":"2024-02-29T23:59:59.000004Z"}"#,
            "\n"
        )
    );
    let refused = ServedRequest {
        status: AnswerStatus::Grpc("PERMISSION_DENIED"),
        error: Some("tenant_disabled"),
        tenant: None,
        duration: Duration::from_micros(5),
        ..served
    };
    let line = of(refused, UNIX_EPOCH + Duration::from_millis(1_709_251_200_999));
    assert!(
        line.contains(r#""status":"PERMISSION_DENIED","error":"tenant_disabled","tenant":null,"#)
    );
    assert!(line.contains(r#""duration_ms":0.005,"#));
    assert!(line.ends_with("\"timestamp\":\"2024-03-01T00:00:00.999000Z\"}\n"));
}
