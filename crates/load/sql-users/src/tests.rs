use super::*;

fn fails(kind: ErrorKind) -> Result<TransactionEnd, SqlError> {
    Err(SqlError::new(kind, "the server says so"))
}

/// Runs a transaction whose attempts end like this. Returns its result, the number of attempts, and the
/// retries by kind of error.
fn retried(
    retry: &Retry,
    ends: &[Result<TransactionEnd, SqlError>],
) -> (Result<TransactionEnd, ErrorKind>, usize, BTreeMap<ErrorKind, u64>) {
    let (mut retries, mut made) = ([0; ErrorKind::ALL.len()], 0);
    let result = run_with_retries(retry, &mut retries, &Call::untimed(Duration::from_secs(60)), || {
        made += 1;
        ends[made - 1].clone()
    });
    (result.map_err(|error| error.kind), made, by_kind(&retries))
}

#[test]
fn only_what_the_study_names_is_tried_again_and_only_so_often() {
    let retry = Retry { on: vec![ErrorKind::Deadlock, ErrorKind::Serialization], attempts: 3 };
    let (deadlock, lock) = (fails(ErrorKind::Deadlock), fails(ErrorKind::LockTimeout));
    let good = || Ok(TransactionEnd::Committed);
    for (ends, result, retries) in [
        (vec![good()], Ok(TransactionEnd::Committed), 0),
        (vec![deadlock.clone(), good()], Ok(TransactionEnd::Committed), 1),
        (vec![deadlock.clone(), deadlock.clone(), deadlock.clone()], Err(ErrorKind::Deadlock), 2),
        (vec![deadlock.clone(), lock.clone()], Err(ErrorKind::LockTimeout), 1),
        (vec![lock], Err(ErrorKind::LockTimeout), 0),
    ] {
        let (found, made, counted) = retried(&retry, &ends);
        assert_eq!((found, made), (result, ends.len()), "{ends:?}");
        assert_eq!(counted.get(&ErrorKind::Deadlock).copied().unwrap_or_default(), retries, "{ends:?}");
    }
    let never = Retry::default();
    assert_eq!(retried(&never, &[deadlock]), (Err(ErrorKind::Deadlock), 1, BTreeMap::new()));
}

#[test]
fn a_lost_connection_is_not_tried_again_by_itself() {
    let retry = Retry { on: vec![ErrorKind::Closed], attempts: 3 };
    assert_eq!(retried(&retry, &[fails(ErrorKind::Closed)]).1, 1);
}

#[test]
fn statistics_of_users_are_added_up() {
    let mut all = UserStatistics::default();
    let mut one = UserStatistics {
        statements: vec![StatementTimes { runs: 2, longest: 7, ..Default::default() }],
        ..all.clone()
    };
    one.retries[ErrorKind::Deadlock as usize] = 3;
    all.merge(&one);
    all.merge(&one);
    assert_eq!((all.statements[0].runs, all.statements[0].longest), (4, 7));
    assert_eq!(by_kind(&all.retries), BTreeMap::from([(ErrorKind::Deadlock, 6)]));
}
