//! Reads the metrics that a system exposes, once a second, on a thread of its own: a system that does not answer delays nobody
//! else.
//!
//! What is late, fails, or is no text of metrics leaves a gap, never a zero, and is counted with its reason.

use crate::selection::{MOST_SERIES, Selection, Taken};
use plimsoll_model::exposed::{ExposedMetrics, ExposedSeries, MetricKind, MetricSample};
use plimsoll_model::sample::next_whole_second;
use plimsoll_model::words::and_list;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use ureq::Agent;

/// The longest that an answer may take: a late one would be of another second.
const WITHIN: Duration = Duration::from_millis(900);

/// The longest text that is read, in bytes.
const LONGEST: u64 = 16 << 20;

/// The longest until a system answers for the first time, after it is ready.
const FIRST_WITHIN: Duration = Duration::from_secs(10);

/// The pause between attempts to get a first answer.
const PAUSE: Duration = Duration::from_millis(100);

/// The most names that a complaint lists.
const MOST_NAMES: usize = 5;

/// Formats that are understood, the shorter one first: OpenMetrics adds exemplars.
const ACCEPT: &str = "text/plain;version=0.0.4,application/openmetrics-text;version=1.0.0;q=0.5";

/// The system whose metrics are read.
#[derive(Clone, Debug)]
pub(crate) struct Exposing {
    pub(crate) system: String,
    pub(crate) variant: usize,
    pub(crate) metrics: ExposedMetrics,
}

/// Reads the metrics of a system until it is stopped or dropped.
#[derive(Debug)]
pub(crate) struct Scraper {
    stop: Sender<()>,
    samples: Receiver<Vec<MetricSample>>,
    thread: JoinHandle<Account>,
}

impl Scraper {
    /// Waits for a first answer, unless it is interrupted, and starts a thread that goes on. Instants count from `began`.
    ///
    /// # Errors
    /// The system does not answer, or with something else than metrics; it is interrupted; or no thread can be started.
    pub(crate) fn start(exposing: Exposing, began: Instant, is_interrupted: &dyn Fn() -> bool) -> io::Result<Scraper> {
        let (url, system) = (exposing.metrics.url.clone(), exposing.system.clone());
        let ((stop, stopped), (sender, samples)) = (mpsc::channel(), mpsc::channel());
        let mut scraping = Scraping {
            client: Client::new(&exposing.metrics.url),
            selection: Selection::new(&exposing.metrics.series),
            exposing,
            began,
            account: Account { system: system.clone(), ..Account::default() },
            samples: sender,
        };
        let until = Instant::now() + FIRST_WITHIN;
        while let Err(why) = scraping.scrape() {
            if is_interrupted() {
                return Err(io::ErrorKind::Interrupted.into());
            }
            if Instant::now() >= until {
                return Err(io::Error::other(format!(
                    "the metrics of `{system}` cannot be read: GET {url}: {why}; correct the `url` of its `metrics`"
                )));
            }
            thread::sleep(PAUSE);
        }
        let thread = thread::Builder::new().name("metrics".to_owned()).spawn(move || scraping.run(&stopped))?;
        Ok(Scraper { stop, samples, thread })
    }

    /// The samples since the last call.
    pub(crate) fn take(&self) -> Vec<MetricSample> {
        self.samples.try_iter().flatten().collect()
    }

    /// Ends it. Returns the samples since the last call of `take`, and a sentence for each thing that a reader should know.
    pub(crate) fn stop(self) -> (Vec<MetricSample>, Vec<String>) {
        drop(self.stop);
        let account = self.thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        (self.samples.try_iter().flatten().collect(), account.complaints())
    }
}

/// Asks one URL, over a connection that it keeps.
#[derive(Debug)]
struct Client {
    agent: Agent,
    url: String,
}

