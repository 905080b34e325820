//! The metrics that every script has.

use super::Contains::{Data, Default, Time};
use super::Kind::{Counter, Gauge, Rate, Trend};
use super::{Contains, Kind, MetricId};

/// Makes a constant of each metric, and a list of all.
macro_rules! metrics {
    ($($id:ident = $name:literal, $kind:ident, $contains:ident;)+) => {
        #[expect(clippy::upper_case_acronyms, non_camel_case_types, reason = "named as their constants")]
        enum Index { $($id),+ }

        $(
            #[doc = concat!("`", $name, "`")]
            pub const $id: MetricId = MetricId(Index::$id as usize);
        )+

        pub(super) const ALL: &[(&str, Kind, Contains)] = &[$(($name, $kind, $contains)),+];
    };
}

metrics! {
    VUS = "vus", Gauge, Default;
    VUS_MAX = "vus_max", Gauge, Default;
    ITERATIONS = "iterations", Counter, Default;
    ITERATION_DURATION = "iteration_duration", Trend, Time;
    DROPPED_ITERATIONS = "dropped_iterations", Counter, Default;
    CHECKS = "checks", Rate, Default;
    GROUP_DURATION = "group_duration", Trend, Time;
    HTTP_REQS = "http_reqs", Counter, Default;
    HTTP_REQ_FAILED = "http_req_failed", Rate, Default;
    HTTP_REQ_DURATION = "http_req_duration", Trend, Time;
    HTTP_REQ_BLOCKED = "http_req_blocked", Trend, Time;
    HTTP_REQ_CONNECTING = "http_req_connecting", Trend, Time;
    HTTP_REQ_TLS_HANDSHAKING = "http_req_tls_handshaking", Trend, Time;
    HTTP_REQ_SENDING = "http_req_sending", Trend, Time;
    HTTP_REQ_WAITING = "http_req_waiting", Trend, Time;
    HTTP_REQ_RECEIVING = "http_req_receiving", Trend, Time;
    WS_SESSIONS = "ws_sessions", Counter, Default;
    WS_MSGS_SENT = "ws_msgs_sent", Counter, Default;
    WS_MSGS_RECEIVED = "ws_msgs_received", Counter, Default;
    WS_PING = "ws_ping", Trend, Time;
    WS_SESSION_DURATION = "ws_session_duration", Trend, Time;
    WS_CONNECTING = "ws_connecting", Trend, Time;
    GRPC_REQ_DURATION = "grpc_req_duration", Trend, Time;
    GRPC_STREAMS = "grpc_streams", Counter, Default;
    GRPC_STREAMS_MSGS_SENT = "grpc_streams_msgs_sent", Counter, Default;
    GRPC_STREAMS_MSGS_RECEIVED = "grpc_streams_msgs_received", Counter, Default;
    DATA_SENT = "data_sent", Counter, Data;
    DATA_RECEIVED = "data_received", Counter, Data;
}
