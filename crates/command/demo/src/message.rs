//! The five bytes of gRPC's framing, and as much of protobuf as tiny messages need. The load generator has its own code
//! for both, so that tests check one against the other.

use bytes::Bytes;

/// A message in its frame: uncompressed, with its length.
///
/// # Panics
/// When the message has 4 GiB or more.
#[must_use]
pub fn frame(message: &[u8]) -> Bytes {
    let length = u32::try_from(message.len()).expect("the messages here are short");
    let mut framed = Vec::with_capacity(5 + message.len());
    framed.push(0);
    framed.extend(length.to_be_bytes());
    framed.extend(message);
    framed.into()
}

/// Takes the first whole message off a buffer; none when more bytes are needed.
///
/// # Errors
/// When the message is compressed.
pub fn take_message(buffer: &mut Vec<u8>) -> Result<Option<Vec<u8>>, &'static str> {
    let Some(head) = buffer.first_chunk::<5>() else { return Ok(None) };
    let [compressed, length @ ..] = *head;
    if compressed != 0 {
        return Err("compressed messages are not understood");
    }
    let end = 5 + u32::from_be_bytes(length) as usize;
    if buffer.len() < end {
        return Ok(None);
    }
    let message = buffer[5..end].to_vec();
    buffer.drain(..end);
    Ok(Some(message))
}

/// The value of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value<'a> {
    /// A whole number of any integer type.
    Varint(u64),
    /// A text, bytes, a message, or a number of fixed size in its four or eight bytes.
    Bytes(&'a [u8]),
}

/// The fields of a message with their numbers; none if it is not well formed.
#[must_use]
pub fn fields(mut message: &[u8]) -> Option<Vec<(u64, Value<'_>)>> {
    let mut fields = Vec::new();
    while !message.is_empty() {
        let key = take_varint(&mut message)?;
        let value = match key & 7 {
            0 => Value::Varint(take_varint(&mut message)?),
            1 => Value::Bytes(message.split_off(..8)?),
            2 => {
                let length = usize::try_from(take_varint(&mut message)?).ok()?;
                Value::Bytes(message.split_off(..length)?)
            }
            5 => Value::Bytes(message.split_off(..4)?),
            _ => return None,
        };
        fields.push((key >> 3, value));
    }
    Some(fields)
}

fn take_varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let byte = *bytes.split_off_first()?;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

/// Appends a field that holds bytes, a text, or another message.
pub fn put_bytes(message: &mut Vec<u8>, field: u64, bytes: &[u8]) {
    put_varint(message, field << 3 | 2);
    put_varint(message, bytes.len() as u64);
    message.extend(bytes);
}

/// Appends a field that holds a whole number.
pub fn put_number(message: &mut Vec<u8>, field: u64, number: u64) {
    put_varint(message, field << 3);
    put_varint(message, number);
}

fn put_varint(message: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        message.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    message.push(value as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_read_back() {
        let mut message = Vec::new();
        put_number(&mut message, 1, u64::MAX);
        put_bytes(&mut message, 200, &[7; 300]);
        assert_eq!(fields(&message), Some(vec![(1, Value::Varint(u64::MAX)), (200, Value::Bytes(&[7; 300]))]));
        assert_eq!(fields(&message[..message.len() - 1]), None);
    }

    #[test]
    fn messages_come_off_a_buffer_one_by_one() {
        let mut buffer = [frame(b"one"), frame(b"")].concat();
        buffer.extend(&frame(b"three")[..6]);
        assert_eq!(take_message(&mut buffer), Ok(Some(b"one".to_vec())));
        assert_eq!(take_message(&mut buffer), Ok(Some(Vec::new())));
        assert_eq!(take_message(&mut buffer), Ok(None));
        buffer.extend(b"hree");
        assert_eq!(take_message(&mut buffer), Ok(Some(b"three".to_vec())));
        assert!(take_message(&mut vec![1, 0, 0, 0, 0]).is_err());
    }
}
