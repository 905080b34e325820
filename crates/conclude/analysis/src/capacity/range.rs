//! How systems do over the whole range of loads: where throughput stops to grow with the users, its peak, and from where on
//! requests fail.

use super::levels::LevelOfLoad;
use crate::estimate::{MIN_REPEATS, interval_of_centre};
use plimsoll_statistics::{Interval, ScalabilityLaw, scalability};

/// Loads up to this share of the largest are light.
const LIGHT: f64 = 0.25;

/// Where the largest load still has this share of the throughput of light load for each user, throughput has not stopped to
/// grow, and there is no knee in the range.
const STILL_GROWS: f64 = 0.9;

/// Throughput and failures over the range of loads that were offered.
#[derive(Clone, Debug, PartialEq)]
pub struct OverTheRange {
    /// The largest load.
    pub most: f64,
    /// Iterations per second for each user at light load: the mean of loads up to a quarter of the largest. None in open load.
    pub of_user: Option<f64>,
    /// The load at which throughput stops to grow with the users; none in open load.
    pub knee: Option<Knee>,
    /// The interval of that load over the starts, where each of three or more goes from light load to beyond it.
    pub knee_interval: Option<Interval>,
    /// The level with the highest throughput.
    pub peak: Option<Peak>,
    /// The smallest load at which most loads had more failures than the objective allows, or ended a system.
    pub fails_from: Option<f64>,
    /// The interval of that load over the starts, where each of three or more has a load that held and one that did not.
    pub failure_interval: Option<Interval>,
    /// The Universal Scalability Law that is nearest to the throughput over the users; none in open load, and for too few
    /// levels.
    pub law: Option<ScalabilityLaw>,
}

/// Where throughput stops to grow with the users: the peak throughput, over the throughput of a user at light load. There the
/// two bounds of closed load cross, that of users who never wait for one another and that of the resource that is used up
/// (Lazowska et al., *Quantitative System Performance*, 1984, chapter 5).
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Knee {
    /// At this many users.
    At(f64),
    /// Beyond the largest load that was offered.
    Beyond(f64),
}

/// The level with the highest throughput.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Peak {
    /// The load.
    pub level: f64,
    /// Iterations per second.
    pub iterations: f64,
    /// Requests per second.
    pub requests: f64,
}

/// The results of these levels, and of the smallest load that ended a system, if one did.
pub(super) fn over_the_range(levels: &[LevelOfLoad], killed: Option<f64>, is_open: bool) -> Option<OverTheRange> {
    let failed = levels.iter().find(|level| fails(level)).map(|level| level.levels.low);
    let most = levels.last()?.levels.high;
    let of_level = |level: &LevelOfLoad| {
        Some(Peak { level: level.middle(), iterations: level.throughput?, requests: level.requests? })
    };
    let points: Vec<Peak> = levels.iter().filter_map(of_level).collect();
    let peak = points.iter().copied().max_by(|one, other| one.iterations.total_cmp(&other.iterations));
    let of_user = if is_open { None } else { of_user(&points, most) };
    let pairs: Vec<(f64, f64)> = points.iter().map(|point| (point.level, point.iterations)).collect();
    Some(OverTheRange {
        most,
        of_user,
        knee: of_user.zip(peak).map(|(of_user, peak)| knee(of_user, peak, &points)),
        knee_interval: None,
        peak,
        fails_from: failed.into_iter().chain(killed).reduce(f64::min),
        failure_interval: None,
        law: if is_open { None } else { scalability(&pairs) },
    })
}

/// The interval of the knee over the starts, each with the levels of its own loads; none unless each of them goes from light load
/// to beyond its knee.
pub(super) fn knee_interval(starts: &[Vec<LevelOfLoad>]) -> Option<Interval> {
    let knee = |levels: &Vec<LevelOfLoad>| {
        let range = over_the_range(levels, None, false)?;
        let from_light = levels.first()?.levels.low <= LIGHT * range.most;
        match range.knee? {
            Knee::At(level) if from_light => Some(level),
            _ => None,
        }
    };
    interval_of_centre(&starts.iter().map(knee).collect::<Option<Vec<f64>>>()?).ok()
}

/// The interval over the starts of the load from which on requests fail, each start with the levels of its own loads. On a start
/// it lies between the largest load below the first that failed, and that one: the interval goes from the lower end for the
/// former to the upper end for the latter. None unless each start has both.
pub(super) fn failure_interval(starts: &[Vec<LevelOfLoad>]) -> Option<Interval> {
    let around = |levels: &Vec<LevelOfLoad>| {
        let first = levels.iter().position(fails)?;
        let held = levels.get(first.checked_sub(1)?)?;
        Some((held.middle(), levels[first].middle()))
    };
    let (held, failed): (Vec<f64>, Vec<f64>) =
        starts.iter().map(around).collect::<Option<Vec<_>>>()?.into_iter().unzip();
    Some(Interval { low: ends(&held)?.low, high: ends(&failed)?.high })
}

/// The interval of the centre of values that may all be the same.
fn ends(values: &[f64]) -> Option<Interval> {
    let first = *values.first().filter(|_| values.len() >= MIN_REPEATS)?;
    match values.iter().all(|value| *value == first) {
        true => Some(Interval { low: first, high: first }),
        false => interval_of_centre(values).ok(),
    }
}

