//! The settings of an output, from the command line and the variables of the environment that k6 documents.

use crate::client::{Over, Receiver, Tls};
use crate::otlp::{self, Otlp};
use crate::remote_write::{RemoteWrite, TrendStat};
use crate::variables::Variables;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use percent_encoding::percent_decode_str;
use plimsoll_k6_run::series::Distribution;
use plimsoll_web::{Scheme, Url};
use std::fmt;
use std::time::Duration;
use ureq::http::{HeaderName, HeaderValue};

/// The names of the outputs, with k6's earlier one.
const REMOTE_WRITE: &str = "experimental-prometheus-rw";
const OTLP: [&str; 2] = ["opentelemetry", "experimental-opentelemetry"];

/// The settings of an output that sends metrics to a server.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Its name.
    pub(crate) name: &'static str,
    pub(crate) receiver: Receiver,
    /// The time between two pushes.
    pub(crate) interval: Duration,
    pub(crate) protocol: Protocol,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Protocol {
    RemoteWrite(RemoteWrite),
    Otlp(Otlp),
}

impl Settings {
    /// Reads `NAME` or `NAME=URL` of `--out`, with the variables of the environment that belong to it. None if the name is
    /// that of another output.
    ///
    /// # Errors
    /// A message for each fault.
    pub fn parse(out: &str, environment: &[(String, String)]) -> Option<Result<Settings, Vec<String>>> {
        let (name, url) = out.split_once('=').map_or((out, None), |(name, url)| (name, Some(url)));
        let url = url.filter(|url| !url.is_empty());
        if name == REMOTE_WRITE {
            return Some(remote_write(url, Variables::new("K6_PROMETHEUS_RW_", environment)));
        }
        let service = environment.iter().find(|(name, value)| name == "OTEL_SERVICE_NAME" && !value.is_empty());
        let service = service.map(|(_, value)| value.clone());
        OTLP.contains(&name).then(|| opentelemetry(url, service, Variables::new("K6_OTEL_", environment)))
    }

    /// The form in which trends keep their distribution.
    pub(crate) fn distribution(&self) -> Distribution {
        match self.protocol {
            Protocol::RemoteWrite(_) => Distribution::Percentiles,
            Protocol::Otlp(_) => Distribution::Buckets,
        }
    }
}

impl fmt::Display for Settings {
    /// The output and its server: `experimental-prometheus-rw (http://localhost:9090/api/v1/write)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let over = if self.receiver.over == Over::Http { "" } else { "gRPC, " };
        write!(f, "{} ({over}{})", self.name, self.receiver.url)
    }
}

fn remote_write(url: Option<&str>, mut variables: Variables) -> Result<Settings, Vec<String>> {
    let set = variables.take("SERVER_URL");
    let url = url.map(str::to_owned).or(set).unwrap_or_else(|| "http://localhost:9090/api/v1/write".to_owned());
    let interval = variables.duration("PUSH_INTERVAL").unwrap_or(Duration::from_secs(5));
    let mut headers = variables.take_all("HEADERS_");
    if let Some(list) = variables.take("HTTP_HEADERS") {
        headers.extend(list.split(',').filter_map(|pair| {
            let read = pair.split_once(':').map(|(name, value)| (name.trim().to_owned(), value.trim().to_owned()));
            if read.is_none() {
                // The text may be a secret, and is not shown.
                variables.fault("HTTP_HEADERS", "expected `NAME:VALUE,…`, found a header without `:`");
            }
            read
        }));
    }
    let (user, password, token) =
        (variables.take("USERNAME"), variables.take("PASSWORD"), variables.take("BEARER_TOKEN"));
    headers.extend(authorization(user, password.as_deref(), token.as_deref(), &mut variables));
    let trend_stats = trend_stats(&mut variables);
    let stale_markers = variables.flag("STALE_MARKERS");
    let tls = Tls {
        insecure: variables.flag("INSECURE_SKIP_TLS_VERIFY"),
        authorities: None,
        certificate: variables.take("CLIENT_CERTIFICATE").map(Into::into),
        key: variables.take("CLIENT_CERTIFICATE_KEY").map(Into::into),
    };
    if variables.flag("TREND_AS_NATIVE_HISTOGRAM") {
        variables.fault("TREND_AS_NATIVE_HISTOGRAM", "there are no native histograms; take `…TREND_STATS`");
    }
    if let Some(version) = variables.take("TLS_MINIMUM_VERSION").filter(|version| version != "1.2") {
        variables.fault("TLS_MINIMUM_VERSION", &format!("expected `1.2`, found `{version}`"));
    }
    variables.refuse(&["SIGV4_REGION", "SIGV4_ACCESS_KEY", "SIGV4_SECRET_KEY"], "requests are not signed");
    let protocol = Protocol::RemoteWrite(RemoteWrite { trend_stats, stale_markers });
    checked(
        Settings { name: REMOTE_WRITE, receiver: Receiver { url, over: Over::Http, headers, tls }, interval, protocol },
        variables,
    )
}

