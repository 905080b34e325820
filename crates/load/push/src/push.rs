//! The thread that sends series to a receiver at intervals.

use crate::client::{Client, Unsent};
use crate::otlp;
use crate::remote_write;
use crate::settings::{Protocol, Settings};
use jiff::Timestamp;
use plimsoll_k6_run::metrics::{Metric, MetricId, Registry};
use plimsoll_k6_run::series::{Collector, Measure, Series, Table, Tags};
use std::borrow::Cow;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long a receiver may take for one request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);

/// How long a push may take with all its requests.
const PUSH_TIMEOUT: Duration = Duration::from_secs(30);

/// The most series of a request.
const SERIES_OF_REQUEST: usize = 1000;

/// Replaces the secrets in a text.
pub type Mask = Arc<dyn for<'t> Fn(&'t str) -> Cow<'t, str> + Send + Sync>;

/// The parts of a run that an output needs.
#[derive(Clone)]
pub struct Context {
    /// The metrics.
    pub registry: Arc<Registry>,
    /// Replaces secrets in the values of tags.
    pub mask: Mask,
    /// Receives a sentence at once when metrics cannot be sent.
    pub on_loss: Arc<dyn Fn(&str) + Send + Sync>,
}

/// An output that sends metrics to a server.
pub struct Push {
    collector: Arc<Collector>,
    /// The output and its server.
    shown: String,
    stop: mpsc::Sender<()>,
    thread: JoinHandle<Delivery>,
}

impl Push {
    /// Starts to send at intervals.
    ///
    /// # Errors
    /// A file of its settings cannot be read.
    pub fn start(settings: Settings, context: Context) -> Result<Push, String> {
        let collector = Arc::new(Collector::new(settings.distribution()));
        let shown = settings.to_string();
        let client = Client::new(settings.receiver.clone()).map_err(|why| format!("{shown}: {why}"))?;
        let began = Timestamp::now().as_millisecond();
        let (all, delivery) = (collector.table(), Delivery::default());
        let sender = Sender { route: Route { settings, client, context, began }, all, delivery };
        let (stop, stopped) = channel();
        let of_thread = Arc::clone(&collector);
        let thread = std::thread::spawn(move || sender.run(&of_thread, &stopped));
        Ok(Push { collector, shown, stop, thread })
    }

    /// Collects the series to send.
    #[must_use]
    pub fn collector(&self) -> &Arc<Collector> {
        &self.collector
    }

    /// Sends what is left, and returns what was lost, if anything was.
    #[must_use]
    pub fn finish(self) -> Option<String> {
        drop(self.stop);
        let lost = self
            .thread
            .join()
            .map_or_else(|_| Some("the thread that sends metrics has panicked".to_owned()), |delivery| delivery.lost());
        lost.map(|lost| format!("{}: {lost}", self.shown))
    }
}

/// A value of a series to send.
#[derive(Debug)]
pub(crate) struct Point<'a> {
    pub(crate) id: MetricId,
    pub(crate) metric: &'a Metric,
    pub(crate) tags: Vec<(&'a str, Cow<'a, str>)>,
    pub(crate) measure: &'a Measure,
    /// Its instant in milliseconds since 1970.
    pub(crate) at: i64,
}

/// The outcome of all pushes.
#[derive(Debug, Default)]
struct Delivery {
    pushes: u64,
    failed: u64,
    /// Why the last one failed that did.
    failure: String,
    /// Series with samples that the receiver does not know of.
    unsent: usize,
    /// Such series in whose tags a secret became known before they were received.
    withheld: usize,
    /// Points that the receiver did not take, and why.
    rejected: u64,
    rejection: String,
    /// Samples that there was no room for.
    left_out: u64,
}

impl Delivery {
    fn lost(&self) -> Option<String> {
        let mut lost = Vec::new();
        if self.failed > 0 {
            let outcome = match self.unsent {
                0 => "later ones made up for them, so that only values in between are missing".to_owned(),
                unsent => format!("the last values of {unsent} series were not received"),
            };
            let Delivery { failed, pushes, failure, .. } = self;
            lost.push(format!("{failed} of {pushes} pushes failed, the last of them with `{failure}`: {outcome}"));
        }
        if self.rejected > 0 {
            lost.push(format!("the receiver rejected {} points: {}", self.rejected, self.rejection));
        }
        if self.withheld > 0 {
            let withheld = self.withheld;
            lost.push(format!(
                "the last values of {withheld} series were left out, because a secret in their tags was read later"
            ));
        }
        if self.left_out > 0 {
            let left_out = self.left_out;
            lost.push(format!("{left_out} samples were left out, because there were too many series: use fewer tags"));
        }
        (!lost.is_empty()).then(|| lost.join("; "))
    }
}

