//! Each variant at its best setting, beside all at the same one.

use super::{Scene, Sheet, dash, numbers_in, words_in};
use plimsoll_analysis::OrReason;
use plimsoll_analysis::database::{Best, BestRatio, BestRow, Ratio};
use plimsoll_analysis::quantity::{change, changes, show};

impl Scene<'_> {
    pub(super) fn best(&self) -> Option<Sheet> {
        let best = self.report.best.as_ref()?;
        let baseline = self.variant(0);
        let axis = self.report.grid.axis.clone().unwrap_or_default();
        let columns = vec![
            words_in(axis),
            words_in("variant"),
            words_in(format!("best setting of {baseline}")),
            words_in("best setting of the variant"),
            numbers_in("at the best settings"),
            numbers_in("settings picked by other repeats"),
            words_in("at the same setting"),
        ];
        let row = |row: &BestRow, ratio: &BestRatio| {
            vec![
                self.report.grid.level(row.level),
                self.variant(ratio.variant),
                self.setting(&row.best[0]),
                self.setting(&row.best[ratio.variant]),
                shown(&ratio.best),
                shown(&ratio.confirmed),
                self.alike(ratio),
            ]
        };
        let rows = best.rows.iter().flat_map(|one| one.ratios.iter().map(move |ratio| row(one, ratio)));
        let note = format!(
            "Each variant against {baseline}, once at the setting that is best for it and once at the same setting. The best \
             of several is biased upward, because chance helps the one that is picked: trust it where the next column, in \
             which the setting of each repeat is picked by the other repeats alone, says the same, or where new trials \
             confirm it. Intervals: 95 %."
        );
        Some(Sheet::new("Best of the grid beside the same setting", note, columns, rows.collect()))
    }

    fn setting(&self, best: &OrReason<Best>) -> String {
        let Ok(best) = best else { return dash() };
        let label = &self.report.grid.rows[best.setting].label;
        let apart = if best.apart { "" } else { ", not shown to be better than the next" };
        format!("{label} ({}{apart})", show(best.centre, self.report.throughput.unit()))
    }

    fn alike(&self, ratio: &BestRatio) -> String {
        let rows = self.report.grid.rows.iter().zip(&ratio.alike);
        rows.map(|(row, ratio)| format!("{}: {}", row.label, shown(ratio))).collect::<Vec<_>>().join("; ")
    }
}

fn shown(ratio: &OrReason<Ratio>) -> String {
    let Ok(Ratio { value, interval }) = ratio else { return dash() };
    match interval {
        Ok(interval) => format!("{} ({})", change(*value), changes(interval.low, interval.high).join(" … ")),
        Err(_) => format!("{} (no interval)", change(*value)),
    }
}
