//! Computes a sample from two snapshots; pure functions.

use crate::snapshot::{HeldResources, Identity, Owed, ProcessReading, Snapshot, StorageIo, ThreadReading, Totals};
use plimsoll_model::sample::ProcessSample;
use std::time::Duration;

/// Completes a snapshot by what the one before it knows: bytes that cannot be read any more, and what is owed.
pub(crate) fn complete(before: &Snapshot, after: &mut Snapshot) {
    after.above.io = after.above.io.or(before.above.io);
    for (identity, now) in &mut after.processes {
        let then = before.processes.get(identity).and_then(|then| then.totals.io);
        now.totals.io = now.totals.io.or(then);
    }
    after.owed = owed(before, after);
}

/// The system's usage between two snapshots that are `span` apart, and its resources at the second. `ticks_per_second`
/// is the unit of CPU time. The caller sets instant and name.
pub(crate) fn usage(before: &Snapshot, after: &Snapshot, span: Duration, ticks_per_second: u64) -> ProcessSample {
    let cores = |ticks: u64| ticks as f64 / ticks_per_second as f64 / span.as_secs_f64();
    let busiest = threads(before, after).map(|(then, now)| now.cpu.saturating_sub(then.cpu)).max();
    let switches = threads(before, after).map(|(then, now)| now.switches.saturating_sub(then.switches)).sum();
    let holds: Vec<&HeldResources> = after.processes.values().filter_map(|reading| reading.holds.as_ref()).collect();
    ProcessSample {
        processes: holds.len() as u64,
        cpu_cores: cores(cpu(before, after).used()),
        busiest_thread: busiest.map(cores),
        cpu_quota: after.quota.as_ref().map(|quota| quota.cores),
        throttled: after.quota.as_ref().zip(before.quota.as_ref()).and_then(|(now, then)| now.throttled_since(then)),
        resident: resident(&holds),
        threads: holds.iter().map(|holds| holds.threads).sum(),
        open_files: holds.iter().map(|holds| holds.open_files).sum(),
        read_bytes: storage(before, after, |io| io.read_bytes).used(),
        written_bytes: storage(before, after, |io| io.written_bytes).used(),
        context_switches: switches,
        ..ProcessSample::default()
    }
}

/// The private memory of all processes, plus the largest shared memory of any one of them, counted once.
fn resident(holds: &[&HeldResources]) -> u64 {
    let own: u64 = holds.iter().map(|holds| holds.resident).sum();
    own + holds.iter().map(|holds| holds.shared).max().unwrap_or(0)
}

/// How a total grew in a span. A child may end after its parent was read and before it is read itself: then its total comes to
/// the parent in the next span only.
struct Growth {
    /// What living processes have added themselves, if that is known apart from what they took over.
    own: u64,
    /// What processes have added by taking over the totals of children that they waited for; or all that they have added.
    gathered: u64,
    /// The totals of the processes that have ended in the span, and that a parent may have waited for.
    ended: u64,
    /// The use that was owed before the span.
    owed: u64,
}

impl Growth {
    /// The use in the span.
    ///
    /// When a process ends and is waited for, all its CPU moves into its parent's total of children. The part from earlier
    /// spans was counted there, and is subtracted. If no parent waited for it, that difference would be negative; zero is
    /// counted then.
    fn used(&self) -> u64 {
        self.own + self.gathered.saturating_sub(self.ended + self.owed)
    }

    /// The use that parents may take over in the next span, though it was before. It is owed no longer than that: a total
    /// that nobody waits for comes to no parent.
    fn still_owed(&self) -> u64 {
        (self.ended + self.owed).saturating_sub(self.gathered).min(self.ended)
    }
}

/// The use that is owed after the span between two snapshots.
fn owed(before: &Snapshot, after: &Snapshot) -> Owed {
    let read_bytes = storage(before, after, |io| io.read_bytes).still_owed();
    let written_bytes = storage(before, after, |io| io.written_bytes).still_owed();
    Owed { cpu: cpu(before, after).still_owed(), io: StorageIo { read_bytes, written_bytes } }
}

