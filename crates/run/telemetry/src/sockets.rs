//! Counters of TCP sockets, of the network namespace of this process.

use plimsoll_model::sample::HostSample;
use procfs::Current;
use procfs::net::Snmp;
use std::fs;
use std::time::Duration;

/// Counters at one instant; none of what the kernel does not say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SocketCounters {
    in_use: Option<u64>,
    time_wait: Option<u64>,
    /// Segments sent again since the machine started.
    retransmitted: Option<u64>,
    /// Packets of new connections dropped by listening sockets since the machine started.
    listen_overflows: Option<u64>,
}

/// TCP sockets of the network namespace of this process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpSockets {
    /// Sockets in use; none where the kernel does not say it.
    pub in_use: Option<u64>,
    /// Segments sent again since the machine started; none where the kernel does not say it.
    pub retransmitted: Option<u64>,
}

/// The TCP sockets at present.
#[must_use]
pub fn tcp_sockets() -> TcpSockets {
    let SocketCounters { in_use, retransmitted, .. } = SocketCounters::read();
    TcpSockets { in_use, retransmitted }
}

impl SocketCounters {
    pub(crate) fn read() -> SocketCounters {
        let text = |file: &str| fs::read_to_string(file).unwrap_or_default();
        let sockets = text("/proc/net/sockstat") + &text("/proc/net/sockstat6");
        SocketCounters {
            in_use: sum(&sockets, "inuse"),
            time_wait: sum(&sockets, "tw"),
            retransmitted: Snmp::current().ok().map(|snmp| snmp.tcp_retrans_segs),
            listen_overflows: column(&text("/proc/net/netstat"), "TcpExt:", "ListenOverflows"),
        }
    }

    /// Adds to a sample what there is, and what happened since `before`, which was `span` ago.
    pub(crate) fn add_to(&self, sample: &mut HostSample, before: &SocketCounters, span: Duration) {
        let per_second =
            |now: Option<u64>, then: Option<u64>| Some(now?.saturating_sub(then?) as f64 / span.as_secs_f64());
        sample.tcp_sockets = self.in_use;
        sample.tcp_time_wait = self.time_wait;
        sample.tcp_retransmitted = per_second(self.retransmitted, before.retransmitted);
        sample.listen_overflows = per_second(self.listen_overflows, before.listen_overflows);
    }
}

/// The sum of a number over the lines of `/proc/net/sockstat` and `sockstat6` that are about TCP: names, each followed by its
/// number.
fn sum(text: &str, name: &str) -> Option<u64> {
    let of_tcp = text.lines().filter_map(|line| line.strip_prefix("TCP: ").or_else(|| line.strip_prefix("TCP6: ")));
    let number = |line: &str| line.split_whitespace().skip_while(|word| *word != name).nth(1)?.parse::<u64>().ok();
    of_tcp.filter_map(number).reduce(|one, other| one + other)
}

/// A number of `/proc/net/netstat`, where a line of names stands above each line of numbers, both behind the same word.
fn column(text: &str, of: &str, name: &str) -> Option<u64> {
    let mut lines = text.lines().filter(|line| line.starts_with(of)).map(str::split_whitespace);
    let (mut names, mut numbers) = (lines.next()?, lines.next()?);
    numbers.nth(names.position(|one| one == name)?)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn numbers_are_found_by_their_names() {
        let sockets =
            "sockets: used 285\nTCP: inuse 9 orphan 1 tw 30 alloc 44 mem 12\nUDP: inuse 2 mem 0\nTCP6: inuse 4\n";
        assert_eq!((sum(sockets, "inuse"), sum(sockets, "tw"), sum(sockets, "none")), (Some(13), Some(30), None));
        let netstat = "TcpExt: TW ListenOverflows ListenDrops\nTcpExt: 71 3 4\nIpExt: InOctets\nIpExt: 88\n";
        assert_eq!(column(netstat, "TcpExt:", "ListenOverflows"), Some(3));
        assert_eq!((column(netstat, "TcpExt:", "InOctets"), column("", "TcpExt:", "TW")), (None, None));
    }

    #[test]
    fn counters_that_count_on_are_rates_and_the_others_what_there_is() {
        let before =
            SocketCounters { in_use: Some(50), time_wait: Some(1), retransmitted: Some(10), listen_overflows: None };
        let after =
            SocketCounters { in_use: Some(20), time_wait: None, retransmitted: Some(16), listen_overflows: Some(9) };
        let mut sample = HostSample::default();
        after.add_to(&mut sample, &before, Duration::from_secs(2));
        assert_eq!((sample.tcp_sockets, sample.tcp_time_wait), (Some(20), None));
        assert_eq!((sample.tcp_retransmitted, sample.listen_overflows), (Some(3.0), None));
    }

    #[test]
    fn a_listening_socket_is_one_in_use() {
        let _listening = TcpListener::bind("127.0.0.1:0").expect("a socket");
        let counters = SocketCounters::read();
        assert!(counters.in_use.expect("sockets") >= 1, "{counters:?}");
        assert!(counters.retransmitted.is_some() && counters.listen_overflows.is_some(), "{counters:?}");
    }
}
