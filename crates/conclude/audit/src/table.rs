//! Reads the rows of a table from its text, and reports all faults at once.

use crate::cell;
use crate::column::{Column, Statistic, known, names_variants, nearest_heading};
use crate::fault::{Fault, Unreadable};
use crate::locust;
use crate::quantity::{Bound, Quantity, is_absent, quantity};
use crate::quote::{Unclosed, unclosed};
use crate::row::Row;
use crate::summary::summary;
use crate::unit::unit;
use plimsoll_model::measure::Unit;

/// A table as it was read.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Table {
    /// The sources of the numbers, from `# source:` lines.
    pub(crate) sources: Vec<String>,
    pub(crate) rows: Vec<Row>,
    /// Unknown headings that look like typos of known ones: line, heading, and the known heading.
    pub(crate) likely_typos: Vec<(u64, String, &'static str)>,
}

/// The most characters of an unclosed cell in a fault.
const MAX_SHOWN: usize = 30;

/// A column of the file.
struct Heading {
    text: String,
    column: Option<Column>,
    /// The unit in the heading.
    unit: Option<String>,
    /// True if the trailing zeros of its numbers are rounded.
    rounded: bool,
}

/// A cell that is not empty.
#[derive(Clone, Copy)]
struct Cell<'a> {
    line: u64,
    heading: &'a str,
    text: &'a str,
    unit: Option<&'a str>,
    /// True if trailing zeros are rounded.
    rounded: bool,
}

/// Reads a table.
pub(crate) fn read(text: &str) -> Result<Table, Vec<Fault>> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut faults = Vec::new();
    let mut table = Table::default();
    let comments = comments(text, &mut table);
    let delimiter = delimiter(text);
    let open = unclosed(text, delimiter);
    let readable = open.map_or(text, |open| &text[..open.record]);
    let mut reader = csv::ReaderBuilder::new()
        .comment(Some(b'#'))
        .flexible(true)
        .has_headers(false)
        .trim(csv::Trim::All)
        .delimiter(delimiter)
        .from_reader(readable.as_bytes());
    let mut headings: Option<Vec<Heading>> = None;
    for record in reader.records() {
        let record = match record {
            Ok(record) => record,
            Err(error) => {
                let line = error.position().map_or(1, csv::Position::line);
                faults.push(Fault::new(line, format!("expected cells between commas: {error}")));
                continue;
            }
        };
        let line = record.position().map_or(1, csv::Position::line);
        if record.iter().all(str::is_empty) {
            continue;
        }
        match &headings {
            None => headings = Some(read_headings(&record, line, &mut table.likely_typos, &mut faults)),
            Some(headings) => table.rows.extend(read_row(&record, line, headings, &comments, &mut faults)),
        }
    }
    match open {
        // The unclosed cell may contain the headings, or the only rows.
        Some(open) => faults.push(unclosed_quote(open)),
        None => check(&table, headings.as_deref(), &mut faults),
    }
    faults.sort_by_key(|fault| fault.line);
    if faults.is_empty() { Ok(table) } else { Err(faults) }
}

/// The fault of a quotation mark that makes one cell of all lines below it.
fn unclosed_quote(open: Unclosed<'_>) -> Fault {
    let after = match open.text.char_indices().nth(MAX_SHOWN) {
        Some((end, _)) => format!("{}…", &open.text[..end]),
        None => open.text.to_owned(),
    };
    Fault::new(open.line, format!("expected a second quotation mark, found none after `\"{after}`: the cell never ends"))
        .with_hint("close it at the end of the cell, as in \"1,300\", or leave it out; one that belongs to the text is written twice")
}

/// Checks that a table has headings, a known one among them, and rows.
fn check(table: &Table, headings: Option<&[Heading]>, faults: &mut Vec<Fault>) {
    let Some(headings) = headings else {
        faults.push(Fault::new(1, "expected a line of headings and rows below it, found nothing"));
        return;
    };
    if headings.iter().all(|heading| heading.column.is_none()) {
        let names: Vec<String> = headings.iter().map(|heading| format!("`{}`", heading.text)).collect();
        faults.push(
            Fault::new(
                1,
                format!(
                    "expected headings such as `measure`, `variant`, `mean`, `sd`, `change`, found {}",
                    names.join(", ")
                ),
            )
            .with_hint("the first line that is no comment names the columns"),
        );
    }
    if table.rows.is_empty() && faults.is_empty() {
        faults.push(Fault::new(1, "expected rows below the headings, found none"));
    }
}

