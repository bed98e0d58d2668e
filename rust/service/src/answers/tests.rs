use std::fmt::Write as _;

use fleetcast_core::model::aggregate::{Aggregation, Interval};
use fleetcast_core::model::fault::{self, LocationStep};
use fleetcast_core::query::SeriesRequest;
use fleetcast_core::wire::{Backslashes, Precision, Protocol};
use proptest::prelude::*;

use super::*;
use crate::{ContextValue, DetailFault, Refusal};

const SECOND_NS: i64 = 1_000_000_000;
const SOUND: &str = "entity_id=a&start=1970-01-01";

fn faults(refusal: Refusal) -> Vec<DetailFault> {
    assert_eq!(refusal.code, "schema_faults");
    match <[_; 1]>::try_from(refusal.context) {
        Ok([("detail", ContextValue::Faults(faults))]) => faults,
        other => panic!("{other:?}"),
    }
}

fn kinds(refusal: Refusal) -> Vec<(&'static str, &'static str, Option<usize>)> {
    let leaked = |name: &str| &*name.to_owned().leak();
    let kind = |fault: DetailFault| match &*fault.place {
        [_, LocationStep::Key(name)] => (fault.kind, leaked(name), None),
        [_, LocationStep::Key(name), LocationStep::Index(index)] => {
            (fault.kind, leaked(name), Some(*index))
        }
        other => panic!("{other:?}"),
    };
    faults(refusal).into_iter().map(kind).collect()
}

fn latest(query: &str) -> LatestParameters {
    LatestParameters::read(query).unwrap()
}

fn latest_faults(query: &str) -> Vec<DetailFault> {
    faults(LatestParameters::read(query).unwrap_err())
}

fn series(query: &str) -> SeriesRequest {
    series_parameters(query).unwrap()
}

fn series_kinds(query: &str) -> Vec<(&'static str, &'static str, Option<usize>)> {
    kinds(series_parameters(query).unwrap_err())
}

fn invalid(name: &str) -> Refusal {
    Refusal::new("invalid_input").with("field", ContextValue::Text(name.to_owned()))
}

#[test]
fn latest_with_and_without_parameters() {
    let all = LatestParameters { as_of_ns: None, freshness_ns: 300 * SECOND_NS, measurement: None };
    for query in ["", "&&", "other=1&other=2", "=", "%FF=1", "MEASUREMENT=a", "measurement+=a"] {
        assert_eq!(latest(query), all, "{query}");
    }
    let query = "as_of_utc=1970-01-01T00:00:02Z&freshness_seconds=1.5&measurement=link&other=1";
    let asked = LatestParameters {
        as_of_ns: Some(2 * SECOND_NS),
        freshness_ns: 1_500_000_000,
        measurement: Some("link".to_owned()),
    };
    assert_eq!(latest(query), asked);
}

#[test]
fn series_with_and_without_parameters() {
    let plain = SeriesRequest {
        entity_ids: vec!["b".to_owned(), "a,c".to_owned()],
        start_ns: 0,
        end_ns: None,
        measurement: "telemetry".to_owned(),
        fields: Vec::new(),
        interval: None,
        aggregation: None,
    };
    assert_eq!(series("entity_id=b&entity_id=a,c&start=1970-01-01"), plain);
    let query = format!(
        "{SOUND}&end=1970-01-02&measurement=&fields=a,,b+c,%2Cd&interval=5m&agg=last&other=1",
    );
    let asked = SeriesRequest {
        entity_ids: vec!["a".to_owned()],
        end_ns: Some(86_400 * SECOND_NS),
        measurement: String::new(),
        fields: ["a", "b c", "d"].map(str::to_owned).to_vec(),
        interval: Some(Interval::FiveMinutes),
        aggregation: Some(Aggregation::Last),
        ..plain
    };
    assert_eq!(series(&query), asked);
}

#[test]
fn names_and_values_are_decoded_and_empty_pairs_are_nothing() {
    for (value, text) in [
        ("x+y%2Bz", "x y+z"),
        ("%C3%A9%f0%9F%9b%b0%C2%80", "é🛰\u{80}"),
        ("%+%2%zz%%41%4", "% %2%zz%A%4"),
        ("a=b=", "a=b="),
    ] {
        let query = format!("&&other&{SOUND}&&%65ntity%5Fid={value}&");
        assert_eq!(series(&query).entity_ids, ["a", text], "{query}");
    }
    assert_eq!(latest("measurement").measurement.as_deref(), Some(""));
}

#[test]
fn a_single_value_may_not_repeat() {
    for name in ["start", "end", "measurement", "fields", "interval", "agg"] {
        let given = if name == "start" { "entity_id=a" } else { SOUND };
        let query = format!("{given}&{name}=1m&{name}=1m");
        assert_eq!(series_kinds(&query), [("multiple_values", name, None)]);
    }
    for name in ["as_of_utc", "measurement", "freshness_seconds"] {
        let refusal = LatestParameters::read(&format!("{name}=&{name}=")).unwrap_err();
        assert_eq!(kinds(refusal), [("multiple_values", name, None)]);
    }
}

