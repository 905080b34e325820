//! The statistics of a study: intervals, tests, power, and from where on a trial is steady.
//!
//! Pure functions on slices of numbers, which know nothing of studies. The unit is whatever the
//! caller passes; in Plimsoll it is the trial. Each function names its formula and where it comes
//! from, and its tests hold it to results that others have published.
//!
//! Nothing here panics or gives NaN for finite input. What has no value is `None`: too few
//! observations, or one that is not finite, or a result that no `f64` can hold. A *p value* is the
//! probability of data at least as extreme as those seen, if the null hypothesis held.
//!
//! - [`t`]: means and their differences by Student's t; [`power`] plans for it, through the
//!   [`noncentral`] t distribution; [`equivalence`] turns it into a claim of sameness.
//! - [`rank`]: the same without a normal distribution; [`order`]: quantiles.
//! - [`multiple`]: many p values at once; [`sequential`]: looking more than once.
//! - [`levels`]: data with levels of repetition (trials of builds on machines); [`lengths`]: how many turns and starts
//!   two levels take.
//! - [`trimmed`]: means without the ends; [`slope`]: how one number changes with another, by ranks.
//! - [`backlog`]: whether more work arrives than is finished; [`capacity`]: the search for the largest load that a system
//!   carries; [`scaling`]: how throughput changes with the load.
//! - [`buckets`]: histograms of other programs, by upper bounds.
//! - [`steady`]: where the warm-up of a series ends; [`effective`]: how much a series with
//!   autocorrelation says.

pub mod backlog;
pub mod buckets;
pub mod capacity;
pub mod effective;
pub mod equivalence;
pub mod lengths;
pub mod levels;
pub mod multiple;
pub mod noncentral;
mod normal;
pub mod order;
pub mod power;
mod quadrature;
pub mod rank;
mod sample;
pub mod scaling;
pub mod sequential;
pub mod slope;
pub mod steady;
pub mod t;
#[cfg(test)]
mod testing;
pub mod trimmed;

pub use backlog::{Growth, growth};
pub use buckets::{BucketQuantile, Buckets};
pub use effective::{autocorrelation, effective_n, effective_size};
pub use equivalence::{Tost, tost};
pub use lengths::{Costs, StartOfTurns, TwoLevels};
pub use levels::{Levels, ratio_interval};
pub use multiple::{benjamini_hochberg, holm};
pub use order::{QuantileInterval, median_interval, min_n, quantile_interval, quantile_test, share_is_above};
pub use power::{power_of_t, power_of_two_samples, repeats_needed, smallest_detectable, upper_sd};
pub use rank::{HodgesLehmann, RankTest, hodges_lehmann, hodges_lehmann_shift, mann_whitney, signed_rank};
pub use sample::{Interval, mean, median, standard_deviation};
pub use scaling::{ScalabilityLaw, scalability};
pub use sequential::{nominal_level, pocock};
pub use slope::{line_slope, rank_slope};
pub use steady::{Drift, Halves, Steadiness, Subject, Truncation, halves, later_halves, mser, mser5, steadiness};
pub use t::{Summary, TTest, one_sample, pooled, t_cdf, t_quantile, welch};
pub use trimmed::{Trimmed, mean_of_trimmed, trimmed};
