//! The body of a request of a flow.

use crate::document::{Fault, Faults, Span, table};
use crate::table::http::value_uses;
use crate::value::{
    AnyJson, Entries, Scope, Templated, Text, UserTemplate, ValueNames, ValueUse, Word, resolve_all, resolve_optional,
};
use plimsoll_model::flow::{Body, MultipartPart, PartContent, Piece};

table! {
    /// A field of a form, or a file in it.
    struct PartTable {
        /// The name of the field.
        name: Templated<Text>,
        /// What the field holds.
        value: Option<UserTemplate<Word>>,
        /// A file, relative to the study's folder.
        file: Option<Templated<Text>>,
        /// The media type. Default: none is sent for a field.
        r#type: Option<Templated<Text>>,
    }
}

/// What a step says of its body, in one of five ways.
#[derive(Clone, Copy)]
pub(crate) struct RequestBody<'a> {
    pub(crate) text: Option<&'a UserTemplate<Word>>,
    pub(crate) json: Option<&'a AnyJson>,
    pub(crate) form: Option<&'a Entries<UserTemplate<Word>>>,
    pub(crate) multipart: Option<&'a [PartTable]>,
    pub(crate) file: Option<&'a Templated<Text>>,
}

impl RequestBody<'_> {
    /// The body; an empty text where there is none.
    pub(crate) fn resolve(&self, scope: &Scope<'_>, values: &ValueNames, faults: &mut Faults) -> Option<Body> {
        if let Some(json) = self.json {
            return json.0.with_values(scope, values, faults).map(Body::Json);
        }
        if let Some(form) = self.form {
            let literal = |name: &String| plimsoll_model::flow::Text(vec![Piece::Literal(name.clone())]);
            let fields =
                resolve_all(&form.0, |(name, _, text)| Some((literal(name), text.resolve(scope, values, faults)?)));
            return fields.map(Body::Form);
        }
        if let Some(parts) = self.multipart {
            return resolve_all(parts, |part| part.resolve(scope, values, faults)).map(Body::Multipart);
        }
        if let Some(file) = self.file {
            return file.resolve(scope, faults).map(|file| Body::File(scope.dir.join(file.0)));
        }
        match self.text {
            Some(text) => text.resolve(scope, values, faults).map(Body::Text),
            None => Some(Body::None),
        }
    }

    /// The values in it.
    pub(crate) fn uses(&self) -> Vec<ValueUse> {
        let text = self.text.map(UserTemplate::uses).into_iter().flatten();
        let json = self.json.map(|json| json.0.uses()).into_iter().flatten();
        let form = self.form.map(value_uses).into_iter().flatten();
        let parts = self.multipart.unwrap_or_default().iter().filter_map(|part| part.value.as_ref());
        text.chain(json).chain(form).chain(parts.flat_map(UserTemplate::uses)).collect()
    }

    /// Faults that no level changes, of the step at `place`.
    pub(crate) fn check(&self, place: &Span, faults: &mut Faults) {
        let ways = [
            ("body", self.text.is_some()),
            ("json", self.json.is_some()),
            ("form", self.form.is_some()),
            ("multipart", self.multipart.is_some()),
            ("body_file", self.file.is_some()),
        ];
        let given: Vec<&str> = ways.into_iter().filter(|(_, given)| *given).map(|(name, _)| name).collect();
        if let [first, second, ..] = given.as_slice() {
            let fault = Fault::error(place, format!("the step has both `{first}` and `{second}`"));
            faults.add(fault.help("a request has one body: keep one of them"));
        }
        self.multipart.unwrap_or_default().iter().for_each(|part| part.check(faults));
    }
}

impl PartTable {
    fn resolve(&self, scope: &Scope<'_>, values: &ValueNames, faults: &mut Faults) -> Option<MultipartPart> {
        let name = self.name.resolve(scope, faults);
        let content = match (&self.value, &self.file) {
            (Some(value), _) => value.resolve(scope, values, faults).map(PartContent::Text),
            (None, Some(file)) => file.resolve(scope, faults).map(|file| PartContent::File(scope.dir.join(file.0))),
            (None, None) => None,
        };
        let content_type = resolve_optional(self.r#type.as_ref(), |is| is.resolve(scope, faults));
        Some(MultipartPart { name: name?.0, content: content?, content_type: content_type?.map(|is| is.0) })
    }

    fn check(&self, faults: &mut Faults) {
        if self.value.is_some() == self.file.is_some() {
            let fault = Fault::error(&self.place, "a part of a form has either a `value` or a `file`");
            faults.add(
                fault.help("write `{ name = \"note\", value = \"text\" }` or `{ name = \"doc\", file = \"doc.pdf\" }`"),
            );
        }
    }
}
