use super::*;

const GAUGE: u32 = 5;
const SUM: u32 = 7;
const HISTOGRAM: u32 = 9;

fn attribute(number: u32, name: &str, value: &[u8]) -> Vec<u8> {
    message(number, [message(1, name), message(2, value)].concat())
}

fn text(number: u32, name: &str, value: &str) -> Vec<u8> {
    attribute(number, name, &message(1, value))
}

fn time(age: i64) -> Vec<u8> {
    word(3, (NOW_NS - age * SECOND_NS).cast_unsigned())
}

fn number(age: i64, value: f64, attributes: &[(&str, &str)]) -> Vec<u8> {
    let attributes = attributes.iter().flat_map(|(name, value)| text(7, name, value));
    attributes.chain(time(age)).chain(double(4, value)).collect()
}

fn metric(name: &str, kind: u32, points: &[Vec<u8>]) -> Vec<u8> {
    let points: Vec<u8> = points.iter().flat_map(|point| message(1, point)).collect();
    message(2, [message(1, name), message(kind, points)].concat())
}

fn resource(attributes: &[Vec<u8>], metrics: &[Vec<u8>]) -> Vec<u8> {
    let resource = message(1, attributes.concat());
    message(1, [resource, message(2, metrics.concat())].concat())
}

fn of_a(metrics: &[Vec<u8>]) -> Vec<u8> {
    resource(&[text(1, "host.name", "a")], metrics)
}

fn parse(body: &[u8]) -> ParseResult {
    read(Protocol::Otlp, body)
}

#[test]
fn points_of_one_resource_attributes_and_time_are_a_row() {
    let body = of_a(&[
        metric("load", GAUGE, &[number(2, 1.5, &[]), number(1, 2.5, &[("core", "0")])]),
        metric("sent", SUM, &[[time(2), word(6, 7u64.wrapping_neg())].concat()]),
    ]);
    assert_eq!(
        rows(&parse(&body).unwrap()),
        ["telemetry,entity_id=a load=1.5,sent=-7 -2", "telemetry,core=0,entity_id=a load=2.5 -1"]
    );
}

#[test]
fn attributes_become_tags_and_those_of_a_point_go_first() {
    let attributes = [
        text(1, "service.name", "s"),
        attribute(1, "up", &varint(2, 1)),
        attribute(1, "port", &varint(3, 80u64.wrapping_neg())),
        attribute(1, "ratio", &double(4, 0.5)),
        attribute(1, "list", &message(5, [])),
        attribute(1, "none", &[]),
    ];
    let body = resource(&attributes, &[metric("load", GAUGE, &[number(1, 1.0, &[("up", "no")])])]);
    let batch = parse(&body).unwrap();
    assert_eq!(rows(&batch), ["telemetry,entity_id=s,port=-80,ratio=0.5,up=no load=1 -1"]);
}

#[test]
fn a_rule_is_found_by_the_name_of_the_metric() {
    let points = [number(1, 1.0, &[("job", "n")])];
    let body = of_a(&[metric("up", GAUGE, &points), metric("down", GAUGE, &points)]);
    assert_eq!(
        rows(&parse(&body).unwrap()),
        ["link,entity_id=n,host.name=a is_up=1 -1", "link,entity_id=a,job=n down=1 -1"]
    );
}

/// A tag of the resource may be a tag of the point in another message, and attributes have no
/// order.
#[test]
fn values_of_one_series_and_time_are_a_row_however_it_is_spelled() {
    let load = |value, attributes: &[_]| metric("load", GAUGE, &[number(1, value, attributes)]);
    let (dc, core) = (("dc", "x"), ("core", "0"));
    let number_core = attribute(7, "core", &varint(3, 0));
    let number_core = [number_core, text(7, "dc", "x"), time(1), double(4, 4.0)].concat();
    let body = [
        of_a(&[load(1.0, &[dc, core]), load(2.0, &[core, dc])]),
        resource(&[text(1, "dc", "x"), text(1, "host.name", "a")], &[load(3.0, &[core])]),
        of_a(&[metric("heat", GAUGE, &[number_core]), load(5.0, &[dc, core])]),
    ];
    assert_eq!(
        rows(&parse(&body.concat()).unwrap()),
        ["telemetry,core=0,dc=x,entity_id=a heat=4,load=5 -1"]
    );
}

