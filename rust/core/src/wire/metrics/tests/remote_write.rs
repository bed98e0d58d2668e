use super::*;
use crate::wire::ParseContext;

/// Seconds before now of a sample, and its value.
type Sample = (i64, f64);

const STALE: f64 = f64::from_bits(0x7ff0_0000_0000_0002);

fn label(name: &str, value: &str) -> Vec<u8> {
    message(1, [message(1, name), message(2, value)].concat())
}

fn sample(&(age, value): &Sample) -> Vec<u8> {
    let time_ms = (NOW_NS - age * SECOND_NS) / 1_000_000;
    message(2, [double(1, value), varint(2, time_ms.cast_unsigned())].concat())
}

fn series(labels: &[(&str, &str)], samples: &[Sample]) -> Vec<u8> {
    let labels = labels.iter().flat_map(|(name, value)| label(name, value));
    message(1, labels.chain(samples.iter().flat_map(sample)).collect::<Vec<_>>())
}

fn parse(body: &[u8]) -> ParseResult {
    read(Protocol::RemoteWrite, body)
}

#[test]
fn values_of_one_set_of_labels_and_time_are_a_row() {
    let node = |name| [("__name__", name), ("instance", "a"), ("job", "n")];
    let body = [
        series(&node("load"), &[(20, 1.0), (10, 2.0)]),
        series(&node("heat"), &[(10, 3.0)]),
        series(&[("__name__", "load"), ("instance", "b")], &[(10, 4.0)]),
    ];
    let batch = parse(&body.concat()).unwrap();
    assert_eq!(
        rows(&batch),
        [
            "telemetry,entity_id=a,job=n load=1 -20",
            "telemetry,entity_id=a,job=n load=2,heat=3 -10",
            "telemetry,entity_id=b load=4 -10"
        ]
    );
    assert_eq!((batch.accepted_count, batch.rejected_indices), (3, vec![]));
}

#[test]
fn a_rule_is_found_by_the_name_of_the_metric() {
    let labels = |name| [("__name__", name), ("instance", "a"), ("job", "n")];
    let body = [series(&labels("up"), &[(0, 1.0)]), series(&labels("down"), &[(0, 2.0)])];
    assert_eq!(
        rows(&parse(&body.concat()).unwrap()),
        ["link,entity_id=n,instance=a is_up=1 -0", "link,entity_id=a,job=n down=2 -0"]
    );
}

#[test]
fn labels_and_samples_may_come_in_any_order() {
    let parts = [
        sample(&(5, 1.0)),
        label("instance", "a"),
        label("__name__", "load"),
        sample(&(4, 2.0)),
        label("job", "n"),
        message(9, "unknown"),
    ];
    let batch = parse(&message(1, parts.concat())).unwrap();
    assert_eq!(
        rows(&batch),
        ["telemetry,entity_id=a,job=n load=1 -5", "telemetry,entity_id=a,job=n load=2 -4"]
    );
}

#[test]
fn of_two_values_of_one_series_and_time_the_last_counts() {
    let labels = [("__name__", "load"), ("instance", "a")];
    let body = [series(&labels, &[(1, 1.0), (1, 2.0)]), series(&labels, &[(1, 3.0)])];
    assert_eq!(rows(&parse(&body.concat()).unwrap()), ["telemetry,entity_id=a load=3 -1"]);
}

#[test]
fn labels_in_another_order_are_the_same_series() {
    let (load, a, job) = (("__name__", "load"), ("instance", "a"), ("job", "n"));
    let body = [
        series(&[load, a, job], &[(1, 1.0)]),
        series(&[job, a, load], &[(1, 2.0)]),
        series(&[load, a, job], &[(1, 3.0), (2, 4.0)]),
    ];
    assert_eq!(
        rows(&parse(&body.concat()).unwrap()),
        ["telemetry,entity_id=a,job=n load=4 -2", "telemetry,entity_id=a,job=n load=3 -1"]
    );
}

