use super::*;

#[test]
fn a_line_is_a_record() {
    let batch = accepted(
        "weather,entity_id=s1,site=x temperature=21.5,up=true,note=\"a b\" 1789999999000000000\n",
    );
    assert_eq!(batch.measurements, ["weather"]);
    assert_eq!(batch.tables[0].times_ns, [1_789_999_999 * SECOND_NS]);
    assert_eq!(tags(&batch), [("entity_id", "s1"), ("site", "x")]);
    assert_eq!(columns(&batch), ["temperature=[21.5]", "up=[true]", "note=[\"a b\"]"]);
}

#[test]
fn lines_without_a_record_are_passed_over() {
    for body in ["", "\n", " \t\r\n\n", "# a comment", "#\n  # f=1\n\u{feff}"] {
        let batch = parse(body.trim_end_matches('\u{feff}')).unwrap();
        assert_eq!(batch.accepted_count, 0, "{body:?}");
    }
    let body = "\u{feff}# first\n\nm a=1\r\n  m a=2\n#m a=3\n\r\n\tm a=4 \r\nm a=5\r";
    assert_eq!(columns(&accepted(body)), ["a=[1.0, 2.0, 4.0, 5.0]"]);
}

#[test]
fn values() {
    let body = [
        "m a=1,b=t,c=\"\"",
        "m a=-0,b=F,c=\"\\\"q\\\" \\\\ \\n\"",
        "m a=12i,b=True,c=\"two\nlines, a=1 2\"",
        "m a=9223372036854775807u,b=FALSE,c=\"é\"",
        "m a=+.5e1,b=false,c=\"\\\\\"",
    ];
    assert_eq!(
        columns(&accepted(&body.join("\n"))),
        [
            "a=[1.0, -0.0, 12.0, 9.223372036854776e18, 5.0]",
            "b=[true, false, true, false, false]",
            r#"c=["", "\"q\" \\ \\n", "two\nlines, a=1 2", "é", "\\"]"#,
        ]
    );
}

