//! Generates load with threads of this process.

use super::{Generator, JobMessage, JobUnderWay, PreparedWorkload};
use plimsoll_generator::Prepared;
use plimsoll_model::job::{Job, JobError};
use plimsoll_model::workload::Workload;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// The generator that runs load on threads of this process.
#[derive(Clone, Copy, Debug, Default)]
pub struct LocalThreads;

impl Generator for LocalThreads {
    fn prepare(&self, workload: &Workload, address: Option<SocketAddr>) -> Result<Box<dyn PreparedWorkload>, String> {
        let prepared = Prepared::new(workload, address).map_err(|error| error.to_string())?;
        Ok(Box::new(LocalWorkload(Arc::new(prepared))))
    }
}

struct LocalWorkload(Arc<Prepared>);

impl PreparedWorkload for LocalWorkload {
    fn begin(&self, job: Job) -> Box<dyn JobUnderWay> {
        let (sender, messages) = channel();
        let interrupted = Arc::new(AtomicBool::new(false));
        let (prepared, stop) = (Arc::clone(&self.0), Arc::clone(&interrupted));
        let thread = std::thread::spawn(move || {
            // If the receiver is gone, the reports are not needed.
            let reports = &mut |report| drop(sender.send(JobMessage::Report(report)));
            let ended = prepared.run(&job, &stop, reports);
            let _ = sender.send(JobMessage::Ended(ended));
        });
        Box::new(LocalJob { messages, interrupted, thread: Some(thread) })
    }
}

struct LocalJob {
    messages: Receiver<JobMessage>,
    interrupted: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl JobUnderWay for LocalJob {
    fn next(&mut self, wait: Duration) -> Option<JobMessage> {
        match self.messages.recv_timeout(wait) {
            Ok(message) => Some(message),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => Some(JobMessage::Ended(Err(self.ended_without_record()))),
        }
    }

    fn stop(&mut self) {
        self.interrupted.store(true, Ordering::Relaxed);
    }
}

impl LocalJob {
    /// The thread ended without a record because it panicked: passes the panic on.
    fn ended_without_record(&mut self) -> JobError {
        match self.thread.take().map(JoinHandle::join) {
            Some(Err(panic)) => std::panic::resume_unwind(panic),
            _ => JobError::Loop("the job is over".to_owned()),
        }
    }
}

impl Drop for LocalJob {
    fn drop(&mut self) {
        self.stop();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