#[test]
fn values_that_are_no_number_are_left_out_without_a_word() {
    let labels = [("__name__", "load"), ("instance", "a")];
    let samples = [(4, STALE), (3, f64::NAN), (2, f64::INFINITY), (1, 7.0)];
    let batch = parse(&series(&labels, &samples)).unwrap();
    assert_eq!(rows(&batch), ["telemetry,entity_id=a load=7 -1"]);
    assert_eq!((batch.rejected_indices, batch.dropped), (vec![0, 1, 2], vec![]));
    let histogram = message(1, [label("__name__", "load"), message(4, [])].concat());
    let batch = parse(&histogram).unwrap();
    assert_eq!((batch.rejected_indices, batch.dropped), (vec![0], vec![]));
}

#[test]
fn a_fault_rejects_its_sample_alone_and_says_of_which_series() {
    let named = |name| [("__name__", name), ("instance", "a")];
    let many: Vec<_> = ["a", "b", "c", "d", "e"].map(|name| (name, "")).into();
    let many = [&[("__name__", "load")][..], &many].concat();
    let body = [
        series(&named("load"), &[(1, 1.0), (NOW_NS / SECOND_NS, 2.0)]),
        series(&[("instance", "a")], &[(1, 1.0)]),
        series(&named("text"), &[(1, 1.0)]),
        series(&many, &[(1, 1.0)]),
        series(&named(""), &[(1, 1.0)]),
    ];
    let batch = parse(&body.concat()).unwrap();
    assert_eq!(rows(&batch), ["telemetry,entity_id=a load=1 -1"]);
    assert_eq!(
        dropped(&batch),
        [
            "1.timestamp time_too_early",
            "2.__name__ missing",
            "3.__name__ field_type_conflict",
            "4.__name__ tags_invalid",
            "5.__name__ string_too_short"
        ]
    );
    assert_eq!(batch.rejected_indices, [1, 2, 3, 4, 5]);
}

#[test]
fn more_samples_than_allowed_are_refused_whole() {
    let labels = [("__name__", "load"), ("instance", "a")];
    let samples: Vec<_> = (0..7).map(|age| (age, 1.0)).collect();
    let refused = parse(&series(&labels, &samples));
    assert_eq!(refused, Err(BatchRefusal::TooManyRecords { received: 7, max: 6 }));
}

#[test]
fn more_fields_than_a_record_may_have_are_more_rows() {
    let named: Vec<_> = (0..6).map(|number| format!("m{number}")).collect();
    let body = named.iter().flat_map(|name| series(&[("__name__", name)], &[(1, 1.0)]));
    let body: Vec<u8> = body.collect();
    let limits = WriteLimits { fields_max: 4, ..LIMITS };
    let adapter = Adapter { mapping: &mapping(), catalog: &Catalog::default() };
    let names = RawKeyCache::default();
    let batch = Protocol::RemoteWrite.parse(
        &body,
        adapter,
        ParseContext::new(&names, &limits, "acme", NOW_NS),
    );
    let batch = batch.unwrap();
    assert_eq!(rows(&batch), ["telemetry, m0=1,m1=1,m2=1,m3=1 -1", "telemetry, m4=1,m5=1 -1"]);
}

#[test]
fn what_is_no_message_is_refused() {
    let sound = series(&[("__name__", "load"), ("instance", "a")], &[(1, 1.0)]);
    for end in 1..sound.len() {
        assert!(is_malformed(&parse(&sound[..end])), "{end}");
    }
    let no_text = message(1, [message(1, message(1, b"\xff")), sample(&(1, 1.0))].concat());
    assert!(is_malformed(&parse(&no_text)));
    assert_eq!(rows(&parse(&[]).unwrap()), [""; 0]);
    assert_eq!(rows(&parse(&message(3, "metadata")).unwrap()), [""; 0]);
}
