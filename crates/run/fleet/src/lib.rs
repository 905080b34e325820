//! Load from many hosts, and systems on them. Agents wait at a NATS broker; a run has some of them generate its load, each
//! its share. To the run, the [`Fleet`] is a generator like the threads of its own process. Other agents run systems of the
//! study: each is a [`Host`](plimsoll_runner::host::Host).
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
mod host;
mod job;
mod member;
mod message;
mod own_folder;
mod permit;
mod records;
mod search;
mod seconds;
mod subjects;
mod systems;
mod worker;

pub use agent::{Agent, AgentError, SystemsHere};
pub use broker::{Broker, BrokerError};
pub use coordinator::Fleet;
pub use message::{AgentFacts, PlaceForSystems};
pub use permit::Permits;
pub use search::{FleetError, Wanted};
