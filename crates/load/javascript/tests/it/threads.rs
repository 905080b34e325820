//! Users of one program on several threads.

use crate::common::{User, program};
use plimsoll_javascript::Parked;

#[test]
fn threads_share_what_was_compiled_once() {
    let program =
        program("import { ask } from 'wire'; let n = 0; export default () => { n += 1; return ask('a') + n; };");
    std::thread::scope(|threads| {
        for _ in 0..4 {
            threads.spawn(|| {
                let mut user = User::of(&program);
                user.answers.insert("a", vec!["n = "]);
                assert_eq!(user.load(), Parked::Over(Ok(None)));
                assert_eq!(user.returned(), "\"n = 1\"");
                assert_eq!(user.returned(), "\"n = 2\"");
            });
        }
    });
}
