use super::*;
use proptest::prelude::*;

fn text(ns: i64) -> String {
    let mut out = Vec::new();
    write_rfc3339(&mut out, ns);
    String::from_utf8(out).unwrap()
}

/// Days from 1970-01-01, counted one month at a time.
fn counted_days(year: u32, month: u32, day: u32) -> i64 {
    let mut days = i64::from(day) - 1;
    let (mut at_year, mut at_month) = (year, month);
    while (at_year, at_month) != (1970, 1) {
        if (at_year, at_month) > (1970, 1) {
            (at_year, at_month) =
                if at_month == 1 { (at_year - 1, 12) } else { (at_year, at_month - 1) };
            days += i64::from(length(at_year, at_month));
        } else {
            days -= i64::from(length(at_year, at_month));
            (at_year, at_month) =
                if at_month == 12 { (at_year + 1, 1) } else { (at_year, at_month + 1) };
        }
    }
    days
}

fn length(year: u32, month: u32) -> u32 {
    let period = if year.is_multiple_of(100) { 400 } else { 4 };
    let leap = year.is_multiple_of(period);
    [31, 28 + u32::from(leap), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31][month as usize - 1]
}

#[test]
fn accepted_times() {
    let mut reader = TimeReader::default();
    let noon = 1_769_860_800 * SECOND_NS; // 2026-01-31T12:00:00Z
    for (clause, time, ns) in [
        ("D1", "2026-01-31T12:00:00Z", noon),
        ("D1", "2026-01-31t12:00:00z", noon),
        ("D1", "2026-01-31 12:00:00Z", noon),
        ("D1", "2026-01-31T12:00Z", noon),
        ("D1", "2026-01-31T12:00:00.5Z", noon + SECOND_NS / 2),
        ("D1", "2026-01-31T12:00:00,5Z", noon + SECOND_NS / 2),
        ("D1", "2026-01-31T14:00:00+02:00", noon),
        ("D1", "2026-01-31T14:00:00.000+0200", noon),
        ("D1", "2026-01-31T14:00+02:00", noon),
        ("D1", "2026-01-31T06:30:00-05:30", noon),
        ("D1", "2026-01-31T12:00:00-00:00", noon),
        ("D1", "2026-01-31", noon - 43_200 * SECOND_NS),
        ("D1", "2024-02-29T00:00:00Z", 1_709_164_800 * SECOND_NS),
        ("D3", "2026-01-31T12:00:00", noon),
        ("D3", "2026-01-31T12:00", noon),
        ("D6", "2026-01-31T12:00:00.123456789Z", noon + 123_456_789),
        ("D6", "2026-01-31T12:00:00.9999999999999Z", noon + 999_999_999),
        ("D6", "1969-12-31T23:59:59.9999999999Z", -1),
        ("D8", "2000-01-01T00:00:00Z", YEAR_2000_NS),
        ("D8", "2000-01-01T00:00:00+14:00", YEAR_2000_NS - 14 * 3_600 * SECOND_NS),
        ("D9", "9999-12-31T23:59:59.999999999Z", i64::MAX),
        ("D9", "9999-12-31T23:59:59-23:59", i64::MAX),
        ("D9", "0001-01-01T00:00:00Z", i64::MIN),
        ("D9", "0001-01-01T00:00:00+23:59", i64::MIN),
        ("D9", "2262-04-11T23:47:16.854775807Z", i64::MAX),
        ("D9", "2262-04-11T23:47:16.854775806Z", i64::MAX - 1),
        ("D9", "1677-09-21T00:12:43.145224192Z", i64::MIN),
        ("D9", "1677-09-21T00:12:43.145224193Z", i64::MIN + 1),
        ("D9", "1677-09-21T00:12:43.145224191Z", i64::MIN),
    ] {
        assert_eq!(parse_ns(time.as_bytes()), Some(ns), "{clause}: {time}");
        for _ in 0..2 {
            assert_eq!(reader.parse_ns(time.as_bytes()), Some(ns), "{clause}: {time}");
        }
    }
}

