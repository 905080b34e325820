//! The memory that a part of a test takes.

use std::fs;

/// Runs a part of a test, and returns what it gives, with how far the resident set of this process rose meanwhile, in
/// bytes: its highest value, less the one at the begin. What other threads do at that time counts too.
///
/// # Panics
/// The system is not Linux.
pub fn growth_of_memory<T>(part: impl FnOnce() -> T) -> (T, u64) {
    // Begins the peak anew at what is resident now. Where this is not allowed, the peak of the whole process hides
    // smaller ones.
    let _ = fs::write("/proc/self/clear_refs", "5");
    let before = peak();
    let given = part();
    (given, peak().saturating_sub(before))
}

/// The highest resident set of this process since it was begun anew, in bytes.
fn peak() -> u64 {
    let status = fs::read_to_string("/proc/self/status").expect("Linux has it");
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB"));
    1024 * peak.and_then(|peak| peak.parse::<u64>().ok()).expect("Linux has it")
}