#[test]
fn rules_that_lead_to_the_same_names_share_rows() {
    let series = |name| metric(name, SUM, &[number(1, 1.0, &[("entity_id", "e")])]);
    let body = of_a(&[series("up"), series("down")]);
    let batch = parse(&body).unwrap();
    assert_eq!(rows(&batch), ["link,entity_id=e,host.name=a down=1,is_up=1 -1"]);
}

#[test]
fn a_resource_may_stand_behind_its_metrics_and_come_in_parts() {
    let metrics = message(2, metric("load", GAUGE, &[number(1, 1.0, &[])]));
    let parts = [message(1, text(1, "host.name", "a")), message(1, text(1, "dc", "x"))];
    let body = message(1, [metrics, parts.concat()].concat());
    assert_eq!(rows(&parse(&body).unwrap()), ["telemetry,dc=x,entity_id=a load=1 -1"]);
}

fn histogram(counts: &[u64], bounds: &[f64]) -> Vec<u8> {
    let counts: Vec<u8> = counts.iter().flat_map(|count| count.to_le_bytes()).collect();
    let bounds: Vec<u8> = bounds.iter().flat_map(|bound| bound.to_le_bytes()).collect();
    [time(1), word(4, 6), double(5, 9.5), message(6, counts), message(7, bounds)].concat()
}

#[test]
fn a_histogram_is_its_sums_and_the_values_below_each_bound() {
    let body = of_a(&[metric("lag", HISTOGRAM, &[histogram(&[1, 2, 3], &[0.5, 2.0])])]);
    assert_eq!(
        rows(&parse(&body).unwrap()),
        ["telemetry,entity_id=a lag_bucket_0.5=1,lag_bucket_2=3,lag_count=6,lag_sum=9.5 -1"]
    );
    let unpacked = [time(1), word(6, 4), word(6, 5), word(7, 1.5f64.to_bits())].concat();
    let batch = parse(&of_a(&[metric("lag", HISTOGRAM, &[unpacked])])).unwrap();
    assert_eq!(rows(&batch), ["telemetry,entity_id=a lag_bucket_1.5=4,lag_count=0 -1"]);
}

#[test]
fn a_histogram_without_values_has_a_count_of_zero() {
    let empty = [time(1), double(5, 0.0)].concat();
    let batch = parse(&of_a(&[metric("lag", HISTOGRAM, &[empty])])).unwrap();
    assert_eq!(rows(&batch), ["telemetry,entity_id=a lag_count=0,lag_sum=0 -1"]);
}

#[test]
fn a_long_resource_is_told_apart_by_all_its_bytes() {
    let long = |end: &str| {
        let value = "v".repeat(400) + end;
        resource(&[text(1, "a", &value)], &[metric("load", GAUGE, &[number(1, 1.0, &[])])])
    };
    let batch = parse(&[long("x"), long("y"), long("x")].concat()).unwrap();
    assert_eq!((batch.new_series.len(), batch.accepted_count), (2, 2));
}

#[test]
fn o1_a_fault_repeats_64_characters_of_a_name() {
    let batch = parse(&of_a(&[metric(&"é".repeat(100), 11, &[number(1, 1.0, &[])])])).unwrap();
    let place = format!("1.{} field_value_type", "é".repeat(64));
    assert_eq!(dropped(&batch), [place]);
}

#[test]
fn o1_points_of_a_resource_with_more_tags_than_a_series_may_have_are_left_out() {
    let value = "v".repeat(65_536);
    let points = [number(1, 1.0, &[])];
    let body = resource(&[text(1, "a", &value)], &[metric("load", GAUGE, &points)]);
    let batch = parse(&body).unwrap();
    assert_eq!((rows(&batch), dropped(&batch)), (vec![], vec!["1.load tags_invalid".to_owned()]));
}

