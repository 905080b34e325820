//! The counter itself: what the study compares.

use std::fmt;
use std::str::FromStr;
use std::sync::{Mutex, MutexGuard};
use tokio::sync::{mpsc, oneshot};

/// How concurrent calls are synchronised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// A mutex around the counter; the reply has the value that was read under the lock.
    Mutex,
    /// A channel to the one task that owns the counter and answers each call by a channel of its own.
    InputQ,
    /// A mutex around the addition only: the value for the reply is read after unlocking, so that two calls can get the
    /// same number. A check of replies must catch this.
    Racy,
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Mode::Mutex => "mutex",
            Mode::InputQ => "inputQ",
            Mode::Racy => "racy",
        })
    }
}

impl FromStr for Mode {
    type Err = String;

    fn from_str(text: &str) -> Result<Mode, String> {
        let mode = [Mode::Mutex, Mode::InputQ, Mode::Racy].into_iter().find(|mode| mode.to_string() == text);
        mode.ok_or_else(|| format!("expected `mutex`, `inputQ` or `racy`, found `{text}`"))
    }
}

/// A counter that many calls add to at once.
#[derive(Debug)]
pub struct Count(Way);

#[derive(Debug)]
enum Way {
    Mutex(Mutex<i64>),
    InputQ(mpsc::Sender<Increment>),
    Racy(Mutex<i64>),
}

/// An addition on its way to the task that owns the counter.
#[derive(Debug)]
struct Increment {
    by: i64,
    reply: oneshot::Sender<i64>,
}

impl Count {
    /// A counter at zero. With a channel, a task of the current runtime owns it.
    #[must_use]
    pub fn new(mode: Mode) -> Count {
        Count(match mode {
            Mode::Mutex => Way::Mutex(Mutex::new(0)),
            Mode::Racy => Way::Racy(Mutex::new(0)),
            Mode::InputQ => {
                // A buffer of one is as close as tokio comes to Go's unbuffered channel.
                let (sender, receiver) = mpsc::channel(1);
                tokio::spawn(own(receiver));
                Way::InputQ(sender)
            }
        })
    }

    /// Adds `by` and returns the sum for the caller's reply.
    pub async fn add(&self, by: i64) -> i64 {
        match &self.0 {
            Way::Mutex(count) => {
                let mut count = lock(count);
                *count += by;
                *count
            }
            Way::Racy(count) => {
                *lock(count) += by;
                // The race in the original program lasts nanoseconds; yielding here lets other calls run in between.
                tokio::task::yield_now().await;
                *lock(count)
            }
            Way::InputQ(queue) => {
                let (reply, answer) = oneshot::channel();
                queue.send(Increment { by, reply }).await.expect("the owner lives as long as this sender");
                answer.await.expect("the owner answers every increment")
            }
        }
    }
}

async fn own(mut queue: mpsc::Receiver<Increment>) {
    let mut count = 0;
    while let Some(Increment { by, reply }) = queue.recv().await {
        count += by;
        // The caller may be gone; its addition stays.
        let _ = reply.send(count);
    }
}

fn lock(count: &Mutex<i64>) -> MutexGuard<'_, i64> {
    count.lock().expect("no holder of this lock panics")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mode_reads_back_from_its_name() {
        for mode in [Mode::Mutex, Mode::InputQ, Mode::Racy] {
            assert_eq!(mode.to_string().parse(), Ok(mode));
        }
        assert_eq!("Mutex".parse::<Mode>(), Err("expected `mutex`, `inputQ` or `racy`, found `Mutex`".to_owned()));
    }
}
