//! How records are written as text. A histogram uses the compressed encoding that the HdrHistogram libraries share
//! (V2), in base64. Tallies are a list, because JSON has no keys of two parts.

/// A histogram that grows with its largest value.
pub(super) mod histogram {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use hdrhistogram::Histogram;
    use hdrhistogram::serialization::{Deserializer as HistogramReader, Serializer as _, V2DeflateSerializer};
    use serde::de::Error as _;
    use serde::ser::Error as _;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(crate) fn serialize<S: Serializer>(histogram: &Histogram<u64>, serializer: S) -> Result<S::Ok, S::Error> {
        let mut bytes = Vec::new();
        V2DeflateSerializer::new().serialize(histogram, &mut bytes).map_err(S::Error::custom)?;
        serializer.serialize_str(&STANDARD.encode(bytes))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Histogram<u64>, D::Error> {
        let bytes = STANDARD.decode(String::deserialize(deserializer)?).map_err(D::Error::custom)?;
        let read = HistogramReader::new().deserialize(&mut bytes.as_slice());
        let mut histogram: Histogram<u64> = read.map_err(D::Error::custom)?;
        histogram.auto(true);
        Ok(histogram)
    }
}

/// The tallies of a second, by phase and subject.
pub(super) mod tallies {
    use crate::record::{RecordedPhase, Subject, Tally};
    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use std::collections::BTreeMap;

    type Tallies = BTreeMap<(RecordedPhase, Subject), Tally>;

    #[derive(Serialize)]
    struct Row<'a> {
        phase: RecordedPhase,
        subject: &'a Subject,
        tally: &'a Tally,
    }

    #[derive(Deserialize)]
    struct ReadRow {
        phase: RecordedPhase,
        subject: Subject,
        tally: Tally,
    }

    pub(crate) fn serialize<S: Serializer>(tallies: &Tallies, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(tallies.iter().map(|((phase, subject), tally)| Row { phase: *phase, subject, tally }))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Tallies, D::Error> {
        let rows = Vec::<ReadRow>::deserialize(deserializer)?;
        Ok(rows.into_iter().map(|row| ((row.phase, row.subject), row.tally)).collect())
    }
}
