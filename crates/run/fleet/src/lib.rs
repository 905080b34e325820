//! Load from many hosts. Agents wait at a NATS broker; a run has some of them generate its load, each its share. To the run,
//! the [`Fleet`] is a generator like the threads of its own process.
//!
//! Together, agents generate the load of one generator: each computes the whole schedule and takes its share, all
//! begin at one instant, and their histograms add up bucket by bucket. A load of which any part is missing is void.

mod agent;
mod broker;
mod buckets;
mod clock;
mod coordinator;
mod delivery;
mod files;
mod job;
mod member;
mod message;
mod permit;
mod records;
mod seconds;
mod subjects;
mod worker;

pub use agent::{Agent, AgentError};
pub use broker::{Broker, BrokerError};
pub use coordinator::{Fleet, FleetError, Wanted};
pub use message::AgentFacts;
pub use permit::Permits;