impl Client {
    fn new(url: &str) -> Client {
        // The study names this host and no other: neither a redirect nor a proxy of the environment leads elsewhere.
        let config = Agent::config_builder().http_status_as_error(false).max_redirects(0).proxy(None);
        let config = config.timeout_global(Some(WITHIN)).user_agent(concat!("plimsoll/", env!("CARGO_PKG_VERSION")));
        Client { agent: config.build().new_agent(), url: url.to_owned() }
    }

    /// The text of the answer; or why there is none, in words that are the same for the same cause.
    fn ask(&self) -> Result<String, String> {
        let mut response = self.agent.get(&self.url).header("accept", ACCEPT).call().map_err(in_words)?;
        let status = response.status();
        if !status.is_success() {
            return Err(format!("status {}", status.as_u16()));
        }
        let body = response.body_mut().with_config().limit(LONGEST).read_to_vec().map_err(in_words)?;
        String::from_utf8(body).map_err(|_| "the answer is not in UTF-8".to_owned())
    }
}

fn in_words(error: ureq::Error) -> String {
    match error {
        ureq::Error::Timeout(_) => format!("no answer within {} s", WITHIN.as_secs_f64()),
        ureq::Error::BodyExceedsLimit(_) => format!("the answer is longer than {} MiB", LONGEST >> 20),
        ureq::Error::Io(error) => error.to_string(),
        error => error.to_string(),
    }
}

/// The work of the thread.
struct Scraping {
    exposing: Exposing,
    client: Client,
    selection: Selection,
    began: Instant,
    account: Account,
    samples: Sender<Vec<MetricSample>>,
}

impl Scraping {
    /// Asks at each whole second until told to stop.
    fn run(mut self, stopped: &Receiver<()>) -> Account {
        loop {
            let due = self.began + next_whole_second(self.began.elapsed());
            if stopped.recv_timeout(due.saturating_duration_since(Instant::now())) != Err(RecvTimeoutError::Timeout) {
                break;
            }
            self.account.asked += 1;
            if let Err(why) = self.scrape() {
                *self.account.failed.entry(why).or_default() += 1;
            }
        }
        let series = self.selection.series().iter().enumerate();
        let missed = series.filter(|(place, one)| !self.account.kinds.contains_key(place) && !one.is_usual());
        self.account.missing = missed.map(|(place, one)| (one.clone(), self.account.seen.contains(&place))).collect();
        self.account.names = self.selection.series().iter().map(|one| one.name.clone()).collect();
        self.account
    }

    /// Asks once, and sends what there is.
    fn scrape(&mut self) -> Result<(), String> {
        let at = self.began.elapsed().as_secs_f64();
        let text = self.client.ask()?;
        let taken = self.selection.take(&text).map_err(|fault| format!("the answer is no text of metrics: {fault}"))?;
        self.account.note(&self.selection, &taken, &text);
        let samples = taken.values.into_iter().filter(|((place, _), value)| self.account.kinds[place] == value.kind);
        let samples = samples.map(|((place, label), value)| MetricSample {
            at,
            system: self.exposing.system.clone(),
            variant: self.exposing.variant,
            series: self.selection.series()[place].name.clone(),
            label,
            kind: value.kind,
            value: value.value,
            sum: value.sum,
            buckets: value.buckets,
        });
        // The receiver is gone once the start is over.
        let _ = self.samples.send(samples.collect());
        Ok(())
    }
}

/// The failures and gaps of reading the metrics of a system.
#[derive(Debug, Default)]
struct Account {
    system: String,
    asked: u32,
    /// The number of questions that failed, by the reason.
    failed: BTreeMap<String, u32>,
    /// The kinds of the series that were there, by their place: that of the first sample.
    kinds: BTreeMap<usize, MetricKind>,
    /// How often a counter of a series went back, by the place of the series.
    resets: BTreeMap<usize, u32>,
    /// The answers that had no value of a series which had one before, by its place.
    vanished: BTreeMap<usize, u32>,
    /// The metrics that had another type later.
    changed: BTreeSet<String>,
    /// The most series that were left out of an answer.
    left_out: usize,
    /// The places of series of whose metrics there was a sample.
    seen: BTreeSet<usize>,
    /// The names of all series, by their place.
    names: Vec<String>,
    /// The series that had no value, each with whether its metric was there.
    missing: Vec<(ExposedSeries, bool)>,
    /// For metrics that are not there, those with names alike.
    alike: BTreeMap<String, Vec<String>>,
}

