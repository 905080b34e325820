//! Generates load with threads of this process.

use super::{Generator, JobMessage, JobUnderWay, NotReady, PreparedWorkload};
use plimsoll_generator::{Jobs, Prepared, Steering};
use plimsoll_model::job::{Job, JobError, JobRecord, Report};
use plimsoll_model::units::UnixTime;
use plimsoll_model::workload::Workload;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// The generator that runs load on threads of this process.
#[derive(Clone, Copy, Debug, Default)]
pub struct LocalThreads;

impl Generator for LocalThreads {
    fn prepare(&self, workload: &Workload, address: Option<SocketAddr>) -> Result<Box<dyn PreparedWorkload>, NotReady> {
        let prepared = Prepared::new(workload, address).map_err(|error| NotReady::Workload(error.to_string()))?;
        Ok(Box::new(LocalWorkload { prepared: Arc::new(prepared), users: None }))
    }
}

struct LocalWorkload {
    prepared: Arc<Prepared>,
    /// Users that stay for the next job.
    users: Option<LocalUsers>,
}

/// The thread that runs the jobs of the same users.
#[derive(Clone)]
struct LocalUsers {
    jobs: Sender<QueuedJob>,
    interrupted: Arc<AtomicBool>,
    thread: UserThread,
}

/// A job, what is decided about it meanwhile, and where its messages go.
type QueuedJob = (Job, Steering, Arc<Sender<JobMessage>>);

/// The thread, until someone waits for its end: the workload, or the job under way.
type UserThread = Arc<Mutex<Option<JoinHandle<()>>>>;

fn join(thread: &UserThread) -> std::thread::Result<()> {
    let thread = thread.lock().unwrap_or_else(PoisonError::into_inner).take();
    thread.map_or(Ok(()), JoinHandle::join)
}

impl PreparedWorkload for LocalWorkload {
    fn begin(&mut self, job: Job) -> Box<dyn JobUnderWay> {
        // After an interruption the old users have ended.
        let users = self.users.take().filter(|users| !users.interrupted.load(Ordering::Relaxed));
        let users = users.unwrap_or_else(|| LocalUsers::start(&self.prepared));
        self.users = job.stays.then(|| users.clone());
        let (sender, messages) = channel();
        let (ends_users, sender) = (!job.stays, Arc::new(sender));
        // Only the thread of the users keeps the sender: without it, the messages are at their end.
        let weak = Arc::downgrade(&sender);
        let steering = Steering::awaiting(move || {
            let _ = weak.upgrade().map(|sender| sender.send(JobMessage::Ready));
        });
        // A thread that has ended takes no job, which then ends without a record.
        let _ = users.jobs.send((job, steering.clone(), sender));
        let LocalUsers { interrupted, thread, .. } = users;
        Box::new(LocalJob { messages, interrupted, steering, thread, ends_users, is_over: false })
    }
}

impl Drop for LocalWorkload {
    fn drop(&mut self) {
        let Some(LocalUsers { jobs, thread, .. }) = self.users.take() else { return };
        drop(jobs);
        let _ = join(&thread);
    }
}

impl LocalUsers {
    fn start(prepared: &Arc<Prepared>) -> LocalUsers {
        let (jobs, queue) = channel();
        let interrupted = Arc::new(AtomicBool::new(false));
        let (prepared, stop) = (Arc::clone(prepared), Arc::clone(&interrupted));
        let thread = std::thread::spawn(move || {
            let mut queue = JobQueue { queue, steering: Steering::default(), messages: None };
            if let Err(error) = prepared.run_all(&mut queue, &stop) {
                queue.say(JobMessage::Ended(Err(error)));
            }
        });
        LocalUsers { jobs, interrupted, thread: Arc::new(Mutex::new(Some(thread))) }
    }
}

struct JobQueue {
    queue: Receiver<QueuedJob>,
    /// The caller's decisions about the job that runs.
    steering: Steering,
    /// Where the messages of the job that runs go.
    messages: Option<Arc<Sender<JobMessage>>>,
}

impl JobQueue {
    fn say(&self, message: JobMessage) {
        if let Some(messages) = &self.messages {
            // If the receiver is gone, the message is not needed.
            let _ = messages.send(message);
        }
    }
}

impl Jobs for JobQueue {
    fn next(&mut self) -> Option<Job> {
        let (job, steering, messages) = self.queue.recv().ok()?;
        (self.steering, self.messages) = (steering, Some(messages));
        Some(job)
    }

    fn report(&mut self, report: Report) {
        self.say(JobMessage::Report(report));
    }

    fn ended(&mut self, record: JobRecord) {
        self.say(JobMessage::Ended(Ok(Box::new(record))));
        self.messages = None;
    }

    fn steering(&self) -> Steering {
        self.steering.clone()
    }
}

struct LocalJob {
    messages: Receiver<JobMessage>,
    interrupted: Arc<AtomicBool>,
    steering: Steering,
    thread: UserThread,
    /// True if the users do not stay after it.
    ends_users: bool,
    is_over: bool,
}

impl JobUnderWay for LocalJob {
    fn next(&mut self, wait: Duration) -> Option<JobMessage> {
        let message = match self.messages.recv_timeout(wait) {
            Ok(message) => message,
            Err(RecvTimeoutError::Timeout) => return None,
            Err(RecvTimeoutError::Disconnected) => JobMessage::Ended(Err(self.ended_without_record())),
        };
        self.is_over |= matches!(message, JobMessage::Ended(_));
        if matches!(message, JobMessage::Ended(Err(_))) {
            // The thread has ended: the next job has new users.
            self.stop();
        }
        Some(message)
    }

    fn begin_at(&mut self, begin: UnixTime) {
        self.steering.begin_at(begin);
    }

    fn stop(&mut self) {
        self.interrupted.store(true, Ordering::Relaxed);
    }

    fn set_users(&mut self, users: u32) {
        self.steering.set_users(users);
    }

    fn end(&mut self) {
        self.steering.end();
    }

    fn others_ended(&mut self) {
        self.steering.others_ended();
    }
}

impl LocalJob {
    /// The job ended without a record because its thread panicked: passes the panic on.
    fn ended_without_record(&mut self) -> JobError {
        match join(&self.thread) {
            Err(panic) => std::panic::resume_unwind(panic),
            Ok(()) => JobError::Loop("the job is over".to_owned()),
        }
    }
}

impl Drop for LocalJob {
    fn drop(&mut self) {
        if !self.is_over {
            self.stop();
            self.messages.iter().for_each(drop);
        }
        if self.ends_users {
            let _ = join(&self.thread);
        }
    }
}