/// A line `# name: text` whose name is a column sets that column's text for every row that has
/// none.
struct Comment {
    line: u64,
    name: String,
    text: String,
}

fn comments(text: &str, table: &mut Table) -> Vec<Comment> {
    let mut comments: Vec<Comment> = Vec::new();
    for (line, content) in (1..).zip(text.lines()) {
        let Some((name, text)) = content.strip_prefix('#').and_then(|rest| rest.split_once(':')) else { continue };
        let (name, text) = (name.trim(), text.trim().trim_end_matches(','));
        if name.eq_ignore_ascii_case("source") {
            table.sources.push(text.to_owned());
        } else if known(name).is_some() {
            comments.push(Comment { line, name: name.to_owned(), text: text.to_owned() });
        } else {
            table.likely_typos.extend(nearest_heading(name).map(|near| (line, name.to_owned(), near)));
        }
    }
    comments
}

/// The delimiter: the most frequent of comma, semicolon and tab in the headings.
fn delimiter(text: &str) -> u8 {
    let headings = text.lines().find(|line| !line.starts_with('#') && !line.trim().is_empty()).unwrap_or_default();
    let count = |delimiter: u8| headings.bytes().filter(|byte| *byte == delimiter).count();
    // The last of the largest wins, so the comma stands last.
    [b'\t', b';', b','].into_iter().max_by_key(|delimiter| count(*delimiter)).unwrap_or(b',')
}