impl Account {
    /// Notes the kinds of series, and what is missing.
    fn note(&mut self, selection: &Selection, taken: &Taken, text: &str) {
        for place in self.kinds.keys().filter(|place| !taken.seen.contains(place)) {
            *self.vanished.entry(*place).or_default() += 1;
        }
        for place in &taken.went_back {
            *self.resets.entry(*place).or_default() += 1;
        }
        for ((place, _), value) in &taken.values {
            let known = *self.kinds.entry(*place).or_insert(value.kind);
            if known != value.kind {
                self.changed.insert(selection.series()[*place].metric.clone());
            }
        }
        self.seen.extend(&taken.seen);
        self.left_out = self.left_out.max(taken.left_out.len());
        // Names are looked for once: what has no value yet may have one later.
        for (place, series) in selection.series().iter().enumerate().filter(|(_, series)| !series.is_usual()) {
            if !self.kinds.contains_key(&place) && !self.alike.contains_key(&series.metric) {
                let alike = Selection::alike(&series.metric, text).into_iter().take(MOST_NAMES).map(str::to_owned);
                self.alike.insert(series.metric.clone(), alike.collect());
            }
        }
    }

    fn complaints(self) -> Vec<String> {
        let Account { system, asked, failed, changed, left_out, missing, names, resets, vanished, mut alike, .. } =
            self;
        let in_words = |times: u32| if times == 1 { "once".to_owned() } else { format!("{times} times") };
        let reason = |(why, times): (String, u32)| format!("{why} ({})", in_words(times));
        let times: u32 = failed.values().sum();
        let gaps = (times > 0).then(|| {
            let reasons: Vec<String> = failed.into_iter().map(reason).collect();
            format!(
                "the metrics of `{system}` were asked for {asked} times, and {times} answers are missing, which leaves gaps: {}",
                reasons.join("; ")
            )
        });
        let missing = missing.into_iter().map(|(ExposedSeries { name, metric, labels, .. }, was_there)| {
            if was_there {
                let labels: Vec<String> = labels.iter().map(|(name, value)| format!("{name}=\"{value}\"")).collect();
                let labels = if labels.is_empty() { String::new() } else { format!(" with {}", and_list(&labels)) };
                return format!(
                    "the series `{name}` has no values: `{system}` exposes `{metric}`, but no number{labels}"
                );
            }
            let alike = alike.remove(&metric).unwrap_or_default();
            let instead = match and_list(&alike) {
                none if none.is_empty() => "none has a name like it".to_owned(),
                some => format!("with names like it there are {some}"),
            };
            format!("the series `{name}` has no values: `{system}` exposes no metric `{metric}`, and {instead}")
        });
        let changed = changed.into_iter().map(|metric| {
            format!("the metric `{metric}` of `{system}` changed its type, and what came then is left out")
        });
        let resets = resets.into_iter().map(|(place, times)| {
            format!(
                "the series `{}` of `{system}` went back {}, as that of a process which was started again: it counts from zero \
                 there, and what came between the answer before and the end of the process is not known",
                names[place],
                in_words(times)
            )
        });
        let vanished = vanished.into_iter().map(|(place, times)| {
            let (name, answers) = (&names[place], if times == 1 { "answer" } else { "answers" });
            format!(
                "the series `{name}` of `{system}` was not in {times} {answers} after it had been, which leaves gaps"
            )
        });
        let left_out = (left_out > 0).then(|| {
            format!("`{system}` exposes {left_out} series beyond the {MOST_SERIES} that are kept, which are left out: split by another label")
        });
        gaps.into_iter().chain(missing).chain(vanished).chain(changed).chain(resets).chain(left_out).collect()
    }
}
