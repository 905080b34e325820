//! Each variant at its best setting, and all variants at the same setting.

use super::{DatabaseTables, Sheet, dash, numbers_in, words_in};
use plimsoll_analysis::OrReason;
use plimsoll_analysis::database::{Best, BestRatio, BestRow, Ratio};
use plimsoll_analysis::quantity::{Notation, show};

impl DatabaseTables<'_> {
    pub(super) fn best(&self) -> Option<Sheet> {
        let best = self.report.best.as_ref()?;
        let baseline = self.variant(0);
        let several = self.input.plan.variants.len() > 2;
        let axis = self.report.grid.axis.clone().unwrap_or_default();
        let variant = if several { "the variant".to_owned() } else { self.variant(1) };
        let both = self.report.grid.rows.iter().map(|row| numbers_in(format!("both with {}", row.label)));
        let columns = [words_in(axis)]
            .into_iter()
            .chain(several.then(|| words_in("variant")))
            .chain([numbers_in(format!("best for {baseline}")), numbers_in(format!("best for {variant}"))])
            .chain([numbers_in("each at its best"), numbers_in("picked by other repeats")])
            .chain(both);
        let all = best.rows.iter().flat_map(|row| &row.ratios);
        let ratios = all.flat_map(|one| one.same_setting.iter().chain([&one.best, &one.leave_one_out])).flatten();
        let notation = Notation::of(ratios.map(|ratio| ratio.interval.as_ref().map_or(ratio.value, |one| one.high)));
        let shown = |ratio: &OrReason<Ratio>| shown(ratio, notation);
        let row = |row: &BestRow, ratio: &BestRatio| {
            [self.report.grid.level(row.level)]
                .into_iter()
                .chain(several.then(|| self.variant(ratio.variant)))
                .chain([self.setting(&row.best[0]), self.setting(&row.best[ratio.variant])])
                .chain([shown(&ratio.best), shown(&ratio.leave_one_out)])
                .chain(ratio.same_setting.iter().map(&shown))
                .collect()
        };
        let rows = best.rows.iter().flat_map(|one| one.ratios.iter().map(move |ratio| row(one, ratio)));
        let note = format!(
            "Each variant against {baseline}, once at the setting that is best for it and once at the same setting. The best \
             of several is biased upward, because chance helps the one that is picked: trust it where the next column, in \
             which the setting of each repeat is picked by the other repeats alone, says the same, or where new trials \
             confirm it. Not apart: not shown to be better than all other settings. Intervals: 95 %."
        );
        let sheet = Sheet::new("Best of the grid beside the same setting", note, columns.collect(), rows.collect());
        Some(Sheet { below: self.report.doubt.iter().cloned().collect(), ..sheet })
    }

    fn setting(&self, best: &OrReason<Best>) -> String {
        let Ok(best) = best else { return dash() };
        let label = &self.report.grid.rows[best.setting].label;
        let apart = if best.better_than_all_others { "" } else { ",\nnot apart" };
        format!("{label},\n{}{apart}", show(best.centre, self.report.throughput.unit()))
    }
}

/// The ratio, with its interval on a line of its own.
fn shown(ratio: &OrReason<Ratio>, notation: Notation) -> String {
    let Ok(Ratio { value, interval }) = ratio else { return dash() };
    let value = notation.show(*value);
    match interval {
        Ok(interval) => format!("{value}\n({} … {})", notation.show(interval.low), notation.show(interval.high)),
        Err(_) => format!("{value}\n(no interval)"),
    }
}
