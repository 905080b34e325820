//! Finds the number of a sequence check in an encoded protobuf message, without decoding all of it.

use super::schema::listed;
use plimsoll_model::workload::Sequence;
use prost_reflect::{Kind, MessageDescriptor};

/// The field with the number, and its encoding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NumberField {
    field: u32,
    form: Form,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Form {
    /// A varint that is the number.
    Varint,
    /// A varint in zigzag form (`sint32`, `sint64`).
    Zigzag,
    /// Four or eight bytes, little-endian.
    Fixed,
    /// A text in which the number follows this text, in decimal.
    After(String),
}

impl NumberField {
    /// Finds the field in the type of the reply.
    pub(super) fn new(sequence: &Sequence, reply: &MessageDescriptor) -> Result<NumberField, String> {
        let wanted = &sequence.field;
        let Some(field) = reply.get_field_by_name(wanted) else {
            return Err(format!(
                "the sequence check looks for field `{wanted}`, but the fields of `{}` are {}",
                reply.full_name(),
                listed(reply.fields().map(|field| field.name().to_owned()))
            ));
        };
        let form = match field.kind() {
            _ if field.is_list() || field.is_map() => None,
            Kind::String => Some(Form::After(sequence.after.clone())),
            Kind::Int32 | Kind::Int64 | Kind::Uint32 | Kind::Uint64 => Some(Form::Varint),
            Kind::Sint32 | Kind::Sint64 => Some(Form::Zigzag),
            Kind::Fixed32 | Kind::Fixed64 | Kind::Sfixed32 | Kind::Sfixed64 => Some(Form::Fixed),
            _ => None,
        };
        let form = form.ok_or_else(|| {
            format!("the sequence check needs a string or an integer, but field `{wanted}` is neither")
        })?;
        Ok(NumberField { field: field.number(), form })
    }

    #[cfg(test)]
    pub(super) fn new_for_test(field: u32, after: &str) -> NumberField {
        NumberField { field, form: Form::After(after.to_owned()) }
    }

    /// Finds the number in a message; `None` if it is absent.
    pub(super) fn find(&self, message: &[u8]) -> Option<u64> {
        let mut input = message;
        let mut found = None;
        while !input.is_empty() {
            let tag = varint(&mut input)?;
            let value = Value::read(tag & 7, &mut input)?;
            // Of a repeated field the last value counts (protobuf's own rule).
            if tag >> 3 == u64::from(self.field) {
                found = self.read(&value);
            }
        }
        found
    }

    fn read(&self, value: &Value<'_>) -> Option<u64> {
        match (&self.form, value) {
            (Form::Varint, Value::Varint(value)) => u64::try_from(*value as i64).ok(),
            (Form::Zigzag, Value::Varint(value)) => (value & 1 == 0).then_some(value >> 1),
            (Form::Fixed, Value::Bytes(bytes)) => {
                let mut eight = [0; 8];
                eight.get_mut(..bytes.len())?.copy_from_slice(bytes);
                Some(u64::from_le_bytes(eight))
            }
            (Form::After(before), Value::Bytes(bytes)) => decimal_after(bytes, before.as_bytes()),
            _ => None,
        }
    }
}

/// A field's value on the wire.
enum Value<'a> {
    Varint(u64),
    Bytes(&'a [u8]),
}

impl<'a> Value<'a> {
    fn read(wire_type: u64, input: &mut &'a [u8]) -> Option<Value<'a>> {
        let length = match wire_type {
            0 => return varint(input).map(Value::Varint),
            1 => 8,
            2 => usize::try_from(varint(input)?).ok()?,
            5 => 4,
            _ => return None,
        };
        let (bytes, rest) = input.split_at_checked(length)?;
        *input = rest;
        Some(Value::Bytes(bytes))
    }
}

fn varint(input: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = input.split_first()?;
        *input = rest;
        value |= u64::from(byte & 127) << shift;
        if byte < 128 {
            return Some(value);
        }
    }
    None
}

fn decimal_after(text: &[u8], before: &[u8]) -> Option<u64> {
    let start = match before {
        [] => 0,
        _ => text.windows(before.len()).position(|window| window == before)? + before.len(),
    };
    let digits = text[start..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    std::str::from_utf8(&text[start..start + digits]).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn after(text: &str) -> NumberField {
        NumberField { field: 1, form: Form::After(text.to_owned()) }
    }

    #[test]
    fn a_number_is_found_behind_its_text() {
        let message = b"\x0a\x1bIncremented value is 123456";
        assert_eq!(after("value is ").find(message), Some(123_456));
        assert_eq!(after("count is ").find(message), None);
        assert_eq!(NumberField { field: 2, form: Form::Varint }.find(message), None);
    }

    #[test]
    fn numbers_are_read_in_every_wire_form() {
        let cases: [(&[u8], Form, Option<u64>); 5] = [
            (b"\x08\x96\x01", Form::Varint, Some(150)),
            (b"\x08\xac\x02", Form::Zigzag, Some(150)),
            (b"\x0d\x96\x00\x00\x00", Form::Fixed, Some(150)),
            (b"\x09\x96\x00\x00\x00\x00\x00\x00\x00", Form::Fixed, Some(150)),
            (b"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", Form::Varint, None),
        ];
        for (message, form, number) in cases {
            assert_eq!(NumberField { field: 1, form: form.clone() }.find(message), number, "{form:?}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_not_but_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            after("x").find(&bytes);
            NumberField { field: 1, form: Form::Fixed }.find(&bytes);
        }
    }
}
