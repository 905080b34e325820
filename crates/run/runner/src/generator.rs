//! What generates load, as the runner sees it: it prepares a workload, carries out a job and reports while it does.
//! Only plain data passes in either direction. [`LocalThreads`] generate in this process.

mod local;

pub use local::LocalThreads;

use plimsoll_model::job::{Job, JobError, JobRecord, Report};
use plimsoll_model::workload::Workload;
use std::net::SocketAddr;
use std::time::Duration;

/// Something that generates load.
pub trait Generator {
    /// Compiles a workload for a system at `address`, where it has a target.
    ///
    /// # Errors
    /// Whatever is wrong with the workload, in words.
    fn prepare(&self, workload: &Workload, address: Option<SocketAddr>) -> Result<Box<dyn PreparedWorkload>, String>;
}

/// A workload that is ready to be offered.
pub trait PreparedWorkload {
    /// Begins to carry out a job.
    fn begin(&self, job: Job) -> Box<dyn JobUnderWay>;
}

/// A job under way. Dropped, it stops and waits until nothing of it runs any more.
pub trait JobUnderWay {
    /// The next thing that the job has to say; none if nothing comes within `wait`. After [`JobMessage::Ended`] nothing
    /// follows.
    fn next(&mut self, wait: Duration) -> Option<JobMessage>;

    /// Asks the job to break off. It still ends with a record.
    fn stop(&mut self);
}

/// What a job says.
#[derive(Debug)]
pub enum JobMessage {
    /// A report of its course.
    Report(Report),
    /// It is over: with its record, or with the reason why it broke off.
    Ended(Result<JobRecord, JobError>),
}