#[test]
fn a_time_is_read_from_the_front_of_a_text_if_it_is_like_one_before() {
    let noon = 1_769_860_800 * SECOND_NS;
    for (offset, other) in [("Z", "z"), ("+02:00", "+02:01"), ("-0530", "Z"), ("", "Z")] {
        let mut reader = TimeReader::default();
        let first = format!("2026-01-31T12:00:00.5{offset}");
        let start_ns = reader.parse_ns(first.as_bytes()).unwrap() - SECOND_NS / 2;
        assert!((start_ns - noon).abs() < 86_400 * SECOND_NS);
        for (rest, ns) in [
            (":07", Some(7 * SECOND_NS)),
            (":59.25", Some(59 * SECOND_NS + SECOND_NS / 4)),
            (":00.12345678", Some(123_456_780)),
            (":00.123456789", Some(123_456_789)),
            (":00.1234567890", None),
            (":60", None),
            (":0", None),
            (":00.", None),
        ] {
            let time = format!("2026-01-31T12:00{rest}{offset}");
            let found = ns.map(|ns| (start_ns + ns, time.len()));
            assert_eq!(reader.begins(format!("{time}\"}}").as_bytes()), found, "{time}");
            let other = format!("2026-01-31T12:00{rest}{other}\"");
            let is_whole = |(_, length)| other.as_bytes()[length] == b'"';
            assert!(!reader.begins(other.as_bytes()).is_some_and(is_whole), "{other}");
        }
        assert_eq!(reader.begins(format!("2026-01-31T12:01:07{offset}").as_bytes()), None);
    }
}

#[test]
fn a_reader_knows_no_minute_at_first() {
    for text in ["\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0:00", "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0:00Z"] {
        assert_eq!(TimeReader::default().parse_ns(text.as_bytes()), None, "D1");
    }
}

#[test]
fn refused_times() {
    let mut reader = TimeReader::default();
    for (clause, time) in [
        ("D1", ""),
        ("D1", "now"),
        ("D1", "2026-01"),
        ("D1", "2026-1-31"),
        ("D1", "2026-01-31T"),
        ("D1", "2026-01-31T12"),
        ("D1", "2026-01-31T12:0"),
        ("D1", "2026-01-31T12:00:"),
        ("D1", "2026-01-31T12:00:0"),
        ("D1", "2026-01-31T12:00:00."),
        ("D1", "2026-01-31T12:00:00.Z"),
        ("D1", "2026-01-31T12:00.5Z"),
        ("D1", "2026-01-31_12:00:00Z"),
        ("D1", "2026-01-31Z"),
        ("D1", "2026-01-31+02:00"),
        ("D1", " 2026-01-31T12:00:00Z"),
        ("D1", "2026-01-31T12:00:00Z "),
        ("D1", "2026-01-31T12:00:00 Z"),
        ("D1", "2026-01-31T12:00:00ZZ"),
        ("D1", "2026-01-31T12:00:00+24:00"),
        ("D1", "2026-01-31T12:00:00+02:60"),
        ("D1", "2026-01-31T12:00:00*02:00"),
        ("D1", "2026-01-31T12:00:00+2:00"),
        ("D1", "2026-01-31T12:00:00\u{2212}02:00"),
        ("D1", "2026-01-32"),
        ("D1", "2026-00-01"),
        ("D1", "2026-13-01"),
        ("D1", "2026-04-31"),
        ("D1", "2026-01-00"),
        ("D1", "2025-02-29"),
        ("D1", "1900-02-29"),
        ("D1", "+2026-01-31"),
        ("D1", "12026-01-31"),
        ("D1", "2026-01-31T12:60:00Z"),
        ("D2", "1769860800"),
        ("D2", "1769860800000"),
        ("D2", "17698608.5"),
        ("D4", "20260131T120000Z"),
        ("D4", "20260131"),
        ("D4", "2026-W05-6"),
        ("D4", "2026-031"),
        ("D4", "2026-01-31T24:00:00Z"),
        ("D4", "2026-01-31T12:00:00+02"),
        ("D5", "2016-12-31T23:59:60Z"),
        ("D9", "0000-01-01T00:00:00Z"),
    ] {
        assert_eq!(parse_ns(time.as_bytes()), None, "{clause}: {time}");
        // The reader must refuse the time after a time of the same minute, too.
        reader.parse_ns(b"2026-01-31T12:00:00Z").unwrap();
        assert_eq!(reader.parse_ns(time.as_bytes()), None, "{clause}: {time}");
    }
}