#[test]
fn names_and_tags_with_escapes() {
    let batch = accepted(r#"m\ \,\=\x,entity\ id=a\,b\=c\ d\\,e\=f= g\ h\,\=\"="x y" "#);
    assert_eq!(batch.measurements, [r"m ,\=\x"]);
    assert_eq!(tags(&batch), [("e=f", ""), ("entity id", r"a,b=c d\")], "C23");
    assert_eq!(columns(&batch), [r#"g h,=\"=["x y"]"#]);
}

#[test]
fn times_in_all_units() {
    let units = [
        (Precision::Nanoseconds, "ns", 1),
        (Precision::Microseconds, "us", 1_000),
        (Precision::Milliseconds, "ms", 1_000_000),
        (Precision::Seconds, "s", SECOND_NS),
    ];
    for (precision, name, unit_ns) in units {
        assert_eq!(Precision::parse(name), Some(precision));
        let now = NOW_NS / unit_ns;
        let body =
            format!("m a=1 {}\nm a=2\nm a=3 {}\nm a=4 -1\nm a=5 {}", now - 1, now + 1, i64::MAX);
        let batch = parse_in(precision, body.as_bytes()).unwrap();
        let floor_ns = now * unit_ns;
        assert_eq!(batch.tables[0].times_ns, [floor_ns - unit_ns, floor_ns, NOW_NS, NOW_NS]);
        assert_eq!((batch.rejected_indices, batch.clamped_count), (vec![3], 2), "D8, D9, D10");
    }
    assert_eq!(Precision::parse("m"), None);
}

#[test]
fn records_rejected_one_by_one() {
    let batch = accepted("m,a=b\nm,a=b  \n# none\nm,a=b x=1 946684799999999999\nm x=1\nm");
    assert_eq!(batch.rejected_indices, [0, 1, 2, 4], "C17, D8");
    assert_eq!((batch.accepted_count, batch.new_series.len()), (1, 1));
}

#[test]
fn faults_and_where_they_are() {
    let cases: &[(&str, &[&str])] = &[
        ("m a", &["line_invalid 0"]),
        ("m a=1,", &["line_invalid 0"]),
        ("m a=1 1 1", &["line_invalid 0"]),
        ("m a=\"x", &["line_invalid 0"]),
        ("m a=\"x\"y", &["line_invalid 0"]),
        ("m a=1, b=2", &["line_invalid 0"]),
        ("m,a b=1", &["line_invalid 0"]),
        ("m, b=1", &["line_invalid 0"]),
        ("m,a,b=c d=1", &["line_invalid 0"]),
        ("m,a=b", &[]),
        (",a=b x=1", &["string_too_short 0.measurement"]),
        ("m =1", &["string_too_short 0.fields."]),
        ("m a=", &["field_value_type 0.fields.a"]),
        ("m a=nan,b=x,c=1", &["field_value_type 0.fields.a", "field_value_type 0.fields.b"]),
        ("m a=--1", &["field_value_type 0.fields.a"]),
        ("m a=1e999", &["finite_number 0.fields.a"]),
        ("m a=1.5i", &["int_parsing 0.fields.a"]),
        ("m a=-1u", &["int_parsing 0.fields.a"]),
        ("m a=9223372036854775808i", &["int_parsing_size 0.fields.a"]),
        ("m a=18446744073709551616u", &["int_parsing_size 0.fields.a"]),
        ("m a=1,a=2", &["duplicate_key 0.fields.a"]),
        ("m,a=1,a=2 x=1", &["duplicate_key 0.tags.a"]),
        ("m a=1 x", &["int_parsing 0.time"]),
        ("m a=1 1.5", &["int_parsing 0.time"]),
        ("m a=1 99999999999999999999", &["int_parsing_size 0.time"]),
        ("# one\nm a=1\n\nm a=x\nm a\nm a=1", &["field_value_type 1.fields.a", "line_invalid 2"]),
        (
            "m a=1,b=,b=2 x",
            &["field_value_type 0.fields.b", "duplicate_key 0.fields.b", "int_parsing 0.time"],
        ),
    ];
    for (body, expected) in cases {
        match expected {
            [] => assert!(parse(body).is_ok(), "{body}"),
            expected => assert_eq!(faults(body), *expected, "{body}"),
        }
    }
}

#[test]
fn lines_that_are_no_text() {
    let in_lines = |body: &[u8]| faults_of(parse_in(Precision::Nanoseconds, body));
    assert_eq!(
        in_lines(b"m a=1\nm a=x\nm,b=\xff a=1\nm a"),
        ["field_value_type 1.fields.a", "line_invalid 2"]
    );
    assert_eq!(in_lines(b"\xff"), ["line_invalid 0"]);
}

#[test]
fn earlier_stages_win() {
    let six = "m a\n".repeat(6);
    let refused = |body: &str| parse(body).unwrap_err();
    assert_eq!(refused(&six), BatchRefusal::TooManyRecords { received: 6, max: 5 }, "C28");
    let wide = "m a=1,b=1,c=1,d=1,e=1";
    let tagged = "m,a=1,b=1,c=1,d=1 x=1";
    let (in_tags, in_fields) = (
        BatchRefusal::InvalidInput { field: "tags" },
        BatchRefusal::InvalidInput { field: "fields" },
    );
    assert_eq!(refused(tagged), in_tags, "C20");
    assert_eq!(refused("m,a=1,b=1,c=1,d=1"), in_tags, "C20");
    assert_eq!(refused("m,=1 x=1"), in_tags, "C22");
    assert_eq!(refused(wide), in_fields, "N1");
    assert_eq!(refused(&format!("{wide}\n{tagged}")), in_tags);
    assert_eq!(faults(&format!("{wide}\n{tagged}\nm a")), ["line_invalid 2"]);
    assert_eq!(accepted("m,a=1,b=1,c=1,tenant=other x=1").accepted_count, 1, "C21");
    let conflict = accepted("m a=1\nm a=t\n").conflict.unwrap();
    assert_eq!((conflict.at.record, conflict.field.as_str()), (1, "a"));
}

#[test]
fn beyond_the_bound_on_records_nothing_is_kept() {
    let body: Vec<_> = (0..1_000).map(|at| format!("m,entity_id={at} f{at}=1\n")).collect();
    let refused = BatchRefusal::TooManyRecords { received: 1_000, max: 5 };
    assert_eq!(parse(&body.concat()), Err(refused));
}

#[test]
fn records_stand_where_they_begin_and_lines_are_counted() {
    let body = b"\xef\xbb\xbfm x=1\r\n# none\n\nm y=\"a\nb\" 5\nm\xff x=1\n m z";
    let expected = (vec![(3, 8, 0), (18, 29, 3), (30, 36, 5), (38, 41, 6)], None);
    assert_eq!(line_records(body), expected);
    let text = "m x=1\n\nm y=\"a\n\nb\",z=1\nm y=\"c\n\",z=1\n# none";
    assert_eq!(accepted(text).line_count, 8);
    assert_eq!(accepted("\n").line_count, 1);
}

#[test]
fn a_text_without_an_end_is_known_by_its_record() {
    assert_eq!(line_records(b"m x=1\nm y=\"a\nm z=1\n").1, Some(6));
    assert_eq!(line_records(b"m x=\"a\"b\nm z=1\n").1, None);
}
