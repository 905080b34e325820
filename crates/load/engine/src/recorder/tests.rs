use super::*;
use plimsoll_model::record::Metric;
use std::sync::mpsc::channel;

/// The ticks in which iterations of 5 ms ended that were done at these instants, in
/// milliseconds, with a measure phase of 1.25 s.
fn ticks(done: &[i64]) -> Vec<(i64, u64)> {
    let (sender, receiver) = channel();
    let at = |milliseconds: i64| Instant(milliseconds * 1_000_000);
    let mut recorder = Recorder::new(&["call"], false, at(-1250), at(1250), 0, sender);
    for milliseconds in done {
        let (sent, done) = (at(milliseconds - 5), at(*milliseconds));
        let outcome = Outcome::Ok;
        let exchange = Exchange { scheduled: sent, sent, first_byte: None, done, bytes_out: 0, bytes_in: 0, outcome };
        let phase = if *milliseconds < 5 { RecordedPhase::Warmup } else { RecordedPhase::Measure };
        recorder.record(ITERATION, phase, &exchange);
        recorder.record(request(0), phase, &exchange);
    }
    recorder.finish(at(3000));
    let mut ticks = Vec::new();
    for report in receiver {
        let ThreadReport::Interval(_, interval) = report else { continue };
        for (tick, ticked) in (interval.second * TICKS as i64..).zip(interval.ticks) {
            assert_eq!(ticked.total, ticked.iterations * 5_000_000);
            ticks.extend((ticked.iterations > 0).then_some((tick, ticked.iterations)));
        }
    }
    ticks
}

/// The only second and the findings of a recorder with one step, after `record` has used it.
fn recorded(record: impl FnOnce(&mut Recorder)) -> (Interval, Findings) {
    let (sender, receiver) = channel();
    let mut recorder = Recorder::new(&["call"], false, Instant(0), Instant(SECOND), 0, sender);
    record(&mut recorder);
    recorder.finish(Instant(SECOND / 2));
    let (mut interval, mut findings) = (None, None);
    for report in receiver {
        match report {
            ThreadReport::Interval(_, one) => interval = Some(*one),
            ThreadReport::Finished(_, found) => findings = Some(*found),
        }
    }
    (interval.expect("a second"), findings.expect("findings"))
}

#[test]
fn names_that_come_up_are_kept_apart_up_to_an_end() {
    let request = |number: usize| Subject::Request(format!("GET /{number}"));
    let (interval, findings) = recorded(|recorder| {
        for number in (0..MOST_NAMES + 100).chain(0..MOST_NAMES) {
            let subject = recorder.subject(&request(number));
            recorder.record_check(subject, RecordedPhase::Measure, true, Instant(1));
        }
        let check = recorder.subject(&Subject::Check("a check is no request".to_owned()));
        recorder.record_check(check, RecordedPhase::Measure, true, Instant(1));
    });
    let made = |subject: Subject| interval.tallies[&(RecordedPhase::Measure, subject)].count();
    assert_eq!(interval.tallies.len(), MOST_NAMES + 2);
    assert_eq!((made(request(0)), made(request(MOST_NAMES - 1))), (2, 2));
    assert_eq!(made(Subject::Request(OTHERS.to_owned())), 100);
    assert_eq!(made(Subject::Check("a check is no request".to_owned())), 1);
    assert!(matches!(&findings.warnings[..], [one] if one.starts_with("more than 500 different names of request:")));
}

#[test]
fn names_count_together_on_all_threads() {
    let (sender, _receiver) = channel();
    let names = Arc::default();
    let [mut one, mut other] = [0, 1]
        .map(|thread| Recorder::new(&[], false, Instant(0), Instant(SECOND), thread, sender.clone()).sharing(&names));
    let request = |number: usize| Subject::Request(format!("GET /{number}"));
    for number in 0..MOST_NAMES {
        one.subject(&request(number));
    }
    for number in [0, MOST_NAMES, MOST_NAMES + 1, 1] {
        other.subject(&request(number));
    }
    let names_known: Vec<String> = other.subjects[2..].iter().map(ToString::to_string).collect();
    assert_eq!(names_known, [request(0).to_string(), request(0).renamed(OTHERS).to_string(), request(1).to_string()]);
}

#[test]
fn checks_and_values_are_kept_beside_durations() {
    let check = Subject::Check("is 200".to_owned());
    let trend = Subject::Custom(Metric::Trend, "waiting".to_owned());
    let (interval, _) = recorded(|recorder| {
        let (check, trend) = (recorder.subject(&check), recorder.subject(&trend));
        for held in [true, false, true] {
            recorder.record_check(check, RecordedPhase::Measure, held, Instant(5));
        }
        for value in [2.5, 0.0, -1.0] {
            recorder.record_value(trend, RecordedPhase::Measure, value, Instant(6));
        }
    });
    let tally = |subject: &Subject| &interval.tallies[&(RecordedPhase::Measure, subject.clone())];
    assert_eq!((tally(&check).count(), tally(&check).errors[&ErrorKind::Check]), (3, 1));
    assert_eq!((tally(&trend).count(), tally(&trend).saturated), (3, 1));
    assert!((tally(&trend).service.max() as f64 / 2.5e6 - 1.0).abs() < 0.001);
}

#[test]
fn what_was_sent_is_held_against_what_became_of_it() {
    let (_, findings) = recorded(|recorder| {
        let at = Instant(1);
        let ended = |outcome| Exchange {
            scheduled: at,
            sent: at,
            first_byte: None,
            done: at,
            bytes_out: 0,
            bytes_in: 0,
            outcome,
        };
        let (ok, closed) = (ended(Outcome::Ok), ended(Outcome::Failed(ErrorKind::Closed)));
        recorder.count_carried(request(0));
        recorder.count_sent(request(0), 4);
        recorder.record(request(0), RecordedPhase::Warmup, &ok);
        recorder.record(request(0), RecordedPhase::Measure, &closed);
        recorder.record_unsent(request(0), RecordedPhase::Measure, &closed);
        recorder.record(ITERATION, RecordedPhase::Measure, &closed);
        recorder.count_abandoned(request(0));
        recorder.count_sent(CONNECT, 1);
        recorder.close_accounts(&[request(0), CONNECT, request(0)]);
        recorder.count_abandoned(request(0));
    });
    let [connect, call] = ["connect", "request:call"].map(|name| &findings.accounts[name]);
    assert!(findings.accounts.len() == 2 && call.holds() && connect.holds(), "{:?}", findings.accounts);
    assert_eq!((call.answered, call.failed[&ErrorKind::Closed], call.abandoned, call.in_flight), (1, 1, 1, 2));
}

#[test]
fn an_iteration_is_filed_under_the_tenth_of_a_second_in_which_it_ended() {
    let done = [-1249, -1200, -1, 0, 4, 99, 100, 999, 1000, 1249];
    let expected = [(-13, 1), (-12, 1), (-1, 1), (0, 3), (1, 1), (9, 1), (10, 1), (12, 1)];
    assert_eq!(ticks(&done), expected);
}

#[test]
fn what_drains_in_the_rest_of_the_last_second_goes_with_the_next_one() {
    assert_eq!(ticks(&[1249, 1260, 1999, 2000, 2150]), [(12, 1), (20, 3), (21, 1)]);
}
