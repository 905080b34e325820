//! Dates of cookies: RFC 6265, section 5.1.1.

use super::UnixSeconds;

const MONTHS: [&str; 12] = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];

/// The fields that were found so far.
#[derive(Default)]
struct DateFields {
    time: Option<(i64, i64, i64)>,
    day: Option<i64>,
    month: Option<i64>,
    year: Option<i64>,
}

/// Parses a date in any of the forms of servers; `None` if the algorithm fails.
pub(super) fn parse(text: &str) -> Option<UnixSeconds> {
    let mut found = DateFields::default();
    text.split(is_delimiter).filter(|token| !token.is_empty()).for_each(|token| found.take(token));
    let DateFields { time: Some((hour, minute, second)), day: Some(day), month: Some(month), year: Some(year) } = found
    else {
        return None;
    };
    let year = match year {
        70..=99 => year + 1900,
        0..=69 => year + 2000,
        _ => year,
    };
    let possible =
        hour <= 23 && minute <= 59 && second <= 59 && year >= 1601 && (1..=days_of(month, year)).contains(&day);
    possible.then(|| UnixSeconds(days_since_1970(year, month, day) * 86_400 + hour * 3_600 + minute * 60 + second))
}

impl DateFields {
    /// Takes a token as the first missing field that it fits, in the order of the RFC.
    fn take(&mut self, token: &str) {
        if self.time.is_none()
            && let Some(time) = time(token)
        {
            self.time = Some(time);
        } else if self.day.is_none()
            && let Some(day) = number(token, 1, 2)
        {
            self.day = Some(day);
        } else if self.month.is_none()
            && let Some(month) = month(token)
        {
            self.month = Some(month);
        } else if self.year.is_none()
            && let Some(year) = number(token, 2, 4)
        {
            self.year = Some(year);
        }
    }
}

/// `%x09 / %x20-2F / %x3B-40 / %x5B-60 / %x7B-7E`
fn is_delimiter(c: char) -> bool {
    matches!(c, '\t' | ' '..='/' | ';'..='@' | '['..='`' | '{'..='~')
}

/// The number at the start of a token, with this many digits and no digit behind them.
fn number(token: &str, fewest: usize, most: usize) -> Option<i64> {
    let digits = token.bytes().take_while(u8::is_ascii_digit).count();
    if (fewest..=most).contains(&digits) { token[..digits].parse().ok() } else { None }
}

fn time(token: &str) -> Option<(i64, i64, i64)> {
    let mut fields = token.splitn(3, ':');
    let mut whole = || fields.next().filter(|field| field.bytes().all(|byte| byte.is_ascii_digit()));
    let (hour, minute) = (number(whole()?, 1, 2)?, number(whole()?, 1, 2)?);
    Some((hour, minute, number(fields.next()?, 1, 2)?))
}

fn month(token: &str) -> Option<i64> {
    let name = token.get(..3)?.to_ascii_lowercase();
    MONTHS.iter().position(|month| *month == name).map(|index| index as i64 + 1)
}

fn days_of(month: i64, year: i64) -> i64 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days since 1970-01-01 in the Gregorian calendar. Years begin in March here, so that the leap day
/// is the last of its year.
fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days_before_month = (153 * month + 2) / 5;
    let day_zero = 719_468; // from the first of March of the year 0 to 1970-01-01
    year * 365 + year / 4 - year / 100 + year / 400 + days_before_month + day - 1 - day_zero
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_read_in_all_the_ways_they_are_written() {
        let cases = [
            // RFC 9110, section 5.6.7: the same instant in three formats.
            ("Sun, 06 Nov 1994 08:49:37 GMT", Some(784_111_777)),
            ("Sunday, 06-Nov-94 08:49:37 GMT", Some(784_111_777)),
            ("Sun Nov  6 08:49:37 1994", Some(784_111_777)),
            // RFC 6265, section 3.1.
            ("Wed, 09 Jun 2021 10:18:14 GMT", Some(1_623_233_894)),
            ("Thu, 01 Jan 1970 00:00:00 GMT", Some(0)),
            ("Thu, 01-Jan-70 00:00:01 GMT", Some(1)),
            ("Mon, 01 Jan 1601 00:00:00 GMT", Some(-11_644_473_600)),
            ("29 Feb 2000 23:59:59", Some(951_868_799)),
            ("1 jan 69 0:0:0", Some(3_124_224_000)),
            ("Tue 18 Nov 2053 08:01:02x", Some(2_647_065_662)),
            ("29 Feb 1900 00:00:00", None),
            ("31 Apr 2024 00:00:00", None),
            ("01 Jan 1600 00:00:00", None),
            ("01 Jan 2024 24:00:00", None),
            ("01 Jan 2024", None),
            ("2024-01-02T03:04:05Z", None),
            ("", None),
        ];
        for (text, expected) in cases {
            assert_eq!(parse(text), expected.map(UnixSeconds), "{text}");
        }
    }
}
