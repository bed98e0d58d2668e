//! Calendar dates from counts of days.

/// Returns the year, the month (from 1) and the day (from 1) for a count of days since 1970.
/// Example: 31 is (1970, 2, 1). Inside, years begin in March, so that the leap day is the last day
/// of a year.
#[must_use]
pub fn civil(days: u64) -> (u64, usize, u64) {
    const ERA_DAYS: u64 = 146_097; // of 400 years
    let days = days + 719_468; // since the first of March of the year 0
    let (era, of_era) = (days / ERA_DAYS, days % ERA_DAYS);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    let month = ((from_march + 2) % 12) as usize + 1;
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
}