#[test]
fn bad_times_and_a_lost_plus() {
    let plain = "Input should be an ISO 8601 datetime";
    let hint = "; in a URL a + is written %2B, or give the time in UTC with Z";
    let with_hint = format!("{plain}{hint}");
    for text in ["", "now", "1700000000", "2026-01-01T24:00:00Z", "%FF", "a%0A+00:00", "+00:0"] {
        let [fault] = <[_; 1]>::try_from(latest_faults(&format!("as_of_utc={text}"))).unwrap();
        assert_eq!((fault.kind, &*fault.message), ("datetime_from_date_parsing", plain), "{text}");
    }
    for text in ["2026-01-01T00:00:00+00:00", "x%20+0130", "+00:00", "%FF+00:00"] {
        let [fault] = <[_; 1]>::try_from(latest_faults(&format!("as_of_utc={text}"))).unwrap();
        assert_eq!(fault.message, with_hint, "{text}");
    }
    assert_eq!(latest("as_of_utc=1970-01-01T00:00:01%2B00:00").as_of_ns, Some(SECOND_NS));
}

#[test]
fn numbers() {
    for (text, freshness_ns) in [
        ("1", SECOND_NS),
        ("604800", 604_800 * SECOND_NS),
        ("1e3", 1_000 * SECOND_NS),
        ("%2B5", 5 * SECOND_NS),
        ("2.5", 2_500_000_000),
        ("1E%2B2", 100 * SECOND_NS),
        ("0.1e1", SECOND_NS),
        ("99999999999999999999e-18", 100 * SECOND_NS),
        // Half a nanosecond goes to the even number.
        ("4096.0000000005", 4_096 * SECOND_NS),
        ("4096.0000000015", 4_096_000_000_002),
    ] {
        let read = latest(&format!("freshness_seconds={text}"));
        assert_eq!(read.freshness_ns, freshness_ns, "{text}");
    }
}

#[test]
fn bad_numbers() {
    let parsing = ["nan", "inf", "-inf", "infinity", "1_000", "", "+5", "5+", "01", "-00", ".5"];
    let more = ["5.", "5.e3", "0x1", "%D9%A3", "1e", "1e%2B", "%FF", "-", "e5", "1.2.3"];
    let not_a_number = "Input should be a valid number, unable to parse string as a number";
    let less = "Input should be greater than or equal to 1";
    let greater = "Input should be less than or equal to 604800";
    for (texts, kind, message) in [
        (&parsing[..], "float_parsing", not_a_number),
        (&more, "float_parsing", not_a_number),
        (&["0", "-1", "0.999", "-1e999", "-0.0"], "greater_than_equal", less),
        (&["604801", "604800.1", "1e999", "1e99999999999999999999"], "less_than_equal", greater),
    ] {
        for text in texts {
            let fault = DetailFault::new(kind, &["query", "freshness_seconds"], message);
            assert_eq!(latest_faults(&format!("freshness_seconds={text}")), [fault], "{text}");
        }
    }
}

#[test]
fn choices_list_what_there_is() {
    for (name, listed) in [
        ("interval", "Input should be '15s', '30s', '1m', '5m', '15m' or '1h'"),
        ("agg", "Input should be 'mean', 'min', 'max' or 'last'"),
    ] {
        for text in ["2m", "", "%FF", "Mean", "1m+", "mean%00"] {
            let refusal = series_parameters(&format!("{SOUND}&{name}={text}")).unwrap_err();
            let fault = DetailFault::new("literal_error", &["query", name], listed);
            assert_eq!(faults(refusal), [fault]);
        }
    }
}

#[test]
fn lists_are_counted_with_duplicates_and_have_no_empty_items() {
    let query = |count: usize| format!("start=1970-01-01{}", "&entity_id=a".repeat(count));
    assert_eq!(series(&query(16)).entity_ids, ["a"; 16]);
    let refusal = series_parameters(&(query(17) + "&entity_id=")).unwrap_err();
    let message = "List should have at most 16 items after validation, not 18";
    let fault = DetailFault::new("too_long", &["query", "entity_id"], message);
    assert_eq!(faults(refusal), [fault]);
    let query = format!("{SOUND}&entity_id=&entity_id");
    let short = |index| ("string_too_short", "entity_id", Some(index));
    assert_eq!(series_kinds(&query), [short(1), short(2)]);
    let refusal = series_parameters(&query).unwrap_err();
    assert_eq!(faults(refusal)[0].message, "String should have at least 1 character");
}

