//! The interface of a load generator. It prepares a workload, runs a job and sends reports meanwhile. Only plain data
//! passes in either direction. [`LocalThreads`] generate load in this process.

mod local;

pub use local::LocalThreads;

use plimsoll_model::job::{Job, JobError, JobRecord, Report};
use plimsoll_model::units::UnixTime;
use plimsoll_model::workload::Workload;
use std::net::SocketAddr;
use std::time::Duration;

/// A load generator.
pub trait Generator {
    /// Compiles a workload for the system at `address`; there is none for a workload without target.
    ///
    /// # Errors
    /// Something is wrong with the workload, or the generator is gone.
    fn prepare(&self, workload: &Workload, address: Option<SocketAddr>) -> Result<Box<dyn PreparedWorkload>, NotReady>;
}

/// The reason why a workload cannot be offered, in words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotReady {
    /// Something is wrong with the workload, or with its system.
    #[error("{0}")]
    Workload(String),
    /// The run was interrupted.
    #[error("interrupted")]
    Interrupted,
    /// The generator can offer no load any more: the run ends, and resumes with another one.
    #[error("{0}")]
    Generator(String),
}

/// A workload that is ready to be offered.
pub trait PreparedWorkload {
    /// Begins to run a job, with the users of the last one if they stayed.
    fn begin(&mut self, job: Job) -> Box<dyn JobUnderWay>;
}

/// A job under way. Dropping it stops the job and waits until all its threads have ended.
pub trait JobUnderWay {
    /// The next message of the job; none if it sends none within `wait`. [`JobMessage::Ended`] is the last message.
    fn next(&mut self, wait: Duration) -> Option<JobMessage>;

    /// Names the instant at which the job begins, for one that waits for that
    /// ([`Begin::WhenTold`](plimsoll_model::job::Begin)): the answer to [`JobMessage::Ready`].
    fn begin_at(&mut self, begin: UnixTime);

    /// Asks the job to stop early. It still ends with a record.
    fn stop(&mut self);

    /// From now on so many users are to be at work, in a job whose number of users a control loop changes.
    fn set_users(&mut self, users: u32);

    /// Ends such a job: no more iterations begin.
    fn end(&mut self);

    /// The users of all other generators have ended: a script may be torn down.
    fn others_ended(&mut self);
}

/// A message of a job.
#[derive(Debug)]
pub enum JobMessage {
    /// Its users are ready, and it waits to be told when it begins.
    Ready,
    /// A report while it runs.
    Report(Report),
    /// It is over: its record, or the reason why it failed.
    Ended(Result<Box<JobRecord>, JobError>),
}
