//! `plimsoll audit`: what it prints, its exit codes, and bad tables.

use crate::common::{Place, Started};
use std::path::{Path, PathBuf};
use std::process::Stdio;

fn seed(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conclude/audit/tests/it/seeds").join(name)
}

#[test]
fn a_problem_ends_with_one() {
    let place = Place::empty();
    std::fs::copy(seed("capacity-of-a-service.csv"), place.path("capacity.csv")).unwrap();
    place.plimsoll(&["audit", "capacity.csv"]).with(1).prints(&[
        "capacity.csv: 5 rows; 3 problems, 1 caution",
        "problem: wrong direction.",
        "line 11: Fletcher CPU: 13% → 20%, +54% is called an improvement, and lower is better",
        "what to do:",
    ]);
}

#[test]
fn the_seeds_all_raise_problems() {
    let place = Place::empty();
    for name in [
        "release-comparison",
        "backing-storage",
        "design-patterns",
        "regression-over-a-setting",
        "capacity-of-a-service",
    ] {
        let path = seed(&format!("{name}.csv"));
        place.plimsoll(&["audit", path.to_str().unwrap()]).with(1).prints(&["problem: "]);
    }
}

#[test]
fn a_table_without_problems_ends_with_zero() {
    let place = Place::empty();
    place.write("sound.csv", "variant,n,mean,sd\na,5,1.00 s,0.10 s\nb,5,1.10 s,0.10 s\n");
    place.plimsoll(&["audit", "sound.csv"]).with(0).prints(&["sound.csv: 2 rows; nothing found"]);
    place.write("cautions.csv", "variant,mean\na,1.00 s\nb,1.10 s\n");
    place.plimsoll(&["audit", "cautions.csv"]).with(0).prints(&["1 caution", "caution: no repeats."]);
}

#[test]
fn other_programs_get_json() {
    let place = Place::empty();
    place.write("table.csv", "metric,baseline,value,improvement\nCPU,13%,20%,+54%\n");
    place.plimsoll(&["audit", "--json", "table.csv"]).with(1).prints(&[
        r#""format": 1"#,
        r#""table": "table.csv""#,
        r#""topic": "wrong direction""#,
        r#""lines": [ 2 ]"#,
    ]);
}

#[test]
fn a_table_can_come_from_standard_input() {
    let place = Place::empty();
    place.write("table.csv", "variant,n,mean\na,5,1 s\n");
    let mut command = place.command(&["audit", "-"]);
    command.stdin(Stdio::from(std::fs::File::open(place.path("table.csv")).unwrap()));
    Started::new(command).end().with(0).prints(&["standard input: 1 row; nothing found"]);
}

#[test]
fn bad_tables_end_with_two_and_every_fault() {
    let place = Place::empty();
    place.write("table.csv", "measure,medain,n,sd\nrps,3,0,fast\n");
    place.plimsoll(&["audit", "table.csv"]).with(2).says(&[
        "table.csv: line 2, column `n`: expected a whole number of runs, at least 1, found `0`",
        "table.csv: line 2, column `sd`: expected a number such as",
        "table.csv: 2 errors; nothing was audited",
    ]);
    place.write("noise.csv", [b'a', 0xff]);
    place.plimsoll(&["audit", "noise.csv"]).with(2).says(&[
        "expected noise.csv to be UTF-8 text, found the byte 0xFF in line 1; save or export the table as CSV in UTF-8",
    ]);
    place.write("wide.csv", b"\xff\xfen\0");
    place.plimsoll(&["audit", "wide.csv"]).with(2).says(&["expected wide.csv to be UTF-8 text, found UTF-16; save"]);
    place.write("open.csv", "variant,mean\nA,\"12,5 ms\nB,13\n");
    place.plimsoll(&["audit", "open.csv"]).with(2).says(&["open.csv: line 2: expected a second quotation mark"]);
    place.plimsoll(&["audit", "nowhere.csv"]).with(2).says(&["failed to read the table nowhere.csv"]);
    place.plimsoll(&["audit", "."]).with(2).says(&["expected a table of results as CSV, found the folder ."]);
}
