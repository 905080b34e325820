//! The interface of a load generator. It prepares a workload, runs a job and sends reports meanwhile. Only plain data
//! passes in either direction. [`LocalThreads`] generate load in this process.

mod local;

pub use local::LocalThreads;

use plimsoll_model::job::{Job, JobError, JobRecord, Report};
use plimsoll_model::workload::Workload;
use std::net::SocketAddr;
use std::time::Duration;

/// A load generator.
pub trait Generator {
    /// Compiles a workload for the system at `address`; there is none for a workload without target.
    ///
    /// # Errors
    /// Says in words what is wrong with the workload.
    fn prepare(&self, workload: &Workload, address: Option<SocketAddr>) -> Result<Box<dyn PreparedWorkload>, String>;
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

    /// Asks the job to stop early. It still ends with a record.
    fn stop(&mut self);

    /// From now on so many users are to be at work, in a job whose number of users a control loop changes.
    fn set_users(&mut self, users: u32);

    /// Ends such a job: no more iterations begin.
    fn end(&mut self);
}

/// A message of a job.
#[derive(Debug)]
pub enum JobMessage {
    /// A report while it runs.
    Report(Report),
    /// It is over: its record, or the reason why it failed.
    Ended(Result<Box<JobRecord>, JobError>),
}
