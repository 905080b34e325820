//! Tables that cannot be read: every fault at once, with its place, what was expected and what to
//! do; and whatever the text, an answer.

use plimsoll_audit::{audit, json, terminal};
use proptest::prelude::*;

fn faults(table: &str) -> String {
    let faults = audit(table).expect_err("a table with faults");
    faults.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

#[test]
fn every_fault_is_told_at_once() {
    insta::assert_snapshot!(faults(
        "# variance: 5\n\
         measure,variant,n,mean,sd,change,claim,better,order,duration,size,settings\n\
         rps,a,0,\"12,5/s\",fast,5,faster?,left,soon,3,10 sek,x\n\
         latency,b,1.5,3 ms,2 MB,+5 %,same,lower,2,3 ms,10 MB,x\n\
         latency,b,2,3 ms,1 ms,+5 %,same,lower,2,3 ms,10 MB,x,y,z\n"
    ));
}

#[test]
fn a_table_needs_headings_that_are_known_and_rows() {
    for (table, says) in [
        ("", "line 1: expected a line of headings and rows below it, found nothing"),
        ("# only: a comment\n", "found nothing"),
        (
            "colour,shape\nred,round\n",
            "expected headings such as `measure`, `variant`, `mean`, `sd`, `change`, found `colour`, `shape`",
        ),
        ("mean,sd\n", "line 1: expected rows below the headings, found none"),
        ("mean,avg\n1,2\n", "line 1, column `avg`: expected each column once, found it as `mean` already"),
        ("mean,summary\n1 s,2 s\n", "line 2, column `summary`: expected each statistic once in a row"),
        ("variant,mean\na,1,300 ms\n", "put quotation marks around a cell with a comma in it"),
    ] {
        assert!(faults(table).contains(says), "{table}: {}", faults(table));
    }
}

#[test]
fn a_quotation_mark_that_never_closes_is_told_with_its_line() {
    let open = "expected a second quotation mark, found none after";
    for (table, says) in [
        ("variant,mean\nA,\"12,5 ms\nB,13\n", format!("line 2: {open} `\"12,5 ms`: the cell never ends; close it")),
        ("variant,mean\nA,1 ms\nB,\"13 ms\nC,14 ms\n", format!("line 3: {open} `\"13 ms`")),
        ("variant,\"mean\nA,1 ms\n", format!("line 1: {open} `\"mean`")),
        ("variant,mean\nA,\"1234567890123456789012345678901\n", format!("`\"{}…`", "1234567890".repeat(3))),
        ("variant,mean\nA,\"12 ms\nB,\"13\" ms\n", "several lines that begin with `12 ms`".to_owned()),
    ] {
        let told = faults(table);
        assert!(told.contains(&says), "{table}: {told}");
        assert_eq!(told.lines().count(), 1, "{table}: {told}");
    }
    let both = faults("variant,mean\nA,fast\nB,\"13 ms\n");
    assert!(both.starts_with("line 2, column `mean`") && both.contains("\nline 3: expected a second"), "{both}");
}

#[test]
fn forgiving_where_nothing_is_in_doubt() {
    for table in [
        "Mean (ms); Std_Dev (ms)\n10;1\n",
        "mean\tsd\n10 ms\t1 ms\n",
        "\u{feff}mean,sd\r\n10 ms,1 ms\r\n",
        "Mean (ms),sd,max,n\n10,1,12,5\n",
        "mean,sd,unit\n10,1,ms\n\n,,\n20,2,ms\n",
        "mean,sd,note\n10 ms,5 %\n",
        "unit,summary,max\ns,\"70.66 (±7.05)\",90\n",
        "summary (s),max\n\"70.66 (±7.05)\",90 s\n",
        "mean (s),sd\n0.5,1e-05\n",
        "baseline,value\n5 ms,0\n",
    ] {
        let read = audit(table);
        assert!(read.is_ok(), "{table}: {read:?}");
    }
}

#[test]
fn a_slip_in_a_heading_is_a_note() {
    let audit = audit("measure,medain\nlatency,3 ms\n").expect("a table");
    assert_eq!(audit.findings[0].evidence[0].text, "`medain`: did you mean `median`?");
}

#[test]
fn a_table_that_compares_nothing_says_what_is_missing() {
    let audit = audit("pool,rps,p99\nsmall,45000,9.8ms\nlarge,12000,40ms\n").expect("a table");
    let finding = audit.findings.iter().find(|one| one.topic == "nothing compared").expect("a note");
    assert_eq!(finding.evidence[0].text, "the column `pool` is not known and names rows");
    let wide = plimsoll_audit::audit("Test,v10.0.0,v10.1.0\nMySQL,10081,10652\nPostgres,13185,13967\n");
    assert!(wide.is_err(), "none of its headings is known");
}

#[test]
fn a_usual_heading_names_variants_where_no_other_does() {
    let comparisons = |table: &str| audit(table).expect("a table").comparisons;
    assert_eq!(comparisons("Tool,rps\nwrk,45000\nab,12000\n"), 1);
    assert_eq!(comparisons("version,variant,rps\n1,a,45000\n2,b,12000\n"), 0);
    assert_eq!(comparisons("version,server,rps\n1,a,45000\n2,b,12000\n"), 0, "which one is not clear");
    assert_eq!(comparisons("version,baseline,rps\n1,45000,40000\n2,12000,11000\n"), 2);
}

/// A cell that means something, or nothing.
fn cell() -> impl Strategy<Value = String> {
    prop_oneof![
        "[ -~]{0,12}",
        (any::<f64>(), prop::sample::select(vec!["", " ms", "%", " MB/s", "+", " users"]))
            .prop_map(|(value, unit)| format!("{value}{unit}")),
        (0..2000_u32, prop::sample::select(vec!["", " ms", "%", " MB", "/s"]))
            .prop_map(|(value, unit)| format!("{value}{unit}")),
        prop::sample::select(vec![
            "0",
            "-",
            "ramp",
            "same",
            "improvement",
            "cold",
            "0 -> 5",
            "AAABBB",
            "yes",
            "lower",
            "read",
            "a=1; b=2"
        ])
        .prop_map(str::to_owned),
    ]
}

proptest! {
    /// Never a panic, never a NaN, and the same text gives the same audit.
    #[test]
    fn every_text_has_an_answer(
        headings in prop::sample::subsequence(
            vec!["measure", "variant", "n", "requests", "mean", "median", "sd", "min", "max", "p95", "value", "baseline", "change",
                "claim", "variance", "order", "size", "operation", "mode", "users", "rate", "duration", "think", "call", "settings",
                "errors", "data", "method", "target", "generator cpu", "best", "label"],
            1..10,
        ),
        rows in prop::collection::vec(prop::collection::vec(cell(), 10), 0..6),
    ) {
        let rows: Vec<String> = rows.iter().map(|row| {
            let cells: Vec<String> = row.iter().take(headings.len()).map(|cell| format!("\"{}\"", cell.replace('"', ""))).collect();
            cells.join(",")
        }).collect();
        let table = format!("{}\n{}\n", headings.join(","), rows.join("\n"));
        let first = audit(&table);
        prop_assert_eq!(&first, &audit(&table));
        if let Ok(read) = first {
            for text in [terminal("table", &read), json("table", &read)] {
                prop_assert!(!text.contains("NaN"), "{}", text);
            }
        }
    }

    #[test]
    fn no_text_is_too_strange(text in "(?s).{0,200}") {
        let _ = audit(&text);
    }

    /// Numbers that are sound on their own, without any claim, raise no problem in any order of
    /// columns.
    #[test]
    fn the_order_of_columns_does_not_matter(order in Just(vec![0, 1, 2, 3, 4]).prop_shuffle()) {
        let headings = ["variant", "mean", "sd", "median", "n"];
        let rows = [["a", "70.66 s", "7.05 s", "80.50 s", "5"], ["b", "70.66 s", "7.05 s", "71 s", "5"]];
        let line = |cells: &[&str; 5]| order.iter().map(|at| cells[*at]).collect::<Vec<_>>().join(",");
        let table = format!("{}\n{}\n{}\n", line(&headings), line(&rows[0]), line(&rows[1]));
        let audit = audit(&table).expect("a table");
        prop_assert_eq!(audit.findings.iter().filter(|one| one.topic == "impossible numbers").count(), 1);
    }
}
