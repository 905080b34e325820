//! Servers that metrics are sent to, as teams run them: Debian's `prometheus` for remote write, and VictoriaMetrics for
//! OTLP, which that version of Prometheus does not take.

use crate::common::wait_until;
use plimsoll_testkit::{ReservedPort, skipped};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;

/// A receiver that keeps what it gets, until it is dropped.
pub(super) struct Receiver {
    port: ReservedPort,
    process: Child,
    _folder: TempDir,
}

/// Debian's `prometheus`. None if it is not there, which is said.
pub(super) fn prometheus() -> Option<Receiver> {
    let Some(program) = on_path("prometheus") else {
        skipped("remote write: there is no `prometheus` (apt-get install prometheus)");
        return None;
    };
    let receiver = Receiver::start(&program, |address, folder| {
        let config = folder.join("prometheus.yml");
        std::fs::write(&config, "global: {}\n").unwrap();
        vec![
            format!("--config.file={}", config.display()),
            format!("--storage.tsdb.path={}", folder.join("data").display()),
            format!("--web.listen-address={address}"),
            "--web.enable-remote-write-receiver".to_owned(),
        ]
    });
    receiver.wait_for("/-/ready");
    Some(receiver)
}

/// VictoriaMetrics. None if it is not there, which is said.
pub(super) fn victoria_metrics() -> Option<Receiver> {
    let named = std::env::var_os("PLIMSOLL_VICTORIA_METRICS").map(PathBuf::from).filter(|program| program.exists());
    let Some(program) = named.or_else(|| on_path("victoria-metrics")) else {
        skipped("OTLP: there is no `victoria-metrics` (./test builds one where Go is there)");
        return None;
    };
    let receiver = Receiver::start(&program, |address, folder| {
        // Queries see what has just come, by names as Prometheus makes them of those of OpenTelemetry.
        let flags = ["-search.latencyOffset=0s", "-search.disableCache", "-opentelemetry.usePrometheusNaming"];
        let own = [format!("-httpListenAddr={address}"), format!("-storageDataPath={}", folder.join("data").display())];
        own.into_iter().chain(flags.map(str::to_owned)).collect()
    });
    receiver.wait_for("/health");
    Some(receiver)
}

impl Receiver {
    fn start(program: &Path, flags: impl FnOnce(&str, &Path) -> Vec<String>) -> Receiver {
        let folder = tempfile::tempdir().unwrap();
        let port = ReservedPort::new().unwrap();
        let mut command = Command::new(program);
        command.args(flags(&port.address().to_string(), folder.path())).current_dir(folder.path());
        let process = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        Receiver { port, process, _folder: folder }
    }

    /// Its address with a path.
    pub(super) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.port.address())
    }

    fn wait_for(&self, path: &str) {
        wait_until("the receiver is ready", || ureq::get(self.url(path)).call().is_ok());
    }

    /// The series of an expression of PromQL now: their labels and values.
    pub(super) fn query(&self, expression: &str) -> Vec<(BTreeMap<String, String>, f64)> {
        let mut answer = ureq::get(self.url("/api/v1/query")).query("query", expression).call().unwrap();
        let answer: Value = serde_json::from_str(&answer.body_mut().read_to_string().unwrap()).unwrap();
        let series = answer["data"]["result"].as_array().expect("a vector").iter();
        series.map(|series| (labels(&series["metric"]), value(&series["value"][1]))).collect()
    }

    /// The value of an expression of one series.
    #[track_caller]
    pub(super) fn value(&self, expression: &str) -> f64 {
        match &self.query(expression)[..] {
            [(_, value)] => *value,
            other => panic!("expected one series of `{expression}`, found {other:?}"),
        }
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn labels(metric: &Value) -> BTreeMap<String, String> {
    let labels = metric.as_object().expect("labels").iter();
    labels.map(|(name, value)| (name.clone(), value.as_str().unwrap_or_default().to_owned())).collect()
}

fn value(text: &Value) -> f64 {
    text.as_str().and_then(|text| text.parse().ok()).expect("a number")
}

fn on_path(program: &str) -> Option<PathBuf> {
    let folders = std::env::var_os("PATH")?;
    std::env::split_paths(&folders).map(|folder| folder.join(program)).find(|program| program.is_file())
}
