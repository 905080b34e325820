//! Resources that loads use up, and what is known of each.

use plimsoll_statistics::Interval;
use std::fmt;

/// A resource is used up from this share of it on.
const USED_UP: f64 = 0.9;

/// The same for connections that wait for a lock: users whose work is done one after the other wait all but one.
const WAITING_FOR_LOCKS: f64 = 0.5;

/// The same for lines that say that something waited, as a share of the requests: a system that writes of waits at all
/// usually does so of long ones.
const WAITING: f64 = 0.01;

/// The same for memory, as the share of the time in which some task of the machine waits for it.
const WAITING_FOR_MEMORY: f64 = 0.1;

/// A quota is used up as well where the system was throttled in this share of the scheduling periods: it is a limit for each
/// tenth of a second, which work that comes in bursts reaches while on average some is left.
const THROTTLED: f64 = 0.5;

/// A resource that load can use up.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Resource {
    /// The processors of the machine, whoever uses them.
    Machine,
    /// The processors of another host, on which systems run.
    Host(String),
    /// The processors that a system is bound to.
    Processors(String),
    /// The CPU that control groups allow Plimsoll and the systems together: that of a container.
    Container,
    /// The CPU that a control group allows a system.
    Quota(String),
    /// One thread of a system, which is all that works.
    Thread(String),
    /// The connections of clients to a database: a pool that has no free one.
    Connections(String),
    /// Connections to a database that wait for a lock.
    Locks(String),
    /// The busiest disk of the machine.
    Disk,
    /// The memory of the machine, for which tasks wait.
    Memory,
    /// The queues of listening sockets: new connections that none accepts in time.
    Accepting,
    /// What a system writes in its output that it waits for, by the name in the study.
    Wait(String, String),
}

impl Resource {
    /// The share of it from which on it counts as used up.
    pub(super) fn limit(&self) -> f64 {
        match self {
            Resource::Locks(_) => WAITING_FOR_LOCKS,
            Resource::Wait(..) | Resource::Accepting => WAITING,
            Resource::Memory => WAITING_FOR_MEMORY,
            _ => USED_UP,
        }
    }

    /// True if this use of it is as much as there is.
    pub(super) fn is_used_up_by(&self, used: Use) -> bool {
        let throttled = matches!(self, Resource::Quota(_)) && used.saturation.is_some_and(|share| share >= THROTTLED);
        used.share() >= self.limit() || throttled
    }

    /// A rank of how much else may use it up, the most specific first. A thread, or a system's own processors, that are used
    /// up are not held back by the rest of the machine, and connections that wait for locks not by how many there are. Waits
    /// for a pool, a pool without a free connection, and connections that none accepts may be what follows from anything that
    /// is slow.
    fn generality(&self) -> u8 {
        match self {
            Resource::Thread(_) | Resource::Processors(_) | Resource::Quota(_) | Resource::Locks(_) => 0,
            Resource::Memory | Resource::Container => 1,
            Resource::Machine | Resource::Host(_) | Resource::Disk => 2,
            Resource::Wait(..) => 3,
            Resource::Connections(_) | Resource::Accepting => 4,
        }
    }

    /// True for what there is an amount of that a variant may have more of.
    pub(super) fn has_amount(&self) -> bool {
        self.is_of_processors() && !self.is_time() || matches!(self, Resource::Connections(_))
    }

    /// True for waits, which are told as a share of the requests.
    #[must_use]
    pub fn is_wait(&self) -> bool {
        matches!(self, Resource::Wait(..) | Resource::Accepting)
    }

    /// True for what is a share of the time, and so has no amount.
    #[must_use]
    pub fn is_time(&self) -> bool {
        matches!(self, Resource::Disk | Resource::Memory | Resource::Thread(_))
    }

    /// True for what is counted in cores, which an iteration takes a fixed time of.
    #[must_use]
    pub fn is_of_processors(&self) -> bool {
        self.is_shared() || matches!(self, Resource::Processors(_) | Resource::Quota(_) | Resource::Thread(_))
    }

    /// True for what everything on the machine uses.
    pub(super) fn is_of_the_machine(&self) -> bool {
        self.is_shared() || matches!(self, Resource::Disk | Resource::Memory | Resource::Accepting)
    }

    /// True for processors that all systems, and Plimsoll, share.
    #[must_use]
    pub fn is_shared(&self) -> bool {
        matches!(self, Resource::Machine | Resource::Host(_) | Resource::Container)
    }
}

