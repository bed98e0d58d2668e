//! Lines that differ from the lines before.

use super::*;

fn lines(records: &[&[u8]]) -> Vec<u8> {
    records.join(&b"\n"[..])
}

/// Replacements in the third line, whose time is written shorter.
const EXCHANGED: &[(&str, &str)] = &[
    ("snr_db=1e-3", "snr_db=1"),
    ("snr_db=1e-3", "snr_db=.5"),
    ("snr_db=1e-3", "snr_db=007"),
    ("snr_db=1e-3", "snr_db=1e999"),
    ("snr_db=1e-3", "snr_db=1i"),
    ("snr_db=1e-3", "snr_db=NaN"),
    ("on=true", "on=F"),
    ("on=true", "on=1"),
    (r#"note="x""#, r#"note="a \"longer\" \\ note""#),
    (r#"note="x""#, "note=\"two\nlines\""),
    (r#"note="x""#, "note=x"),
    ("n=12i", "n=-9223372036854775808i"),
    ("n=12i", "n=9223372036854775808i"),
    ("n=12i", "n=12"),
    ("n=12i", "n=1.5i"),
    ("m=7u", "m=-7u"),
    ("m=7u", "m=9223372036854775807u"),
    (",n=12i", ""),
    (",n=12i", ",n=12i,n=13i"),
    (",n=12i", ",n=12i,o=13i"),
    (r#"on=true,note="x""#, r#"note="x",on=true"#),
    ("snr_db=", r"snr\ db="),
    ("entity_id=c", "entity_id=c,entity_id=c"),
    ("entity_id=c", "entity_id=c,site=b"),
    ("entity_id=c", r"entity_id=c\ d\,"),
    ("entity_id=c", "entity_id=c,=x"),
    ("entity_id=c", "entity_id=c,tenant=other"),
    ("entity_id=c", "entity_id="),
    (",entity_id=c", ""),
    ("link,", r"li\,nk,"),
    ("link,", ","),
    (" 177", " 277"),
    (" 177", "   177"),
    (" 177", " -177"),
    (" 177", " 9999999999999177"),
];

#[test]
fn lines_that_are_nearly_like_those_before() {
    let record = |entity: &str, ago_ns: i64, snr_db: &str| {
        let time_ns = NOW_NS - ago_ns;
        format!(r#"link,entity_id={entity} snr_db={snr_db},on=true,note="x",n=12i,m=7u {time_ns}"#)
    };
    let [a, b, c] = [record("a", 0, "1.5"), record("b", 1_500, "-12.125"), record("c", 7, "1e-3")];
    let mut changed = byte_changes(c.as_bytes(), b"\\ ,=0-1.eEtfiu#\r\t\xc3");
    let c = c.replace(&(NOW_NS - 7).to_string(), "1769860800000000000");
    let c = c.replace(" 1769", " 177");
    for (from, to) in EXCHANGED {
        assert!(c.contains(from), "{from}");
        changed.push(c.replace(from, to).into_bytes());
    }
    changed.extend(
        [&b"link,entity_id=c"[..], b"link,entity_id=c ", b"# no record"].map(<[u8]>::to_vec),
    );
    // A quote without its counterpart takes in the lines after it.
    changed.retain(|line| !line.split(|byte| *byte == b'"').count().is_multiple_of(2));
    let c = record("c", 7, "1e-3");
    check(LINES, lines, [a.as_bytes(), b.as_bytes(), c.as_bytes()], &changed);
}