fn opentelemetry(
    url: Option<&str>,
    service: Option<String>,
    mut variables: Variables,
) -> Result<Settings, Vec<String>> {
    // An earlier name, and the present one.
    let kinds = [("EXPORTER_TYPE", "http"), ("EXPORTER_PROTOCOL", "http/protobuf")];
    let mut over_grpc = url.is_none();
    for (variable, http) in kinds {
        match variables.take(variable) {
            Some(kind) if kind == "grpc" => over_grpc = true,
            Some(kind) if kind == http => over_grpc = false,
            Some(other) => variables.fault(variable, &format!("expected `grpc` or `{http}`, found `{other}`")),
            None => {}
        }
    }
    let grpc = ["GRPC_EXPORTER_ENDPOINT", "GRPC_EXPORTER_INSECURE"];
    let http = ["HTTP_EXPORTER_ENDPOINT", "HTTP_EXPORTER_INSECURE"];
    let of_grpc = exporter_url(grpc, "localhost:4317", &mut variables);
    let of_http = exporter_url(http, "localhost:4318", &mut variables);
    let path = variables.take("HTTP_EXPORTER_URL_PATH").unwrap_or_else(|| "/v1/metrics".to_owned());
    let over = if over_grpc { Over::Grpc(otlp::METHOD) } else { Over::Http };
    let of_variables = || if over_grpc { of_grpc } else { format!("{of_http}/{}", path.trim_start_matches('/')) };
    let url = url.map_or_else(of_variables, str::to_owned);
    let interval = variables.duration("EXPORT_INTERVAL").unwrap_or(Duration::from_secs(10));
    // Samples are added up at once, so that there is nothing to flush before they are sent.
    let _ = variables.duration("FLUSH_INTERVAL");
    let headers = variables.take("HEADERS").map(|list| w3c_headers(&list, &mut variables)).unwrap_or_default();
    let tls = Tls {
        insecure: variables.flag("TLS_INSECURE_SKIP_VERIFY"),
        authorities: variables.take("TLS_CERTIFICATE").map(Into::into),
        certificate: variables.take("TLS_CLIENT_CERTIFICATE").map(Into::into),
        key: variables.take("TLS_CLIENT_KEY").map(Into::into),
    };
    if !variables.choice("SINGLE_COUNTER_FOR_RATE", true) {
        variables.fault("SINGLE_COUNTER_FOR_RATE", "a rate is one counter, with the attribute `condition`");
    }
    let own_version = || env!("CARGO_PKG_VERSION").to_owned();
    let protocol = Protocol::Otlp(Otlp {
        service_name: variables.take("SERVICE_NAME").or(service).unwrap_or_else(|| "k6".to_owned()),
        service_version: variables.take("SERVICE_VERSION").unwrap_or_else(own_version),
        prefix: variables.take("METRIC_PREFIX").unwrap_or_default(),
    });
    checked(Settings { name: OTLP[0], receiver: Receiver { url, over, headers, tls }, interval, protocol }, variables)
}