impl fmt::Display for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Resource::Machine => f.write_str("the processors of the machine"),
            Resource::Host(host) => write!(f, "the processors of host {host}"),
            Resource::Processors(system) => write!(f, "the processors of {system}"),
            Resource::Container => f.write_str("the CPU that this container may use"),
            Resource::Quota(system) => write!(f, "the CPU quota of {system}"),
            Resource::Thread(system) => write!(f, "one thread of {system}"),
            Resource::Connections(database) => write!(f, "the connections to {database}"),
            Resource::Locks(database) => write!(f, "locks in {database}"),
            Resource::Disk => f.write_str("the disk"),
            Resource::Memory => f.write_str("the memory of the machine"),
            Resource::Accepting => f.write_str("the queues of connections to be accepted"),
            Resource::Wait(system, wait) => write!(f, "{wait} of {system}"),
        }
    }
}

/// The use of a resource by a load, and the amount that there is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Use {
    /// The part that is used: cores, connections, a share of the time, or waits per second.
    pub used: f64,
    /// The amount that there is; of waits, the requests per second.
    pub of: f64,
    /// The share of the time in which something had to wait for it; none where that is not known.
    pub saturation: Option<f64>,
}

impl Use {
    /// The share that is used.
    #[must_use]
    pub fn share(self) -> f64 {
        self.used / self.of
    }
}

/// A resource over the loads.
#[derive(Clone, Debug, PartialEq)]
pub struct ResourceUse {
    /// The resource.
    pub resource: Resource,
    /// Its use by level of load, the median of the loads.
    pub levels: Vec<(f64, Use)>,
    /// The level of loads that were too much at which most of it was used; none where no load was too much.
    pub at_most: Option<(f64, Use)>,
    /// The demand of an iteration; none for what is not counted in cores.
    pub demand: Option<Demand>,
    /// True if it allows about as many iterations as there were at most.
    pub explains: bool,
    /// The certainty that it is what gave out.
    pub grade: Grade,
    /// The effect of more of it, where another variant has more.
    pub intervention: Option<Intervention>,
}

impl ResourceUse {
    /// The amount that there is, at the largest load.
    pub(super) fn amount(&self) -> Option<f64> {
        self.levels.last().map(|(_, used)| used.of)
    }
}

/// Two variants, one of which has more of a resource that the other one used up.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Intervention {
    /// The amount in the variant that used it up.
    pub less: f64,
    /// The amount in the other variant.
    pub more: f64,
    /// The capacity of the variant with more, over that of the variant with less.
    pub ratio: f64,
    /// Its interval, which leaves out no change.
    pub interval: Interval,
}

/// The demand of an iteration for a resource.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Demand {
    /// In seconds of a processor.
    pub of_iteration: f64,
    /// The iterations per second that the resource allows.
    pub allows: f64,
}

/// The certainty that a resource is what gave out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Grade {
    /// It was not used up.
    Free,
    /// It was used up by light loads that passed as well, so that it tells loads that are too much from others in nothing.
    Always,
    /// It was used up by loads that were too much.
    UsedUp,
    /// The same, and it allows about as many iterations as there were at most.
    Explains,
    /// It was used up, and a variant with more of it has a larger capacity.
    Shown,
}

/// A part of what was used of the machine's processors.
#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    /// The user.
    pub of: User,
    /// In cores.
    pub cores: f64,
}

/// A user of processors.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum User {
    /// A system of the study.
    System(String),
    /// Plimsoll, which generates the load.
    Generator,
    /// Everything else.
    Others,
}

impl fmt::Display for User {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            User::System(name) => f.write_str(name),
            User::Generator => f.write_str("the load generator"),
            User::Others => f.write_str("other programs and the kernel"),
        }
    }
}

/// The resources of a variant, with those that gave out.
#[derive(Clone, Debug, PartialEq)]
pub struct GaveOut {
    /// All resources that were observed: the surest first, then the most used.
    pub resources: Vec<ResourceUse>,
    /// The users of the machine's processors at the loads that were too much, the largest first.
    pub parts: Vec<Part>,
    /// The requests that are served at a time, as it looks from outside: the most requests per second times the mean duration
    /// of one at the lightest load (Little's law). None where that load is not light.
    pub at_a_time: Option<f64>,
}

impl GaveOut {
    /// The resource that gave out: the surest of those that were used up.
    #[must_use]
    pub fn first(&self) -> Option<&ResourceUse> {
        self.resources.first().filter(|one| one.grade >= Grade::UsedUp)
    }

    /// The surest first; of those that are equally sure the most specific, then the most used.
    pub(super) fn sort(&mut self) {
        let place = |one: &ResourceUse| if one.grade < Grade::UsedUp { 0 } else { one.resource.generality() };
        let share = |one: &ResourceUse| one.at_most.map_or(0.0, |(_, used)| used.share());
        self.resources.sort_by(|one, other| {
            let by_grade = other.grade.cmp(&one.grade);
            by_grade.then(place(one).cmp(&place(other))).then(share(other).total_cmp(&share(one)))
        });
    }
}