/// CPU of living processes, and of those that ended, in ticks.
fn cpu(before: &Snapshot, after: &Snapshot) -> Growth {
    let mut own = 0;
    let mut gathered = after.above.children_cpu.saturating_sub(before.above.children_cpu);
    for (identity, now) in &after.processes {
        match before.processes.get(identity) {
            Some(then) => {
                own += now.totals.cpu.saturating_sub(then.totals.cpu);
                gathered += now.totals.children_cpu.saturating_sub(then.totals.children_cpu);
            }
            None => own += now.totals.cpu + now.totals.children_cpu,
        }
    }
    let ended = vanished(before, after, |totals| totals.cpu + totals.children_cpu);
    Growth { own, gathered, ended, owed: before.owed.cpu }
}

/// Bytes of storage. A process has one total of those that it has moved itself and those that it took over.
fn storage(before: &Snapshot, after: &Snapshot, bytes: impl Fn(&StorageIo) -> u64 + Copy) -> Growth {
    let total = |totals: &Totals| totals.io.as_ref().map_or(0, bytes);
    // Where a total was not known before, it is not known either how much of it is of this span.
    let growth = |then: &Totals, now: &Totals| match (&then.io, &now.io) {
        (Some(then), Some(now)) => bytes(now).saturating_sub(bytes(then)),
        _ => 0,
    };
    let mut gathered = growth(&before.above, &after.above);
    for (identity, now) in &after.processes {
        gathered += match before.processes.get(identity) {
            Some(then) => growth(&then.totals, &now.totals),
            None => total(&now.totals),
        };
    }
    Growth { own: 0, gathered, ended: vanished(before, after, total), owed: bytes(&before.owed.io) }
}

/// A total over the processes that have ended, but for those whose totals come to no parent.
fn vanished(before: &Snapshot, after: &Snapshot, total: impl Fn(&Totals) -> u64) -> u64 {
    let gone = before.processes.iter().filter(|(identity, _)| !after.processes.contains_key(identity));
    let waited_for = gone.filter(|(_, reading)| !is_removed_by_kernel(reading, before, after));
    waited_for.map(|(_, reading)| total(&reading.totals)).sum()
}

/// True if the parent of a process that has ended lives on and ignores the end of its children. A zombie is none of
/// these: somebody waits for it.
fn is_removed_by_kernel(ended: &ProcessReading, before: &Snapshot, after: &Snapshot) -> bool {
    let from_parent = before.processes.range(Identity { pid: ended.parent, started: 0 }..);
    let mut parents = from_parent.take_while(|(identity, _)| identity.pid == ended.parent);
    let ignores_both_times = parents.any(|(identity, then)| {
        then.ignores_children && after.processes.get(identity).is_some_and(|now| now.ignores_children)
    });
    ended.holds.is_some() && ignores_both_times
}