#[test]
fn all_faults_come_together_in_the_order_of_the_contract() {
    let wrong = "agg=sum&interval=2m&fields=&fields=&measurement=nope&end=x";
    let expected = [
        ("missing", "entity_id", None),
        ("missing", "start", None),
        ("datetime_from_date_parsing", "end", None),
        ("multiple_values", "fields", None),
        ("literal_error", "interval", None),
        ("literal_error", "agg", None),
    ];
    assert_eq!(series_kinds(wrong), expected);
    let refusal = series_parameters(wrong).unwrap_err();
    assert_eq!(faults(refusal)[1].message, "Field required");
    let refusal = LatestParameters::read("freshness_seconds=x&as_of_utc=x").unwrap_err();
    let names: Vec<_> = kinds(refusal).into_iter().map(|(_, name, _)| name).collect();
    assert_eq!(names, ["as_of_utc", "freshness_seconds"]);
}

#[test]
fn characters_are_checked_last_each_under_its_parameter() {
    let texts =
        ["%00", "a%1Fb", "%7F", "%0A", "%FF", "%C3", "a%ED%A0%80", "%F5%80%80%80", "%C0%80"];
    for text in texts {
        let mut query = SOUND.to_owned();
        for name in ["fields", "measurement", "entity_id"] {
            write!(query, "&{name}={text}").unwrap();
            assert_eq!(series_parameters(&query), Err(invalid(name)), "{query}");
        }
        assert_eq!(series_kinds(&(query + "&agg=x")), [("literal_error", "agg", None)]);
        let query = format!("measurement={text}");
        assert_eq!(LatestParameters::read(&query), Err(invalid("measurement")));
        let refusal = LatestParameters::read(&(query + "&as_of_utc=x")).unwrap_err();
        assert_eq!(kinds(refusal), [("datetime_from_date_parsing", "as_of_utc", None)]);
    }
    for text in ["a b", "\"", "%C3%A9", "%F0%9F%9B%B0", "%C2%80", "a,b"] {
        latest(&format!("measurement={text}"));
    }
}

/// The plain encoding: every byte as `%XX`.
fn encoded(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut out, byte| {
        write!(out, "%{byte:02x}").unwrap();
        out
    })
}

proptest! {
    #[test]
    fn encoded_bytes_are_a_name_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..6)) {
        let sound = String::from_utf8(bytes.clone()).ok();
        let sound = sound.filter(|text| !text.chars().any(|each| each < ' ' || each == '\x7f'));
        let query = format!("{}={}", encoded(b"measurement"), encoded(&bytes));
        let read = LatestParameters::read(&query).map(|read| read.measurement);
        prop_assert_eq!(read, sound.map(Some).ok_or_else(|| invalid("measurement")));
    }

    #[test]
    fn lists_of_any_names_read_back(ids in prop::collection::vec("[^\\pC]{1,8}", 1..17)) {
        let pairs: Vec<_> =
            ids.iter().map(|id| format!("entity_id={}", encoded(id.as_bytes()))).collect();
        let query = format!("start=1970-01-01&{}", pairs.join("&"));
        prop_assert_eq!(series(&query).entity_ids, ids);
    }

    #[test]
    fn numbers_of_the_grammar_are_numbers(
        text in "(%2B)?([1-9]|[1-9][0-9]{1,4})(\\.[0-9]{1,20})?([eE](%2B|-)?0{1,5})?",
    ) {
        let seconds: f64 = text.replace("%2B", "+").parse().unwrap();
        let expected: i64 = format!("{:.0}", seconds * 1e9).parse().unwrap();
        prop_assert_eq!(latest(&format!("freshness_seconds={text}")).freshness_ns, expected);
    }

    #[test]
    fn no_query_string_is_too_strange(
        pieces in prop::collection::vec(
            prop_oneof![
                "[!-~]{0,4}",
                Just("&start=".to_owned()),
                Just("&entity_id=".to_owned()),
                Just("&freshness_seconds=".to_owned()),
            ],
            0..16,
        ),
    ) {
        let query = pieces.concat();
        let _ = LatestParameters::read(&query);
        let _ = series_parameters(&query);
    }
}

#[test]
fn parameters_of_lines_are_decoded_and_the_last_value_counts() {
    let lines = |precision| Protocol::Lines(precision, Backslashes::Apart);
    for (query, protocol, is_partial) in [
        ("", lines(Precision::Nanoseconds), true),
        ("db=a&precision=%73", lines(Precision::Seconds), true),
        ("precision=x&precision=h&accept_partial=", lines(Precision::Hours), true),
        ("precision=%C2%B5&accept_partial=false", lines(Precision::Microseconds), false),
    ] {
        assert_eq!(lines_parameters(1, query), Ok((protocol, is_partial)), "{query}");
    }
    for (version, query, field) in [
        (2, "precision=h", "precision"),
        (3, "precision=%FF&accept_partial=no", "precision"),
        (3, "precision=second&accept_partial=no", "accept_partial"),
    ] {
        let refusal = fault::BatchRefusal::InvalidInput { field };
        assert_eq!(lines_parameters(version, query), Err(refusal), "{query}");
    }
}