fn read_headings(
    record: &csv::StringRecord,
    line: u64,
    likely_typos: &mut Vec<(u64, String, &'static str)>,
    faults: &mut Vec<Fault>,
) -> Vec<Heading> {
    let mut headings: Vec<Heading> = Vec::new();
    let locust = locust::is_locust(record);
    for text in record {
        if let Some(of_locust) = locust::column(text).filter(|_| locust) {
            let unit = of_locust.milliseconds.then(|| "ms".to_owned());
            let (column, rounded) = (of_locust.column, of_locust.rounded);
            headings.push(Heading { text: text.to_owned(), column, unit, rounded });
            continue;
        }
        let found = known(text);
        if found.is_none() {
            likely_typos.extend(nearest_heading(text).map(|near| (line, text.to_owned(), near)));
        }
        let (column, unit) = found.map_or((None, None), |(column, unit)| (Some(column), unit));
        let same =
            |other: &&Heading| other.text.eq_ignore_ascii_case(text) || column.is_some() && other.column == column;
        if let Some(other) = headings.iter().find(same).filter(|_| !text.is_empty()) {
            let what = format!("expected each column once, found it as `{}` already", other.text);
            faults
                .push(Fault::new(line, what).in_column(text).with_hint("leave one out, or give it a name of its own"));
        }
        headings.push(Heading { text: text.to_owned(), column, unit, rounded: false });
    }
    share_unit(&mut headings);
    find_variant(&mut headings);
    headings
}

/// Without a column `variant` or `baseline`, a heading that usually names variants becomes that
/// column.
fn find_variant(headings: &mut [Heading]) {
    if headings.iter().any(|heading| matches!(heading.column, Some(Column::Variant | Column::Baseline))) {
        return;
    }
    let mut usual: Vec<&mut Heading> =
        headings.iter_mut().filter(|heading| heading.column.is_none() && names_variants(&heading.text)).collect();
    if let [one] = usual.as_mut_slice() {
        one.column = Some(Column::Variant);
    }
}

/// Gives the unit in one heading to all statistics, as in `mean (ms), sd, max`.
fn share_unit(headings: &mut [Heading]) {
    let is_statistic = |heading: &Heading| matches!(heading.column, Some(Column::Statistic(_) | Column::Baseline));
    let mut units: Vec<String> =
        headings.iter().filter(|heading| is_statistic(heading)).filter_map(|heading| heading.unit.clone()).collect();
    units.sort();
    units.dedup();
    if let [unit] = units.as_slice() {
        for heading in headings.iter_mut().filter(|heading| is_statistic(heading) && heading.unit.is_none()) {
            heading.unit = Some(unit.clone());
        }
    }
}

fn read_row(
    record: &csv::StringRecord,
    line: u64,
    headings: &[Heading],
    comments: &[Comment],
    faults: &mut Vec<Fault>,
) -> Option<Row> {
    let before = faults.len();
    if record.iter().skip(headings.len()).any(|text| !text.is_empty()) {
        let message = format!("expected {} cells, found {}", headings.len(), record.len());
        let hint = "put quotation marks around a cell with a comma in it, as in \"1,300\"";
        faults.push(Fault::new(line, message).with_hint(hint));
        return None;
    }
    let mut builder = RowBuilder { row: Row { line, ..Row::default() }, unit: None, given: Vec::new() };
    let mut cells: Vec<(Option<Column>, Cell<'_>)> = Vec::new();
    for (heading, text) in headings.iter().zip(record) {
        let (unit, rounded) = (heading.unit.as_deref(), heading.rounded);
        let cell = Cell { line, heading: &heading.text, text, unit, rounded };
        if !is_absent(text) {
            cells.push((heading.column, cell));
        }
    }
    for comment in comments {
        let column = known(&comment.name).map(|(column, _)| column);
        let given = cells.iter().any(|(other, _)| *other == column);
        // Settings accumulate: those of the row come last, and so take precedence.
        if column == Some(Column::Settings) || !given {
            let (heading, text) = (&comment.name, &comment.text);
            let cell = Cell { line: comment.line, heading, text, unit: None, rounded: false };
            cells.insert(0, (column, cell));
        }
    }
    // A unit column applies to the whole row, whatever its position.
    cells.sort_by_key(|(column, _)| *column != Some(Column::Unit));
    for (column, cell) in cells {
        if let Err(fault) = builder.take(column, cell) {
            // A fault in a line for the whole table is reported once.
            if !faults.contains(&fault) {
                faults.push(fault);
            }
        }
    }
    let row = builder.finish().map_err(|mut found| faults.append(&mut found)).ok();
    row.filter(|_| faults.len() == before)
}

/// A row while it is read.
struct RowBuilder<'a> {
    row: Row,
    /// The unit column of the row.
    unit: Option<&'a str>,
    /// The statistics and the baseline with their headings, for faults.
    given: Vec<(&'a str, Statistic)>,
}

impl<'a> RowBuilder<'a> {
    fn take(&mut self, column: Option<Column>, cell: Cell<'a>) -> Result<(), Fault> {
        let Some(column) = column else {
            self.row.labels.push((cell.heading.to_owned(), cell.text.to_owned()));
            return Ok(());
        };
        self.read(column, cell).map_err(|unreadable| unreadable.at(cell.line, cell.heading, cell.text))
    }

    fn read(&mut self, column: Column, cell: Cell<'a>) -> Result<(), Unreadable> {
        let text = cell.text;
        let row = &mut self.row;
        match column {
            Column::Measure => row.measure = Some(text.to_owned()),
            Column::Variant => row.variant = Some(text.to_owned()),
            Column::Operation => row.operation = Some(text.to_owned()),
            Column::Mode => row.mode = Some(text.to_owned()),
            Column::Data => row.data = Some(text.to_owned()),
            Column::Method => row.method = Some(text.to_owned()),
            Column::Target => row.target = Some(text.to_owned()),
            Column::Settings => add_settings(&mut row.settings, text),
            Column::Runs => row.runs = Some(runs(text)?),
            Column::Requests => (row.requests, row.requests_bound) = count(cell)?,
            Column::Users => (row.users, row.users_bound) = count(cell)?,
            Column::Change => row.change = Some(change(cell)?),
            Column::Improvement => {
                let change = change(cell)?;
                row.claim = row.claim.or(change.said).or(Some(cell::Claim::Improvement));
                row.change = Some(change);
            }
            Column::Claim => row.claim = Some(cell::claim(text)?),
            Column::Better => row.better = Some(cell::direction(text)?),
            Column::Variance => row.variance = Some(share(cell, "a usual variance such as `±5 %`")?),
            Column::GeneratorCpu => row.generator_cpu = Some(share(cell, "a share such as `85 %`")?),
            Column::Order => row.order = Some(cell::order(text)?),
            Column::Started => row.order = Some(cell::started(text)?),
            Column::Errors => (row.errors, row.errors_bound) = errors(cell)?,
            Column::Best => row.best = cell::yes(text)?,
            Column::Ignored => {}
            Column::Bytes => row.bytes = Some(of_unit(cell, &[Unit::Bytes], "a size such as `100 KB`")?),
            Column::Rate => {
                row.rate = Some(of_unit(cell, &[Unit::PerSecond, Unit::BytesPerSecond], "a rate such as `4532/s`")?);
            }
            Column::Duration => row.duration = Some(time(cell)?),
            // A think time of zero was set and not measured: half a second of rounding would
            // explain any load.
            Column::Think => {
                let think = time(cell)?;
                row.think = Some(if think.value == 0.0 { think.exact() } else { think });
            }
            Column::Call => row.call = Some(time(cell)?),
            Column::Unit => {
                unit(text).ok_or_else(|| unknown_unit(text))?;
                self.unit = Some(text);
            }
            Column::Baseline => self.row.baseline = Some(self.number(cell)?),
            Column::Statistic(statistic) => {
                let number = self.number(cell)?;
                self.add(statistic, number, cell)?;
            }
            Column::Summary => {
                for (statistic, number) in summary(text)? {
                    let number = in_unit_of(number, cell.unit.or(self.unit))?;
                    self.add(statistic, number, cell)?;
                }
            }
        }
        Ok(())
    }

    /// Parses a number in its own unit, or in that of the heading or the row.
    fn number(&self, cell: Cell<'_>) -> Result<Quantity, Unreadable> {
        let number = in_unit_of(quantity(cell.text)?, cell.unit.or(self.unit))?;
        let half_step = if cell.rounded { number.coarse_half_step } else { number.half_step };
        Ok(Quantity { half_step, ..number })
    }

    fn add(&mut self, statistic: Statistic, number: Quantity, cell: Cell<'a>) -> Result<(), Unreadable> {
        if self.row.get(statistic).is_some() {
            return Err(Unreadable::expected("each statistic once in a row"));
        }
        self.row.statistics.push((statistic, number));
        self.given.push((cell.heading, statistic));
        Ok(())
    }

    /// The row, if all of its numbers have the same kind of unit.
    fn finish(mut self) -> Result<Row, Vec<Fault>> {
        let line = self.row.line;
        let Some(centre) = self.row.centre_of_statistics().cloned() else {
            // Beside a rate alone, the baseline is a rate as well.
            if let (Some(baseline), Some(rate)) = (&mut self.row.baseline, &self.row.rate)
                && baseline.unit == Unit::Count
            {
                baseline.unit = rate.unit;
            }
            return Ok(self.row);
        };
        // A zero without a unit has that of its neighbours, and the same rounding.
        let is_bare_zero = |number: &Quantity| number.value == 0.0 && number.unit == Unit::Count;
        let is_relative = |one: &(Statistic, Quantity)| one.0 == Statistic::Sd && one.1.unit == Unit::Share;
        let statistics = self.row.statistics.iter().filter(|one| !is_relative(one)).map(|(_, number)| number);
        let other = statistics.chain(&self.row.baseline).find(|number| !is_bare_zero(number));
        let first = other.filter(|_| is_bare_zero(&centre)).unwrap_or(&centre).clone();
        let zeros = self.row.statistics.iter_mut().map(|(_, number)| number).chain(&mut self.row.baseline);
        for zero in zeros.filter(|number| is_bare_zero(number)) {
            *zero = zero.clone().like(&first);
        }
        for (statistic, number) in &mut self.row.statistics {
            // `±5 %` of a time is relative to it.
            if *statistic == Statistic::Sd && number.unit == Unit::Share && first.unit != Unit::Share {
                let text = number.text.clone();
                let (value, half_step) = (number.value * centre.value, number.half_step * centre.value);
                *number = Quantity { text, ..Quantity::calculated(value, half_step, first.unit) };
            }
        }
        let mut faults = Vec::new();
        let headings = self.given.iter().map(|(heading, _)| *heading);
        let numbers = headings.zip(self.row.statistics.iter().map(|(_, number)| number));
        let baseline = self.row.baseline.iter().map(|baseline| ("baseline", baseline));
        for (heading, number) in numbers.chain(baseline) {
            if number.unit != first.unit && number.value != 0.0 {
                let message = format!("expected the same kind of number as `{}`, found `{}`", first.text, number.text);
                faults.push(
                    Fault::new(line, message)
                        .in_column(heading)
                        .with_hint("give each its unit, or all of a row in a column `unit`"),
                );
            }
        }
        if faults.is_empty() { Ok(self.row) } else { Err(faults) }
    }
}

/// A plain number in the unit of its heading or its row.
fn in_unit_of(number: Quantity, name: Option<&str>) -> Result<Quantity, Unreadable> {
    match name.filter(|_| number.plain) {
        None => Ok(number),
        Some(name) => {
            let (scale, of) = unit(name).ok_or_else(|| unknown_unit(name))?;
            Ok(number.in_unit(name, scale, of))
        }
    }
}

fn unknown_unit(text: &str) -> Unreadable {
    let expected = Unreadable::expected("a unit such as s, ms, µs, MB, MB/s, /s or %");
    match crate::unit::nearest(text) {
        Some(near) => expected.with_hint(format!("did you mean `{near}`?")),
        None => expected,
    }
}

/// Adds settings; later ones replace earlier ones of the same name.
fn add_settings(settings: &mut Vec<(String, String)>, text: &str) {
    for (key, value) in cell::settings(text) {
        settings.retain(|(known, _)| !known.eq_ignore_ascii_case(&key));
        settings.push((key, value));
    }
}

fn change(cell: Cell<'_>) -> Result<cell::Change, Unreadable> {
    match cell.unit.filter(|unit| *unit == "%" && !cell.text.contains('%')) {
        Some(_) => cell::change(&format!("{} %", cell.text)),
        None => cell::change(cell.text),
    }
}

fn runs(text: &str) -> Result<u64, Unreadable> {
    let expected = || Unreadable::expected("a whole number of runs, at least 1");
    let read = quantity(text).map_err(|_| expected())?;
    let whole = read.unit == Unit::Count && read.value >= 1.0 && read.value.fract() == 0.0 && read.value < 1e9;
    if whole { Ok(read.value as u64) } else { Err(expected()) }
}

/// Parses a number of things, and whether it is a bound. Under a heading with a unit of something else, such as
/// `requests (/s)`, there is none.
fn count(cell: Cell<'_>) -> Result<(Option<f64>, bool), Unreadable> {
    let read = quantity(cell.text)?;
    if read.unit != Unit::Count || read.value < 0.0 {
        return Err(Unreadable::expected("a number of things"));
    }
    let read = in_unit_of(read, cell.unit)?;
    Ok(((read.unit == Unit::Count).then_some(read.value), read.bound))
}

/// Parses a number or a share of errors, and the kind of bound that it is. Under a heading with another unit, such as
/// `errors (/s)`, there is no number.
fn errors(cell: Cell<'_>) -> Result<(Option<cell::Errors>, Option<Bound>), Unreadable> {
    let read = cell::errors(cell.text)?;
    // The word `none` is no bound.
    let Ok(number) = quantity(cell.text) else { return Ok((Some(read), None)) };
    let bound = number.kind_of_bound();
    let (cell::Errors::Count(_), Some(name)) = (read, cell.unit) else { return Ok((Some(read), bound)) };
    let number = in_unit_of(number, Some(name))?;
    let errors = match number.unit {
        Unit::Count => Some(cell::Errors::Count(number.value)),
        Unit::Share => Some(cell::Errors::Share(number.value)),
        _ => None,
    };
    Ok((errors, bound))
}

fn share(cell: Cell<'_>, expected: &str) -> Result<f64, Unreadable> {
    let read = in_unit_of(quantity(cell.text)?, cell.unit)?;
    if read.unit == Unit::Share && read.value >= 0.0 {
        return Ok(read.value);
    }
    Err(Unreadable::expected(expected).with_hint(format!("is it per cent? then write `{} %`", cell.text)))
}

fn time(cell: Cell<'_>) -> Result<Quantity, Unreadable> {
    if cell.text.eq_ignore_ascii_case("none") {
        return Ok(Quantity { unit: Unit::Seconds, ..quantity("0 s")? });
    }
    let read = in_unit_of(quantity(cell.text)?, cell.unit)?;
    match read.unit {
        Unit::Seconds => Ok(read),
        Unit::Count if read.value == 0.0 => Ok(Quantity { unit: Unit::Seconds, ..read }),
        _ => Err(Unreadable::expected("a time with its unit, such as `2.19 ms`")),
    }
}

/// Parses a number in one of these units; a plain one is in base units.
fn of_unit(cell: Cell<'_>, units: &[Unit], expected: &str) -> Result<Quantity, Unreadable> {
    let read = in_unit_of(quantity(cell.text)?, cell.unit)?;
    match read.unit {
        unit if units.contains(&unit) => Ok(read),
        Unit::Count => Ok(Quantity { unit: units[0], ..read }),
        _ => Err(Unreadable::expected(expected)),
    }
}
