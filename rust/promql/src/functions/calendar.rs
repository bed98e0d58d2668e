//! Parts of dates, in UTC.

use super::numbers::NumberFunction;

const DAY_SECONDS: i64 = 86_400;

/// A day, and the seconds in it.
struct Date {
    year: i64,
    month: i64,
    day: i64,
    days_since_1970: i64,
    second_of_day: i64,
}

/// Seconds since 1970 of the first date that Go can tell, and of every number that has no 64 bits.
/// Earlier dates wrap around there.
const FIRST: i128 = -9_223_372_028_715_321_600;
const NO_DATE: i128 = -(1 << 63);

/// Returns the date of seconds since 1970. Fractions are cut off.
#[expect(clippy::cast_possible_truncation, reason = "in range, and a part of a date")]
fn date(seconds: f64) -> Date {
    let has_64_bits = (-9.223_372_036_854_776e18..9.223_372_036_854_776e18).contains(&seconds);
    let seconds = if has_64_bits { i128::from(seconds as i64) } else { NO_DATE };
    let seconds = if seconds < FIRST { seconds + (1 << 64) } else { seconds };
    let second_of_day = seconds.rem_euclid(DAY_SECONDS.into()) as i64;
    let days = seconds.div_euclid(DAY_SECONDS.into()) as i64;
    // Howard Hinnant's `civil_from_days`: years begin in March, eras have 400 years.
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    Date {
        year: year_of_era + era * 400 + i64::from(month <= 2),
        month,
        day: day_of_year - (153 * shifted_month + 2) / 5 + 1,
        days_since_1970: days,
        second_of_day,
    }
}

impl Date {
    const fn is_leap_year(&self) -> bool {
        self.year % 4 == 0 && (self.year % 100 != 0 || self.year % 400 == 0)
    }

    const fn days_in_month(&self) -> i64 {
        match self.month {
            2 if self.is_leap_year() => 29,
            2 => 28,
            4 | 6 | 9 | 11 => 30,
            _ => 31,
        }
    }

    fn day_of_year(&self) -> i64 {
        let before = (1..self.month).map(|month| Self { month, ..*self }.days_in_month());
        before.sum::<i64>() + self.day
    }
}

#[expect(clippy::cast_precision_loss, reason = "a part of a date is small")]
fn part(seconds: f64, part: impl Fn(&Date) -> i64) -> f64 {
    part(&date(seconds)) as f64
}

/// Functions by name, each of seconds since 1970.
pub(crate) const FUNCTIONS: [(&str, NumberFunction); 8] = [
    ("day_of_month", |seconds| part(seconds, |date| date.day)),
    ("day_of_week", |seconds| part(seconds, |date| (date.days_since_1970 + 4).rem_euclid(7))),
    ("day_of_year", |seconds| part(seconds, Date::day_of_year)),
    ("days_in_month", |seconds| part(seconds, Date::days_in_month)),
    ("hour", |seconds| part(seconds, |date| date.second_of_day / 3_600)),
    ("minute", |seconds| part(seconds, |date| date.second_of_day / 60 % 60)),
    ("month", |seconds| part(seconds, |date| date.month)),
    ("year", |seconds| part(seconds, |date| date.year)),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(seconds: f64) -> Vec<f64> {
        FUNCTIONS.iter().map(|(_, function)| function(seconds)).collect()
    }

    #[test]
    fn parts_of_dates_are_those_of_utc() {
        // 2024-02-29T23:59:59Z, a Thursday, and the second before 1970.
        assert_eq!(parts(1_709_251_199.9), [29.0, 4.0, 60.0, 29.0, 23.0, 59.0, 2.0, 2024.0]);
        assert_eq!(parts(-1.0), [31.0, 3.0, 365.0, 31.0, 23.0, 59.0, 12.0, 1969.0]);
        assert_eq!(
            (parts(f64::NAN)[4], parts(f64::NAN)[7]),
            (15.0, 292_277_026_596.0),
            "as Go has it"
        );
        assert_eq!(parts(946_684_800.0), [1.0, 6.0, 1.0, 31.0, 0.0, 0.0, 1.0, 2000.0]);
    }
}