#[test]
fn attributes_of_a_long_resource_that_are_no_tags_tell_nothing_apart() {
    let long = |list: &str| {
        let attributes = [
            text(1, "host.name", "a"),
            attribute(1, "list", &message(5, list)),
            text(1, "rack", &"r".repeat(300)),
        ];
        resource(&attributes, &[metric("load", GAUGE, &[number(1, 1.0, &[])])])
    };
    let batch = parse(&[long("x"), long("y")].concat()).unwrap();
    assert_eq!(batch.new_series.len(), 1);
    let rack = "r".repeat(300);
    assert_eq!(rows(&batch), [format!("telemetry,entity_id=a,rack={rack} load=1 -1")]);
}

#[test]
fn o1_points_of_a_resource_with_more_attributes_than_a_series_may_have_tags_are_left_out() {
    let attributes: Vec<_> = (0..7_000).map(|n| text(1, &format!("k{n}"), "")).collect();
    let points = [number(1, 1.0, &[]), number(2, 1.0, &[])];
    let batch = parse(&resource(&attributes, &[metric("load", GAUGE, &points)])).unwrap();
    assert_eq!(rows(&batch), Vec::<String>::new());
    assert_eq!(dropped(&batch), ["1.load tags_invalid", "2.load tags_invalid"]);
}

#[test]
fn values_left_out_are_named_by_number_and_its_metric() {
    let sound = || number(1, 1.0, &[]);
    let body = of_a(&[
        metric("load", GAUGE, &[sound(), number(2, f64::NAN, &[])]),
        metric("pow", 10, &[sound()]),
        metric("quantiles", 11, &[sound()]),
        metric("old", SUM, &[number(NOW_NS / SECOND_NS, 1.0, &[])]),
        metric("text", SUM, &[sound()]),
    ]);
    let batch = parse(&body).unwrap();
    assert_eq!(rows(&batch), ["telemetry,entity_id=a load=1 -1"]);
    assert_eq!(
        dropped(&batch),
        [
            "2.load finite_number",
            "3.pow field_value_type",
            "4.quantiles field_value_type",
            "5.old time_too_early",
            "6.text field_type_conflict"
        ]
    );
    let wide = histogram(&[0; 6], &[0.0, 1.0, 2.0, 3.0, 4.0]);
    let batch = parse(&of_a(&[metric("lag", HISTOGRAM, &[wide])])).unwrap();
    assert_eq!(dropped(&batch), ["1.lag fields_invalid"]);
    let nameless = parse(&of_a(&[metric("", GAUGE, &[sound()])])).unwrap();
    assert_eq!(dropped(&nameless), ["1 string_too_short"]);
}

#[test]
fn nothing_is_stored_of_a_point_with_a_faulty_part() {
    let faulty = [histogram(&[1], &[1.0]), double(12, f64::INFINITY)].concat();
    let batch = parse(&of_a(&[metric("lag", HISTOGRAM, &[faulty])])).unwrap();
    assert_eq!((rows(&batch), dropped(&batch)), (vec![], vec!["1.lag finite_number".to_owned()]));
}

#[test]
fn points_without_a_recorded_value_are_passed_over() {
    let empty = [time(1), varint(8, 1)].concat();
    let batch = parse(&of_a(&[metric("load", GAUGE, &[empty])])).unwrap();
    assert_eq!((batch.accepted_count, batch.rejected_indices, batch.dropped), (0, vec![], vec![]));
}

#[test]
fn what_is_no_message_is_refused_and_what_is_unknown_passed_over() {
    let sound = of_a(&[metric("load", GAUGE, &[number(1, 1.0, &[("core", "0")])])]);
    for end in 1..sound.len() {
        assert!(is_malformed(&parse(&sound[..end])), "{end}");
    }
    let counts = [time(1), message(6, [0; 7])].concat();
    assert!(is_malformed(&parse(&of_a(&[metric("lag", HISTOGRAM, &[counts])]))));
    assert_eq!(rows(&parse(&[]).unwrap()), [""; 0]);
    let unknown = message(1, [message(3, "url"), message(2, message(1, "scope"))].concat());
    assert_eq!(rows(&parse(&unknown).unwrap()), [""; 0]);
    let dataless = of_a(&[message(2, message(1, "load"))]);
    assert_eq!(rows(&parse(&dataless).unwrap()), [""; 0]);
}