/// True if most loads of the level failed.
fn fails(level: &LevelOfLoad) -> bool {
    2 * level.failed > level.loads
}

/// The mean throughput for each user of the light loads; of the smallest alone, where no other is light.
fn of_user(points: &[Peak], most: f64) -> Option<f64> {
    let light = points.iter().enumerate().filter(|(place, point)| *place == 0 || point.level <= LIGHT * most);
    let (iterations, users) =
        light.fold((0.0, 0.0), |(iterations, users), (_, point)| (iterations + point.iterations, users + point.level));
    (users > 0.0 && iterations > 0.0).then(|| iterations / users)
}

fn knee(of_user: f64, peak: Peak, points: &[Peak]) -> Knee {
    let last = points.last().unwrap_or(&peak);
    if last.iterations >= STILL_GROWS * of_user * last.level {
        return Knee::Beyond(last.level);
    }
    Knee::At(peak.iterations / of_user)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A level with this many iterations per second; `failed` of two loads failed.
    fn level(users: f64, throughput: f64, failed: usize) -> LevelOfLoad {
        LevelOfLoad {
            levels: Interval { low: users, high: users },
            loads: 2,
            passed: 0,
            failed,
            throughput: Some(throughput),
            requests: Some(2.0 * throughput),
            duration: None,
            errors: None,
            cpu: None,
            memory: None,
        }
    }

    /// Users that think for 2 s, on a system that does at most 100 iterations a second.
    fn saturating() -> Vec<LevelOfLoad> {
        [(10.0, 0), (20.0, 0), (40.0, 0), (80.0, 0), (160.0, 0), (320.0, 1), (640.0, 2)]
            .map(|(users, failed)| level(users, (users / 2.0_f64).min(100.0), failed))
            .to_vec()
    }

    #[test]
    fn the_knee_is_where_the_two_bounds_cross() {
        let found = over_the_range(&saturating(), None, false).expect("levels");
        assert_eq!((found.most, found.of_user, found.knee), (640.0, Some(0.5), Some(Knee::At(200.0))));
        let peak = found.peak.expect("a peak");
        assert_eq!((peak.iterations, peak.requests), (100.0, 200.0));
        assert_eq!(found.fails_from, Some(640.0), "one of two is not most of them");
        assert!(found.law.is_some());
    }

    #[test]
    fn the_knee_has_an_interval_where_each_start_shows_one() {
        // Starts that do at most 95, 100 and 105 iterations a second.
        let start = |most: f64| -> Vec<LevelOfLoad> {
            [10.0, 40.0, 160.0, 640.0].map(|users: f64| level(users, (users / 2.0).min(most), 0)).to_vec()
        };
        let starts = [95.0, 100.0, 105.0].map(start);
        let interval = knee_interval(&starts).expect("an interval");
        assert!(interval.low < 190.0 && interval.low > 170.0 && interval.high > 210.0, "{interval:?}");
        assert_eq!(knee_interval(&starts[..2]), None, "two starts");
        let from_the_middle = vec![starts[0].clone(), starts[1].clone(), starts[2][3..].to_vec()];
        assert_eq!(knee_interval(&from_the_middle), None);
    }

    #[test]
    fn the_load_from_which_on_requests_fail_has_an_interval_where_each_start_shows_one() {
        // Steps of 100 users, of which these and all larger ones failed.
        let start = |from: f64| -> Vec<LevelOfLoad> {
            [100.0, 200.0, 300.0, 400.0, 500.0]
                .map(|users| level(users, 50.0, if users >= from { 2 } else { 0 }))
                .to_vec()
        };
        let alike = failure_interval(&[300.0; 3].map(start)).expect("an interval");
        assert_eq!((alike.low, alike.high), (200.0, 300.0), "somewhere between two steps");
        let apart = failure_interval(&[300.0, 400.0, 400.0].map(start)).expect("an interval");
        assert!(apart.low < 200.0 && apart.high > 400.0, "{apart:?}");
        assert_eq!(failure_interval(&[300.0; 2].map(start)), None, "two starts");
        assert_eq!(failure_interval(&[300.0, 300.0, 600.0].map(start)), None, "one that held out");
        assert_eq!(failure_interval(&[300.0, 300.0, 100.0].map(start)), None, "one without a load that held");
    }

    #[test]
    fn without_saturation_there_is_no_knee() {
        let levels = saturating();
        let found = over_the_range(&levels[..5], None, false).expect("levels");
        assert_eq!((found.knee, found.fails_from, found.law), (Some(Knee::Beyond(160.0)), None, None));
    }

    #[test]
    fn arrivals_have_a_peak_and_no_knee() {
        let found = over_the_range(&saturating(), Some(400.0), true).expect("levels");
        assert_eq!((found.of_user, found.knee, found.law), (None, None, None));
        assert_eq!(found.peak.map(|peak| peak.iterations), Some(100.0));
        assert_eq!(found.fails_from, Some(400.0), "a system ended");
        assert_eq!(over_the_range(&[], None, true), None);
    }
}
