//! The memory that is left while the systems of one variant after the other start.

/// The memory of variants that are alive together: a machine that runs out of it ends processes, and not only those of the
/// study.
pub(crate) struct MemoryOfVariants {
    /// Bytes that were left when it was last looked at.
    left: Option<u64>,
    /// The most that the systems of one variant took while they started, in bytes.
    taken: u64,
}

impl MemoryOfVariants {
    pub(crate) fn new(left: Option<u64>) -> MemoryOfVariants {
        MemoryOfVariants { left, taken: 0 }
    }

    /// The systems of another variant are ready, and so much is left.
    pub(crate) fn started(&mut self, left: Option<u64>) {
        let taken = self.left.zip(left).map_or(0, |(before, after)| before.saturating_sub(after));
        (self.left, self.taken) = (left, self.taken.max(taken));
    }

    /// Fails where the systems of another variant would not find as much memory as those of the ones before them.
    pub(crate) fn check(&self) -> Result<(), String> {
        let Some(left) = self.left.filter(|left| *left < self.taken) else { return Ok(()) };
        let [taken, left] = [self.taken, left].map(|bytes| bytes / 1_000_000);
        Err(format!(
            "the systems of one variant take {taken} MB of memory, and {left} MB are left for those of the next: variants \
             that take turns are alive at the same time; use `design = \"trials\"`, or let each system take less"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variant_that_would_find_too_little_memory_is_not_started() {
        let megabytes = |count: u64| Some(count * 1_000_000);
        let mut memory = MemoryOfVariants::new(megabytes(1000));
        assert_eq!(memory.check(), Ok(()));
        memory.started(megabytes(600));
        assert_eq!(memory.check(), Ok(()), "another 400 MB fit into 600");
        memory.started(megabytes(250));
        let why = memory.check().expect_err("400 MB do not fit into 250");
        assert!(why.starts_with("the systems of one variant take 400 MB of memory, and 250 MB are left"), "{why}");
        let mut unknown = MemoryOfVariants::new(None);
        unknown.started(None);
        assert_eq!(unknown.check(), Ok(()));
    }
}
