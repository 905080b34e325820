//! Findings about settings: safety given up for speed, variants that differ by accident, best
//! settings that disagree with equal ones.

use crate::database::{BestRatio, BestRow, DatabaseReport, Ratio, SettingRow, SettingValue};
use crate::findings::{Context, Finding, Severity};
use crate::quantity::Notation;
use crate::reason::OrReason;
use crate::words::counted;
use plimsoll_model::words::and_list;
use std::collections::BTreeSet;

/// Settings that trade safety for speed; reported even where all variants share them.
pub(super) fn safety_for_speed(report: &DatabaseReport) -> Option<Finding> {
    let line = |row: &SettingRow, value: &SettingValue| {
        let risk = value.risk.as_ref()?;
        Some(format!("{} = {} of {} ({}): {risk}", row.name, value.in_force, row.database, value.place))
    };
    let evidence: Vec<String> =
        report.settings.iter().flat_map(|row| row.values.iter().filter_map(move |value| line(row, value))).collect();
    let names: BTreeSet<&str> = report
        .settings
        .iter()
        .filter(|row| row.values.iter().any(|value| value.risk.is_some()))
        .map(|row| row.name.as_str())
        .collect();
    (!evidence.is_empty()).then(|| Finding {
        severity: Severity::Caution,
        topic: "safety for speed",
        sentence: format!(
            "{} in force {} safety for speed: what a crash or a loss of power can take is told for each. With safe \
             settings the order of variants may be another, also where all of them give up the same.",
            counted(names.len(), "setting"),
            if names.len() == 1 { "trades" } else { "trade" }
        ),
        evidence,
    })
}

pub(super) fn unequal_settings(context: &Context<'_>, report: &DatabaseReport) -> Option<Finding> {
    let evidence: Vec<String> = report
        .settings
        .iter()
        .filter_map(|row| {
            let unequal = row.unequal();
            let of = |value: &&SettingValue| {
                let names: Vec<String> = value.variants.iter().map(|variant| context.variant(*variant)).collect();
                format!("{} ({})", value.in_force, and_list(&names))
            };
            let values: Vec<String> = unequal.iter().map(of).collect();
            (!values.is_empty()).then(|| format!("{} of {}: {}", row.name, row.database, values.join(", ")))
        })
        .collect();
    (!evidence.is_empty()).then(|| Finding {
        severity: Severity::Caution,
        topic: "unequal settings",
        sentence:
            "Variants ran with settings that differ though the study asks for no difference: defaults of another \
                   version, or values that a server rounds. A difference between variants may come of these alone."
                .to_owned(),
        evidence,
    })
}

/// Variants that differ at the same setting and not each at its best, or the other way round.
pub(super) fn best_settings_disagree(context: &Context<'_>, report: &DatabaseReport) -> Option<Finding> {
    let best = report.best.as_ref()?;
    let line = |row: &BestRow, one: &BestRatio| {
        let (at_best, leave_one_out) = (side(&one.best)?, side(&one.leave_one_out)?);
        let notation = Notation::of(one.same_setting.iter().chain([&one.best]).flatten().map(|ratio| ratio.value));
        let settings = report.grid.rows.iter().zip(&one.same_setting);
        let others: Vec<String> = settings
            .filter(|(_, ratio)| side(ratio).is_some_and(|side| side != 0 && side != at_best))
            .filter_map(|(row, ratio)| {
                Some(format!("{} with {}", notation.show(ratio.as_ref().ok()?.value), row.label))
            })
            .collect();
        let ratio = notation.show(one.best.as_ref().ok()?.value);
        let (level, variant) = (report.grid.level(row.level), context.variant(one.variant));
        let text = format!("{level}, {variant}: {ratio} at the best settings, {}", others.join(", "));
        (!others.is_empty() && leave_one_out == at_best).then_some(text)
    };
    let evidence: Vec<String> =
        best.rows.iter().flat_map(|row| row.ratios.iter().filter_map(move |one| line(row, one))).collect();
    (!evidence.is_empty()).then(|| Finding {
        severity: Severity::Caution,
        topic: "the best settings say otherwise",
        sentence: format!(
            "At the same setting variants differ from {} in a way in which they do not, each at the setting that is best \
             for it: what a setting costs one of them is not what the other is better by. Who tunes the setting meets \
             the second number.",
            context.variant(0)
        ),
        evidence,
    })
}

/// The side of 1 on which an interval lies: 0 where it contains 1.
fn side(ratio: &OrReason<Ratio>) -> Option<i8> {
    let interval = ratio.as_ref().ok()?.interval.as_ref().ok()?;
    Some(if interval.low > 1.0 {
        1
    } else if interval.high < 1.0 {
        -1
    } else {
        0
    })
}