/// The state of the thread.
struct Sender {
    route: Route,
    /// All series of the run so far.
    all: Table,
    delivery: Delivery,
}

/// Where values go, and how.
struct Route {
    settings: Settings,
    client: Client,
    context: Context,
    /// When the run began, in milliseconds since 1970.
    began: i64,
}

impl Sender {
    /// Sends at intervals, until the other side is gone.
    fn run(mut self, collector: &Collector, stopped: &Receiver<()>) -> Delivery {
        let interval = self.route.settings.interval;
        let mut next = Instant::now() + interval;
        while stopped.recv_timeout(next.saturating_duration_since(Instant::now())) == Err(RecvTimeoutError::Timeout) {
            self.push(collector);
            // A push that took longer than the interval is no reason for others at once.
            next = (next + interval).max(Instant::now());
        }
        if self.push(collector) {
            self.end_series();
        }
        self.delivery.unsent = number_of_new(named_for_good(self.all.series_mut(), &self.route.context.mask));
        self.delivery.withheld = number_of_new(self.all.series_mut()) - self.delivery.unsent;
        self.delivery.left_out = self.all.left_out();
        self.delivery
    }

    /// Sends what is new. False if a part of it was not received.
    fn push(&mut self, collector: &Collector) -> bool {
        // Two series that differ only in a secret would be one series twice for the receiver.
        collector.take_into(&mut self.all, &*self.route.context.mask);
        let repeats = self.route.repeats();
        let all = self.all.series_mut().filter(|(_, series)| repeats || series.is_new);
        let mut due: Vec<_> = named_for_good(all, &self.route.context.mask).collect();
        if due.is_empty() {
            return true;
        }
        due.sort_by_key(|(_, series)| series.metric);
        let deadline = Instant::now() + PUSH_TIMEOUT;
        let mut failure = None;
        for part in due.chunks_mut(SERIES_OF_REQUEST) {
            match self.route.send(part, deadline) {
                Ok(None) => {}
                Ok(Some((points, why))) => {
                    self.delivery.rejected += points;
                    self.delivery.rejection = why;
                }
                Err(Unsent { why, is_answer }) => {
                    failure = Some(why);
                    // A server that refuses one part may take the others.
                    if !is_answer {
                        break;
                    }
                }
            }
        }
        self.delivery.pushes += 1;
        let Some(why) = failure else { return true };
        if self.delivery.failed == 0 {
            self.route
                .warn(&format!("failed to send metrics: {why}; further failures are counted, and told at the end"));
        }
        self.delivery.failed += 1;
        self.delivery.failure = why;
        false
    }

    /// Says that all series have ended, where that was asked for.
    fn end_series(&mut self) {
        let Protocol::RemoteWrite(protocol) = &self.route.settings.protocol else { return };
        if !protocol.stale_markers {
            return;
        }
        let now = Timestamp::now().as_millisecond();
        let mut all: Vec<_> = named_for_good(self.all.series_mut(), &self.route.context.mask).collect();
        all.iter_mut().for_each(|(_, series)| series.sent = instant(now, series));
        for part in all.chunks(SERIES_OF_REQUEST) {
            let body = protocol.encode_stale(&points(part, &self.route.context));
            if let Err(Unsent { why, .. }) = self.route.client.send(&remote_write::HEADERS, &body, REQUEST_TIMEOUT) {
                self.route.warn(&format!("failed to mark series as ended: {why}"));
                return;
            }
        }
    }
}

impl Route {
    /// True if each push sends all series, as the SDKs of OpenTelemetry do, and not only those with new samples.
    fn repeats(&self) -> bool {
        matches!(self.settings.protocol, Protocol::Otlp(_))
    }

