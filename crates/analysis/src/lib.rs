//! Trials to estimates, comparisons and findings: pure.
