//! A search in ascending items from their start on.

/// Returns the number of items before the first item that fails `is_before`, as
/// [`slice::partition_point`] does. The cost grows with the logarithm of this number, not of all
/// items: the next item that a walk wants is usually near.
pub(super) fn count_before<T>(items: &[T], is_before: impl Fn(&T) -> bool) -> usize {
    let mut end = 1;
    while items.get(end - 1).is_some_and(&is_before) {
        end *= 2;
    }
    let start = end / 2;
    start + items[start..items.len().min(end)].partition_point(is_before)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_items_before_are_counted_wherever_they_end() {
        for length in 0..20 {
            let items: Vec<usize> = (0..length).collect();
            for end in 0..=length {
                assert_eq!(count_before(&items, |item| *item < end), end, "of {length}");
            }
        }
    }
}