    /// Sends the values of some series. Returns how many of them the receiver did not take, and why.
    fn send(&self, part: &mut [(&Tags, &mut Series)], deadline: Instant) -> Result<Option<(u64, String)>, Unsent> {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(Unsent { why: format!("it takes longer than {} s", PUSH_TIMEOUT.as_secs()), is_answer: false });
        }
        let now = Timestamp::now().as_millisecond();
        for (_, series) in part.iter_mut() {
            series.sent = instant(if self.repeats() { now } else { series.at }, series);
        }
        let points = points(part, &self.context);
        let (body, headers): (_, &[_]) = match &self.settings.protocol {
            Protocol::RemoteWrite(remote_write) => (remote_write.encode(&points), &remote_write::HEADERS),
            Protocol::Otlp(otlp) => (otlp.encode(&points, self.began), &otlp::HEADERS),
        };
        let answer = self.client.send(headers, &body, left.min(REQUEST_TIMEOUT))?;
        part.iter_mut().for_each(|(_, series)| series.is_new = false);
        Ok(otlp::rejected(&answer).filter(|_| matches!(self.settings.protocol, Protocol::Otlp(_))))
    }

    fn warn(&self, why: &str) {
        (self.context.on_loss)(&format!("{}: {why}", self.settings));
    }
}

/// The instant for which a series is sent. A receiver refuses a second value for an instant, and may have got the one of
/// a push that failed.
fn instant(wanted: i64, series: &Series) -> i64 {
    wanted.max(series.sent.saturating_add(1))
}

/// The series, but for those in whose tags a secret has become known. What these have was sent under a name with the
/// secret, and what came since is another series, under the masked name: no sample counts under both.
fn named_for_good<'t>(
    series: impl Iterator<Item = (&'t Tags, &'t mut Series)>,
    mask: &Mask,
) -> impl Iterator<Item = (&'t Tags, &'t mut Series)> {
    series.filter(move |(tags, _)| !tags.iter().any(|(_, value)| is_now_masked(value, mask)))
}

fn number_of_new<'t>(series: impl Iterator<Item = (&'t Tags, &'t mut Series)>) -> usize {
    series.filter(|(_, series)| series.is_new).count()
}

/// True if a value of a tag, which was masked before, has a secret in it that has become known since.
fn is_now_masked(value: &str, mask: &Mask) -> bool {
    let masked = mask(value);
    // A mask in which a secret stands is itself masked each time.
    *masked != *value && *mask(&masked) == *masked
}

