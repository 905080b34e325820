//! Measures how long the analysis of a large study takes, in memory: 10 variants under 6
//! conditions, 10 repeats, 30 measures or more. Prints the times of several runs and their median;
//! bench/RESULTS.md has the last ones.
#![expect(clippy::print_stdout, reason = "the figures go to the standard output")]

use plimsoll_analysis::analyse;
use plimsoll_evidence::random::RandomStream;
use plimsoll_evidence::study::{Shape, study};
use std::time::{Duration, Instant};

const SHAPE: Shape = Shape { variants: 10, conditions: 6, repeats: 10, seconds: 30 };

const RUNS: usize = 11;

fn main() {
    let mut random = RandomStream::named("speed", 0);
    let input = study(SHAPE, random.seed(), |_| (0.03 * random.normal()).exp());
    let mut times: Vec<Duration> = Vec::new();
    let mut analysed = None;
    for _ in 0..RUNS {
        let begun = Instant::now();
        analysed = Some(analyse(&input));
        times.push(begun.elapsed());
    }
    times.sort();
    let seconds = |time: Duration| format!("{:.3}", time.as_secs_f64());
    let analysis = analysed.expect("a run");
    println!(
        "{} variants (and the duplicate) x {} conditions x {} repeats = {} trials of {} s; {} measures, {} comparisons, {} of \
         them with a verdict",
        SHAPE.variants,
        SHAPE.conditions,
        SHAPE.repeats,
        input.starts.len(),
        SHAPE.seconds,
        analysis.measures.len(),
        analysis.comparisons.len(),
        analysis.verdicts().count()
    );
    println!(
        "median of {RUNS} runs {} s, least {} s, most {} s",
        seconds(times[RUNS / 2]),
        seconds(times[0]),
        seconds(times[RUNS - 1])
    );
}
