//! Factors to ordered trials: pure and seeded.