/// The values of series at the instants for which they are sent.
fn points<'a>(series: &'a [(&'a Tags, &mut Series)], context: &'a Context) -> Vec<Point<'a>> {
    let point = |(tags, series): &'a (&'a Tags, &mut Series)| Point {
        id: series.metric,
        metric: context.registry.metric(series.metric),
        tags: tags.iter().map(|(name, value)| (&**name, (context.mask)(value))).collect(),
        measure: &series.measure,
        at: series.sent,
    };
    series.iter().map(point).collect()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::remote_write::tests::decoded;
    use plimsoll_k6_run::metrics::{TagSet, builtin};
    use plimsoll_k6_run::output::{Output, ThreadOutputs};
    use plimsoll_k6_run::series::Distribution;
    use std::io::{BufRead, BufReader, Read, Write};
    use std::net::TcpListener;
    use std::sync::{LazyLock, Mutex};

    static REGISTRY: LazyLock<Arc<Registry>> = LazyLock::new(Arc::default);

    fn context(warnings: &Arc<Mutex<Vec<String>>>) -> Context {
        let warnings = Arc::clone(warnings);
        let warn = move |text: &str| warnings.lock().expect("no test panicked").push(text.to_owned());
        Context { registry: Arc::clone(&REGISTRY), mask: Arc::new(|text| text.into()), on_loss: Arc::new(warn) }
    }

    /// A table with these samples.
    pub(crate) fn table(distribution: Distribution, samples: &[(MetricId, f64)], tags: &[(&str, &str)]) -> Table {
        let collector = Arc::new(Collector::new(distribution));
        let mut outputs = ThreadOutputs::new(&[Output::Series(Arc::clone(&collector))]);
        outputs.add(&REGISTRY, samples, &TagSet::own(tags));
        let mut table = collector.table();
        collector.take_into(&mut table, &*context(&Arc::default()).mask);
        table
    }

    /// Does something with the values of a table.
    pub(crate) fn with_points<T>(table: &mut Table, work: impl FnOnce(&[Point<'_>]) -> T) -> T {
        let series: Vec<_> = table.series_mut().collect();
        work(&points(&series, &context(&Arc::default())))
    }

    /// A value of a gauge at the first second of 1970.
    pub(crate) fn point(tags: &'static [(&'static str, &'static str)]) -> Point<'static> {
        let tags = tags.iter().map(|(name, value)| (*name, (*value).into())).collect();
        let metric = REGISTRY.metric(builtin::VUS);
        Point { id: builtin::VUS, metric, tags, measure: &Measure::Last(1.0), at: 1000 }
    }

    /// Settings for a receiver at this port of the loopback.
    fn settings(port: u16, interval: &str) -> Settings {
        let out = format!("experimental-prometheus-rw=http://127.0.0.1:{port}/write");
        let environment = [("K6_PROMETHEUS_RW_PUSH_INTERVAL".to_owned(), interval.to_owned())];
        Settings::parse(&out, &environment).expect("the name of an output").expect("settings")
    }

    fn start(settings: Settings, context: Context) -> (Push, ThreadOutputs) {
        let push = Push::start(settings, context).unwrap_or_else(|why| panic!("{why}"));
        let outputs = ThreadOutputs::new(&[Output::Series(Arc::clone(push.collector()))]);
        (push, outputs)
    }

    /// A receiver that answers with these statuses, one after the other, and passes on the bodies that it got.
    fn receiver(statuses: &'static [u16]) -> (u16, Receiver<Vec<u8>>) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("bound").port();
        let (sender, bodies) = channel();
        std::thread::spawn(move || {
            for status in statuses {
                let mut stream = BufReader::new(listener.accept().expect("a client").0);
                let head: Vec<String> =
                    stream.by_ref().lines().map_while(Result::ok).take_while(|line| !line.is_empty()).collect();
                let length = head
                    .iter()
                    .find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok());
                let mut body = vec![0; length.expect("a length")];
                stream.read_exact(&mut body).expect("a body");
                let answer = format!("HTTP/1.1 {status} x\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
                stream.get_mut().write_all(answer.as_bytes()).expect("it is read");
                if sender.send(body).is_err() {
                    return;
                }
            }
        });
        (port, bodies)
    }

    #[test]
    fn what_is_lost_is_told() {
        let delivery = Delivery { pushes: 5, failed: 2, failure: "status 500".to_owned(), ..Delivery::default() };
        let lost = delivery.lost().expect("two were");
        assert!(lost.contains("2 of 5 pushes failed") && lost.contains("only values in between"), "{lost}");
        let lost = Delivery { unsent: 7, ..delivery }.lost().expect("seven were");
        assert!(lost.contains("the last values of 7 series"), "{lost}");
        let lost = Delivery { rejected: 3, rejection: "old".to_owned(), left_out: 4, ..Delivery::default() }.lost();
        let lost = lost.expect("some were");
        assert!(lost.contains("rejected 3 points: old") && lost.contains("4 samples were left out"), "{lost}");
        let lost = Delivery { withheld: 2, ..Delivery::default() }.lost().expect("two were");
        assert!(lost.contains("the last values of 2 series were left out, because a secret"), "{lost}");
        assert_eq!(Delivery { pushes: 5, ..Delivery::default() }.lost(), None);
    }

    #[test]
    fn a_receiver_that_is_away_costs_a_warning_and_the_last_values() {
        let warnings = Arc::default();
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("bound").port();
        drop(listener);
        let (push, mut outputs) = start(settings(port, "1h"), context(&warnings));
        outputs.add(&REGISTRY, &[(builtin::VUS, 1.0), (builtin::ITERATIONS, 1.0)], &TagSet::default());
        let lost = push.finish().expect("nobody received them");
        assert!(lost.contains("1 of 1 pushes failed") && lost.contains("the last values of 2 series"), "{lost}");
        let warnings = warnings.lock().expect("no thread panicked");
        assert!(warnings.len() == 1 && warnings[0].contains("failed to send metrics"), "{warnings:?}");
    }

    #[test]
    fn a_run_without_samples_sends_nothing() {
        let (push, _) = start(settings(1, "1h"), context(&Arc::default()));
        assert_eq!(push.finish(), None);
    }

    #[test]
    fn a_receiver_that_comes_back_gets_the_values_that_it_refused_for_a_later_instant() {
        let (port, bodies) = receiver(&[500, 204]);
        let (push, mut outputs) = start(settings(port, "10ms"), context(&Arc::default()));
        outputs.add(&REGISTRY, &[(builtin::ITERATIONS, 3.0)], &TagSet::default());
        let [first, second] = [(); 2].map(|()| decoded(&bodies.recv().expect("a push")));
        let lost = push.finish().expect("one failed");
        assert!(lost.contains("1 of 2 pushes failed") && lost.contains("only values in between"), "{lost}");
        let [(labels, value, at)] = &first[..] else { panic!("one series: {first:?}") };
        assert_eq!(second, [(labels.clone(), *value, at + 1)], "a receiver takes one value for an instant");
    }

    #[test]
    fn secrets_in_tags_are_masked() {
        let (port, bodies) = receiver(&[204]);
        let mask: Mask = Arc::new(|text| text.replace("hunter2", "***").into());
        let (push, mut outputs) = start(settings(port, "1h"), Context { mask, ..context(&Arc::default()) });
        outputs.add(&REGISTRY, &[(builtin::ITERATIONS, 1.0)], &TagSet::own(&[("url", "/?t=hunter2")]));
        assert_eq!(push.finish(), None);
        let [(labels, ..)] = &decoded(&bodies.recv().expect("a push"))[..] else { panic!("one series") };
        assert_eq!(labels, &["__name__=k6_iterations_total", "url=/?t=***"]);
    }

    #[test]
    fn samples_from_before_a_secret_was_known_are_not_sent_again_under_its_mask() {
        let collector = Arc::new(Collector::new(Distribution::Buckets));
        let mut outputs = ThreadOutputs::new(&[Output::Series(Arc::clone(&collector))]);
        let mut all = collector.table();
        let unmasked = context(&Arc::default()).mask;
        let masked: Mask = Arc::new(|text| text.replace("hunter2", "***").into());
        for (mask, count) in [(&unmasked, 5.0), (&masked, 3.0)] {
            outputs.add(&REGISTRY, &[(builtin::ITERATIONS, count)], &TagSet::own(&[("url", "/?t=hunter2")]));
            collector.take_into(&mut all, &**mask);
        }
        let sent: Vec<(String, Measure)> = named_for_good(all.series_mut(), &masked)
            .map(|(tags, series)| (tags[0].1.to_string(), series.measure.clone()))
            .collect();
        assert_eq!(sent, [("/?t=***".to_owned(), Measure::Sum(3.0))]);
        assert_eq!(number_of_new(all.series_mut()), 2);
    }

    #[test]
    fn a_mask_in_which_a_secret_stands_is_no_reason_to_leave_a_series_out() {
        let usual: Mask = Arc::new(|text| text.replace("hunter2", "*SECRET*").into());
        let masks_itself: Mask = Arc::new(|text| text.replace("SECRET", "*SECRET*").into());
        assert!(is_now_masked("/?t=hunter2", &usual) && !is_now_masked("/?t=*SECRET*", &usual));
        assert!(!is_now_masked("/?t=*SECRET*", &masks_itself) && !is_now_masked("/", &masks_itself));
    }

    #[test]
    fn series_that_differ_only_in_secrets_are_added_up() {
        let (port, bodies) = receiver(&[204]);
        let mask: Mask = Arc::new(|text| text.replace("hunter2", "***").replace("hunter3", "***").into());
        let (push, mut outputs) = start(settings(port, "1h"), Context { mask, ..context(&Arc::default()) });
        for url in ["/?t=hunter2", "/?t=hunter3"] {
            outputs.add(&REGISTRY, &[(builtin::ITERATIONS, 1.0)], &TagSet::own(&[("url", url)]));
        }
        assert_eq!(push.finish(), None);
        let series = decoded(&bodies.recv().expect("a push"));
        let [(labels, value, _)] = &series[..] else { panic!("one series: {series:?}") };
        assert_eq!(labels, &["__name__=k6_iterations_total", "url=/?t=***"]);
        assert_eq!(*value, 2.0);
    }
}