/// The threads of the second snapshot as they were at the first, where they began at zero, and as they are.
fn threads(before: &Snapshot, after: &Snapshot) -> impl Iterator<Item = (ThreadReading, ThreadReading)> {
    after.processes.iter().flat_map(|(identity, now)| {
        let then = before.processes.get(identity);
        let at_first = move |tid: &i32| then.and_then(|then| then.threads.get(tid)).copied().unwrap_or_default();
        now.threads.iter().map(move |(tid, now)| (at_first(tid), *now))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPAN: Duration = Duration::from_secs(2);

    /// A process: pid, start, CPU, CPU of children, bytes written.
    type Row = (i32, u64, u64, u64, u64);

    /// What the process above gathered (CPU, bytes written), and the processes.
    fn snapshot(above: (u64, u64), rows: &[Row]) -> Snapshot {
        let io = |written_bytes| Some(StorageIo { read_bytes: 0, written_bytes });
        let totals = |cpu, children_cpu, written| Totals { cpu, children_cpu, io: io(written) };
        let process = |&(pid, started, cpu, children_cpu, written): &Row| {
            let holds = Some(HeldResources { resident: 4096, shared: 1 << 20, threads: 2, open_files: 3 });
            let threads = [(pid, ThreadReading { cpu, switches: cpu * 10 })].into();
            let totals = totals(cpu, children_cpu, written);
            (Identity { pid, started }, ProcessReading { totals, holds, threads, ..ProcessReading::default() })
        };
        let processes = rows.iter().map(process).collect();
        Snapshot { above: totals(0, above.0, above.1), processes, ..Snapshot::default() }
    }

    #[test]
    fn usage_counts_what_was_used_in_the_span_and_nothing_else() {
        // what happens, before, after, cores over two seconds, bytes written
        let cases = [
            (
                "two processes work",
                snapshot((0, 0), &[(10, 1, 500, 0, 100), (11, 1, 40, 0, 0)]),
                snapshot((0, 0), &[(10, 1, 600, 0, 160), (11, 1, 140, 0, 7)]),
                1.0,
                67,
            ),
            (
                "a new process counts from its start, with the children it had",
                snapshot((0, 0), &[(10, 1, 500, 0, 0)]),
                snapshot((0, 0), &[(10, 1, 500, 0, 0), (12, 9, 30, 70, 5)]),
                0.5,
                5,
            ),
            (
                "a child ends: what it used since the last look counts, not what it used before",
                snapshot((0, 0), &[(10, 1, 500, 0, 10), (11, 2, 300, 0, 20)]),
                snapshot((0, 0), &[(10, 1, 500, 340, 34)]),
                0.2,
                4,
            ),
            (
                "a child comes and goes between two looks",
                snapshot((0, 0), &[(10, 1, 500, 0, 0)]),
                snapshot((0, 0), &[(10, 1, 500, 60, 8)]),
                0.3,
                8,
            ),
            (
                "the last process ends, and the process above gathers it",
                snapshot((5, 1), &[(10, 1, 500, 100, 30)]),
                snapshot((645, 33), &[]),
                0.2,
                2,
            ),
            (
                "a child vanishes and nobody waited for it: no negative use",
                snapshot((0, 0), &[(10, 1, 500, 0, 0), (11, 2, 300, 0, 90)]),
                snapshot((0, 0), &[(10, 1, 520, 0, 0)]),
                0.1,
                0,
            ),
            (
                "a number is used again by another process",
                snapshot((0, 0), &[(10, 1, 500, 0, 0), (11, 2, 300, 0, 50)]),
                snapshot((0, 0), &[(10, 1, 500, 300, 50), (11, 9, 40, 0, 6)]),
                0.2,
                6,
            ),
            ("nothing is there", Snapshot::default(), Snapshot::default(), 0.0, 0),
        ];
        for (case, before, after, cores, written) in cases {
            let sample = usage(&before, &after, SPAN, 100);
            assert!((sample.cpu_cores - cores).abs() < 1e-9, "{case}: {} cores", sample.cpu_cores);
            assert_eq!(sample.written_bytes, written, "{case}");
        }
    }

    /// CPU in ticks and bytes written from each snapshot to the next.
    fn used(snapshots: &mut [Snapshot]) -> Vec<(f64, u64)> {
        let mut used = Vec::new();
        for place in 1..snapshots.len() {
            let (earlier, later) = snapshots.split_at_mut(place);
            let (before, after) = (&earlier[place - 1], &mut later[0]);
            complete(before, after);
            let sample = usage(before, after, Duration::from_secs(1), 1);
            used.push((sample.cpu_cores, sample.written_bytes));
        }
        used
    }

    #[test]
    fn what_a_parent_takes_over_late_counts_once() {
        // what happens, the snapshots, CPU in ticks and bytes written from each to the next
        let cases = [
            (
                "a child ends after its parent was read",
                vec![
                    snapshot((0, 0), &[(10, 1, 500, 0, 10), (11, 2, 3000, 0, 900)]),
                    snapshot((0, 0), &[(10, 1, 500, 0, 10)]),
                    snapshot((0, 0), &[(10, 1, 500, 3050, 940)]),
                    snapshot((0, 0), &[(10, 1, 500, 3060, 944)]),
                ],
                vec![(0.0, 0), (50.0, 30), (10.0, 4)],
            ),
            (
                "two children end, of which one comes to the parent at once",
                vec![
                    snapshot((0, 0), &[(10, 1, 500, 0, 0), (11, 2, 3000, 0, 900), (12, 3, 40, 0, 9)]),
                    snapshot((0, 0), &[(10, 1, 500, 40, 9)]),
                    snapshot((0, 0), &[(10, 1, 500, 3040, 909)]),
                ],
                vec![(0.0, 0), (0.0, 0)],
            ),
            (
                "the last process ends after the one above was read",
                vec![snapshot((100, 1), &[(10, 1, 500, 0, 30)]), snapshot((100, 1), &[]), snapshot((607, 33), &[])],
                vec![(0.0, 0), (7.0, 2)],
            ),
            (
                "nobody waits for a child: the next span but one counts in full",
                vec![
                    snapshot((0, 0), &[(10, 1, 500, 0, 0), (11, 2, 3000, 0, 900)]),
                    snapshot((0, 0), &[(10, 1, 500, 0, 0)]),
                    snapshot((0, 0), &[(10, 1, 500, 0, 0)]),
                    snapshot((0, 0), &[(10, 1, 500, 60, 8)]),
                ],
                vec![(0.0, 0), (0.0, 0), (60.0, 8)],
            ),
        ];
        for (case, mut snapshots, expected) in cases {
            assert_eq!(used(&mut snapshots), expected, "{case}");
        }
    }

    #[test]
    fn a_child_whose_end_its_parent_ignores_takes_nothing_from_the_use_of_others() {
        let ignoring = |mut snapshot: Snapshot| {
            for (identity, reading) in &mut snapshot.processes {
                (reading.parent, reading.ignores_children) = (10, identity.pid == 10);
            }
            snapshot
        };
        // Process 12 waits for children of its own, and all go on.
        let before = snapshot((0, 0), &[(10, 1, 500, 0, 10), (11, 2, 3000, 0, 900), (12, 3, 40, 0, 0)]);
        let after = snapshot((0, 0), &[(10, 1, 500, 0, 60), (12, 3, 40, 30, 5)]);
        let later = snapshot((0, 0), &[(10, 1, 500, 0, 70), (12, 3, 40, 35, 5)]);
        let all = [before, after, later];
        assert_eq!(used(&mut all.clone().map(ignoring)), [(30.0, 55), (5.0, 10)]);
        // The kernel gives orphans to a process above, which waits for them.
        let orphan = [all[0].clone(), snapshot((3000, 900), &[(12, 3, 40, 0, 0)])];
        assert_eq!(used(&mut orphan.map(ignoring)), [(0.0, 0)]);
    }

    #[test]
    fn bytes_that_cannot_be_read_are_those_of_the_snapshot_before() {
        let unreadable = |mut snapshot: Snapshot, pid, started| {
            snapshot.processes.get_mut(&Identity { pid, started }).unwrap().totals.io = None;
            snapshot
        };
        let both = snapshot((0, 0), &[(10, 1, 0, 0, 10), (11, 2, 0, 0, 900)]);
        // A child has ended, but nobody has waited for it yet.
        let zombie = unreadable(both.clone(), 11, 2);
        let taken_over = snapshot((0, 0), &[(10, 1, 0, 0, 915)]);
        assert_eq!(used(&mut [both.clone(), zombie, taken_over]), [(0.0, 0), (0.0, 5)]);
        let never_before = unreadable(both.clone(), 11, 2);
        let grown = snapshot((0, 0), &[(10, 1, 0, 0, 10), (11, 2, 0, 0, 906)]);
        assert_eq!(used(&mut [never_before, both, grown]), [(0.0, 0), (0.0, 6)]);
    }

    #[test]
    fn what_is_held_is_what_the_living_hold_at_the_end() {
        let mut after = snapshot((0, 0), &[(10, 1, 0, 0, 0), (11, 1, 0, 0, 0), (12, 1, 7, 0, 0)]);
        let zombie = after.processes.get_mut(&Identity { pid: 12, started: 1 }).unwrap();
        zombie.holds = None;
        let sample = usage(&Snapshot::default(), &after, SPAN, 100);
        assert_eq!((sample.processes, sample.threads, sample.open_files, sample.resident), (2, 4, 6, 8192 + (1 << 20)));
        assert!(sample.cpu_cores > 0.0, "a zombie's CPU still counts");
    }

    #[test]
    fn switches_and_cpu_are_counted_by_thread_and_never_backwards() {
        let reading = |threads: &[(i32, u64)]| ProcessReading {
            threads: threads
                .iter()
                .map(|(tid, total)| (*tid, ThreadReading { cpu: *total, switches: *total }))
                .collect(),
            ..ProcessReading::default()
        };
        let at = |process| Snapshot {
            processes: [(Identity { pid: 10, started: 1 }, process)].into(),
            ..Snapshot::default()
        };
        let before = at(reading(&[(10, 5), (11, 900), (12, 50)]));
        let after = at(reading(&[(10, 9), (12, 20), (13, 3)]));
        let sample = usage(&before, &after, SPAN, 100);
        assert_eq!(sample.context_switches, 4 + 3, "thread 11 ended, 12 is a new one, 13 began");
        assert_eq!(sample.busiest_thread, Some(0.02), "thread 10");
        assert_eq!(usage(&before, &Snapshot::default(), SPAN, 100).busiest_thread, None);
    }
}
