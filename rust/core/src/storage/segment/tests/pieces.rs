//! Rows that reach a segment in pieces.

use super::*;

/// Returns the rows of each block of a segment, and all of its content.
fn content(segment: &Segment, store: &MemoryStore) -> (Vec<usize>, Vec<Row>) {
    (segment.blocks().iter().map(|block| block.rows).collect(), read(store, segment))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    /// Few rows after many are sorted alone, and many rows after few are sorted together with them.
    /// The file is the same.
    #[test]
    fn rows_in_pieces_make_the_segment_that_they_make_at_once(
        pieces in proptest::collection::vec(prop_oneof![1_usize..40, 1_usize..4_000, 1_usize..15_000], 1..40),
        count in 1_usize..30_000,
    ) {
        let representatives = Representatives::new(&catalog());
        let store = MemoryStore::default();
        let written = table(&many_rows(0.0)[..count]);
        let in_order = sorted(&[RowSpan::whole(&written)], &representatives).unwrap();
        let (at_once, expected) = write_sorted(&store, &representatives, |writer| {
            writer.push(&[RowSpan::whole(&in_order)])
        });
        let measurement = write_sorted(&store, &representatives, |writer| {
            writer.write_measurement(&[RowSpan::whole(&written)], |_| Ok(()))
        });
        let in_pieces = write_sorted(&store, &representatives, |writer| {
            let mut start = 0;
            for piece in pieces.into_iter().cycle() {
                // Two spans, one of which may be empty.
                let (middle, end) = ((start + piece / 3).min(count), (start + piece).min(count));
                let span = |rows| RowSpan { table: &in_order, rows };
                writer.push(&[span(start..middle), span(middle..end)])?;
                start = end;
                if start == count {
                    break;
                }
            }
            Ok(())
        });
        for (segment, done) in [measurement, in_pieces] {
            prop_assert_eq!(done.bytes, expected.bytes);
            prop_assert_eq!(done.values, expected.values);
            prop_assert!(content(&segment, &store) == content(&at_once, &store));
        }
    }
}

fn write_sorted(
    store: &MemoryStore,
    representatives: &Representatives,
    write: impl FnOnce(&mut SegmentWriter<'_>) -> Result<()>,
) -> (Segment, SegmentSummary) {
    let mut writer =
        SegmentWriter::begin(store, &sealer(), representatives, 5, Effort::Low).unwrap();
    write(&mut writer).unwrap();
    let done = writer.finish().unwrap();
    (Segment::open(store, &sealer(), &done.id, done.bytes).unwrap(), done)
}