#[test]
fn timestamps_are_the_times_that_iso_8601_can_write() {
    for (seconds, nanos, time) in [
        (0, 0, "1970-01-01T00:00:00Z"),
        (-1, 999_999_999, "1969-12-31T23:59:59.999999999Z"),
        (-62_135_596_800, 0, "0001-01-01T00:00:00Z"),
        (253_402_300_799, 999_999_999, "9999-12-31T23:59:59.999999999Z"),
    ] {
        assert_eq!(timestamp_ns(seconds, nanos), parse_ns(time.as_bytes()), "L13: {time}");
    }
    for (seconds, nanos) in
        [(0, -1), (0, 1_000_000_000), (-62_135_596_801, 0), (253_402_300_800, 0), (i64::MIN, 0)]
    {
        assert_eq!(timestamp_ns(seconds, nanos), None, "L13: {seconds} {nanos}");
    }
}

#[test]
fn written_times_have_as_many_digits_as_needed() {
    for (ns, time) in [
        (0, "1970-01-01T00:00:00Z"),
        (YEAR_2000_NS, "2000-01-01T00:00:00Z"),
        (500_000_000, "1970-01-01T00:00:00.500Z"),
        (1_000, "1970-01-01T00:00:00.000001Z"),
        (1, "1970-01-01T00:00:00.000000001Z"),
        (-1, "1969-12-31T23:59:59.999999999Z"),
        (i64::MAX, "2262-04-11T23:47:16.854775807Z"),
        (i64::MIN, "1677-09-21T00:12:43.145224192Z"),
    ] {
        assert_eq!(text(ns), time, "D7");
    }
}

#[test]
fn every_day_is_the_counted_day() {
    for (year, month) in (1..=9_999).step_by(7).flat_map(|y| (1..=12).map(move |m| (y, m))) {
        let last = length(year, month);
        let date = format!("{year:04}-{month:02}-{last:02}");
        let days = days_of(date.as_bytes().try_into().unwrap());
        if year % 49 == 1 || (1_890..2_110).contains(&year) {
            assert_eq!(days, Some(counted_days(year, month, last)), "{date}");
        }
        assert_eq!(civil_of(days.unwrap()), (year, month, last));
        let beyond = format!("{year:04}-{month:02}-{:02}", last + 1);
        assert_eq!(days_of(beyond.as_bytes().try_into().unwrap()), None);
    }
}

proptest! {
    #[test]
    fn what_is_written_is_read_back(ns: i64) {
        prop_assert_eq!(parse_ns(text(ns).as_bytes()), Some(ns));
        let round = ns - ns % SECOND_NS;
        prop_assert_eq!(parse_ns(text(round).as_bytes()), Some(round));
    }

    #[test]
    fn a_writer_writes_as_without_memory(
        instants in proptest::collection::vec((any::<i64>(), -MINUTE_NS..MINUTE_NS), 0..20),
    ) {
        let mut writer = TimeWriter::default();
        for (ns, step_ns) in instants {
            for ns in [ns, ns.saturating_add(step_ns), i64::MAX, i64::MIN] {
                let mut out = b"before".to_vec();
                writer.write(&mut out, ns);
                prop_assert_eq!(String::from_utf8(out).unwrap(), format!("before{}", text(ns)));
            }
        }
    }

    #[test]
    fn parts_give_the_modelled_instant(
        year in 1_700_u32..2_260, month in 1_u32..=12, day in 1_u32..=28,
        hour in 0_i64..24, minute in 0_i64..60, second in 0_i64..60, ns in 0_i64..SECOND_NS,
        offset_minutes in -1_439_i64..=1_439,
    ) {
        let (sign, shift) = (if offset_minutes < 0 { '-' } else { '+' }, offset_minutes.abs());
        let time = format!(
            "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{ns:09}{sign}{:02}:{:02}",
            shift / 60, shift % 60,
        );
        let minutes = (counted_days(year, month, day) * 24 + hour) * 60 + minute;
        let expected = ((minutes - offset_minutes) * 60 + second) * SECOND_NS + ns;
        prop_assert_eq!(parse_ns(time.as_bytes()), Some(expected));
    }

    #[test]
    fn a_reader_reads_as_without_memory(
        tails in proptest::collection::vec("[:.,Z0-9+]{0,4}[0-9]{0,2}[.,]?[0-9]{0,10}[Zz]?", 1..20),
    ) {
        let mut reader = TimeReader::default();
        for minute in ["2026-01-31T12:00", "2262-04-11T23:47", "1677-09-21T00:12"] {
            for tail in &tails {
                for tail in [tail.clone(), format!(":{tail}"), format!(":05.{tail}")] {
                    let time = format!("{minute}{tail}");
                    prop_assert_eq!(reader.parse_ns(time.as_bytes()), parse_ns(time.as_bytes()));
                }
            }
        }
    }

    #[test]
    fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
        let _ = parse_ns(&bytes);
    }
}