/// Scheme, host and port of an exporter, by its variables.
fn exporter_url([endpoint, insecure]: [&'static str; 2], default: &str, variables: &mut Variables) -> String {
    let host = variables.take(endpoint).unwrap_or_else(|| default.to_owned());
    if host.contains("://") {
        variables.fault(endpoint, &format!("expected a host and a port, found `{host}`"));
    }
    let scheme = if variables.flag(insecure) { "http" } else { "https" };
    format!("{scheme}://{host}")
}

/// The settings, if neither they nor the variables that they were read from are at fault.
fn checked(mut settings: Settings, mut variables: Variables) -> Result<Settings, Vec<String>> {
    let Settings { name, receiver: Receiver { url, over, headers, tls }, .. } = &mut settings;
    let mut fault = |why: String| variables.faults.push(format!("`--out {name}`: {why}"));
    match receiver_url(url, *over) {
        Ok(read) => *url = read,
        Err(why) => fault(why),
    }
    for (header, value) in headers {
        // The value may be a secret.
        if HeaderName::from_bytes(header.as_bytes()).is_err() || HeaderValue::from_str(value).is_err() {
            fault(format!("expected a header of HTTP, found one named `{header}`"));
        }
    }
    if tls.certificate.is_some() != tls.key.is_some() {
        fault("expected both a client certificate and its key, found one of them".to_owned());
    }
    let faults = variables.finish();
    if faults.is_empty() { Ok(settings) } else { Err(faults) }
}

/// The URL of a receiver. It has no password, since it is shown.
fn receiver_url(text: &str, over: Over) -> Result<String, String> {
    if text.split(['/', '?', '#']).nth(2).is_some_and(|authority| authority.contains('@')) {
        return Err("expected a URL without user and password, which variables of the environment take".to_owned());
    }
    let url = Url::parse(text).map_err(|fault| fault.to_string())?;
    if over != Over::Http && url.target() != "/" {
        return Err(format!("expected a URL without a path, since gRPC takes none, found `{}`", url.target()));
    }
    match url.scheme() {
        Scheme::Http | Scheme::Https => Ok(url.to_string()),
        other => Err(format!("expected `http` or `https` in its URL, found `{}`", other.name())),
    }
}

/// The header `Authorization`, if there is anything to say in it.
fn authorization(
    user: Option<String>,
    password: Option<&str>,
    token: Option<&str>,
    variables: &mut Variables,
) -> Option<(String, String)> {
    if user.is_none() && password.is_some() {
        variables.fault("PASSWORD", "expected a `…USERNAME` beside it");
    }
    let basic = |user: String| format!("Basic {}", STANDARD.encode(format!("{user}:{}", password.unwrap_or_default())));
    let value = token.map(|token| format!("Bearer {token}")).or_else(|| user.map(basic));
    value.map(|value| ("Authorization".to_owned(), value))
}

/// The headers of a list `NAME=VALUE,…`, percent-encoded.
fn w3c_headers(list: &str, variables: &mut Variables) -> Vec<(String, String)> {
    let decoded = |text: &str| percent_decode_str(text.trim()).decode_utf8_lossy().into_owned();
    let mut headers = Vec::new();
    for pair in list.split(',') {
        match pair.split_once('=') {
            Some((name, value)) => headers.push((decoded(name), decoded(value))),
            None => variables.fault("HEADERS", "expected `NAME=VALUE,…`, found a header without `=`"),
        }
    }
    headers
}

fn trend_stats(variables: &mut Variables) -> Vec<TrendStat> {
    let text = variables.take("TREND_STATS").unwrap_or_else(|| "p(99)".to_owned());
    let read = text.split(',').map(|stat| TrendStat::parse(stat.trim()));
    let mut stats = Vec::new();
    for stat in read {
        match stat {
            Ok(stat) => stats.push(stat),
            Err(why) => variables.fault("TREND_STATS", &why),
        }
    }
    stats
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(out: &str, environment: &[(&str, &str)]) -> Result<Settings, Vec<String>> {
        let environment: Vec<_> =
            environment.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Settings::parse(out, &environment).expect("the name of an output")
    }

    fn headers(settings: &Settings) -> Vec<(&str, &str)> {
        settings.receiver.headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect()
    }

    #[test]
    fn defaults_are_those_of_k6() {
        let settings = parse("experimental-prometheus-rw", &[]).expect("defaults");
        assert_eq!(settings.to_string(), "experimental-prometheus-rw (http://localhost:9090/api/v1/write)");
        assert_eq!(settings.interval, Duration::from_secs(5));
        let trend_stats = vec![TrendStat::parse("p(99)").expect("a percentile")];
        assert_eq!(settings.protocol, Protocol::RemoteWrite(RemoteWrite { trend_stats, stale_markers: false }));
        let settings = parse("experimental-opentelemetry", &[]).expect("defaults");
        assert_eq!(settings.to_string(), "opentelemetry (gRPC, https://localhost:4317/)");
        let settings = parse("opentelemetry", &[("K6_OTEL_EXPORTER_PROTOCOL", "http/protobuf")]).expect("defaults");
        assert_eq!(settings.to_string(), "opentelemetry (https://localhost:4318/v1/metrics)");
        let Protocol::Otlp(otlp) = settings.protocol else { panic!("it is OTLP") };
        assert_eq!((otlp.service_name.as_str(), settings.interval), ("k6", Duration::from_secs(10)));
        assert_eq!(Settings::parse("json=a.json", &[]), None);
    }

    #[test]
    fn remote_write_reads_its_variables() {
        let settings = parse(
            "experimental-prometheus-rw",
            &[
                ("K6_PROMETHEUS_RW_SERVER_URL", "https://example.com/write"),
                ("K6_PROMETHEUS_RW_PUSH_INTERVAL", "250ms"),
                ("K6_PROMETHEUS_RW_TREND_STATS", "avg,p(99.9),sum"),
                ("K6_PROMETHEUS_RW_HEADERS_X-Scope-OrgID", "7"),
                ("K6_PROMETHEUS_RW_HTTP_HEADERS", "A:b,C: d:e"),
                ("K6_PROMETHEUS_RW_USERNAME", "user"),
                ("K6_PROMETHEUS_RW_PASSWORD", "pass"),
                ("K6_PROMETHEUS_RW_STALE_MARKERS", "true"),
                ("K6_PROMETHEUS_RW_INSECURE_SKIP_TLS_VERIFY", "1"),
                ("K6_OTEL_HEADERS", "of the other one"),
            ],
        )
        .expect("all of them are supported");
        let basic = ("Authorization", "Basic dXNlcjpwYXNz");
        assert_eq!(headers(&settings), [("X-Scope-OrgID", "7"), ("A", "b"), ("C", "d:e"), basic]);
        assert_eq!((settings.interval, settings.receiver.tls.insecure), (Duration::from_millis(250), true));
        let Protocol::RemoteWrite(protocol) = settings.protocol else { panic!("it is remote write") };
        let names: Vec<&str> = protocol.trend_stats.iter().map(|stat| stat.suffix.as_str()).collect();
        assert_eq!((names, protocol.stale_markers), (vec!["avg", "p999", "sum"], true));
        let said = parse("experimental-prometheus-rw=http://127.0.0.1:1/w", &[("K6_PROMETHEUS_RW_SERVER_URL", "x")]);
        assert_eq!(said.expect("the command line counts").receiver.url, "http://127.0.0.1:1/w");
        let token = parse("experimental-prometheus-rw", &[("K6_PROMETHEUS_RW_BEARER_TOKEN", "t")]);
        assert_eq!(headers(&token.expect("a token")), [("Authorization", "Bearer t")]);
    }

    #[test]
    fn otlp_reads_its_variables() {
        let settings = parse(
            "opentelemetry",
            &[
                ("K6_OTEL_EXPORTER_PROTOCOL", "http/protobuf"),
                ("K6_OTEL_HTTP_EXPORTER_ENDPOINT", "127.0.0.1:4318"),
                ("K6_OTEL_HTTP_EXPORTER_INSECURE", "true"),
                ("K6_OTEL_HTTP_EXPORTER_URL_PATH", "/otlp/v1/metrics"),
                ("K6_OTEL_EXPORT_INTERVAL", "1s"),
                ("K6_OTEL_FLUSH_INTERVAL", "1s"),
                ("K6_OTEL_HEADERS", "api-key=a%20b,other=1"),
                ("K6_OTEL_METRIC_PREFIX", "k6_"),
                ("K6_OTEL_SINGLE_COUNTER_FOR_RATE", "true"),
                ("OTEL_SERVICE_NAME", "shop"),
            ],
        )
        .expect("all of them are supported");
        assert_eq!(settings.receiver.url, "http://127.0.0.1:4318/otlp/v1/metrics");
        assert_eq!(headers(&settings), [("api-key", "a b"), ("other", "1")]);
        let Protocol::Otlp(otlp) = settings.protocol else { panic!("it is OTLP") };
        assert_eq!((otlp.service_name.as_str(), otlp.prefix.as_str()), ("shop", "k6_"));
    }

    #[test]
    fn otlp_goes_over_grpc_where_that_is_asked_for_or_nothing_else_is() {
        let receiver = |out: &str, environment: &[(&str, &str)]| parse(out, environment).expect("settings").receiver;
        let insecure = [("K6_OTEL_GRPC_EXPORTER_ENDPOINT", "here:1"), ("K6_OTEL_GRPC_EXPORTER_INSECURE", "true")];
        let found = receiver("opentelemetry", &insecure);
        assert_eq!((found.url.as_str(), found.over), ("http://here:1/", Over::Grpc(otlp::METHOD)));
        let found = receiver("opentelemetry=http://here:2", &[("K6_OTEL_EXPORTER_PROTOCOL", "grpc")]);
        assert_eq!((found.url.as_str(), found.over), ("http://here:2/", Over::Grpc(otlp::METHOD)));
        let found = receiver("opentelemetry=http://here:3/a", &insecure);
        assert_eq!((found.url.as_str(), found.over), ("http://here:3/a", Over::Http));
    }

    #[test]
    fn what_is_not_supported_is_refused_by_name_and_all_at_once() {
        let rw = "experimental-prometheus-rw";
        for (out, environment, expected) in [
            (rw, vec![("K6_PROMETHEUS_RW_SIGV4_REGION", "eu")], vec!["`K6_PROMETHEUS_RW_SIGV4_REGION`", "signed"]),
            (rw, vec![("K6_PROMETHEUS_RW_TREND_AS_NATIVE_HISTOGRAM", "true")], vec!["no native histograms"]),
            (rw, vec![("K6_PROMETHEUS_RW_TLS_MINIMUM_VERSION", "1.3")], vec!["expected `1.2`"]),
            (rw, vec![("K6_PROMETHEUS_RW_PUSH_INTERVALL", "5s")], vec!["did you mean `PUSH_INTERVAL`"]),
            (rw, vec![("K6_PROMETHEUS_RW_PUSH_INTERVAL", "0s")], vec!["a time above 0"]),
            (rw, vec![("K6_PROMETHEUS_RW_TREND_STATS", "p(99),p(x)")], vec!["TREND_STATS", "p(x)"]),
            (rw, vec![("K6_PROMETHEUS_RW_HTTP_HEADERS", "a")], vec!["`NAME:VALUE,…`"]),
            (rw, vec![("K6_PROMETHEUS_RW_HEADERS_A", "b\nc")], vec!["one named `A`"]),
            (rw, vec![("K6_PROMETHEUS_RW_PASSWORD", "x")], vec!["…USERNAME"]),
            (rw, vec![("K6_PROMETHEUS_RW_CLIENT_CERTIFICATE", "a.pem")], vec!["a client certificate and its key"]),
            ("experimental-prometheus-rw=ws://a", vec![], vec!["`http` or `https`", "`ws`"]),
            ("experimental-prometheus-rw=http://a:b@c/", vec![], vec!["without user and password"]),
            (
                "opentelemetry",
                vec![("K6_OTEL_EXPORTER_PROTOCOL", "http/json")],
                vec!["expected `grpc` or", "http/json"],
            ),
            ("opentelemetry=http://a:1/b", vec![("K6_OTEL_EXPORTER_TYPE", "grpc")], vec!["without a path", "`/b`"]),
            ("opentelemetry", vec![("K6_OTEL_GRPC_EXPORTER_ENDPOINT", "http://a")], vec!["GRPC_EXPORTER_ENDPOINT"]),
            ("opentelemetry", vec![("K6_OTEL_SINGLE_COUNTER_FOR_RATE", "false")], vec!["one counter"]),
            ("opentelemetry", vec![("K6_OTEL_HTTP_EXPORTER_ENDPOINT", "http://a")], vec!["a host and a port"]),
            ("opentelemetry", vec![("K6_OTEL_HEADERS", "a")], vec!["`NAME=VALUE,…`"]),
        ] {
            let faults = parse(out, &environment).expect_err("it is refused").join("\n");
            assert!(expected.iter().all(|text| faults.contains(text)), "{out} {environment:?}: {faults}");
        }
        let two = [("K6_PROMETHEUS_RW_STALE_MARKERS", "maybe"), ("K6_PROMETHEUS_RW_NOPE", "1")];
        assert_eq!(parse(rw, &two).expect_err("both are wrong").len(), 2);
    }
}
