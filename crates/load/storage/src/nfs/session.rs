//! The operations of a user on objects behind NFS.

use super::TransferOptions;
use super::client::{Client, File, Limits, ListPosition};
use crate::{Expected, Object, Session, in_words};
use nfs3_client::nfs3_types::nfs3::{nfs_fh3, writeverf3};
use plimsoll_engine::blocking::{Call, Failure};
use plimsoll_model::record::{ErrorKind, Part};
use plimsoll_model::storage::Mode;
use std::cmp::Ordering;

/// A user with a folder and a connection of its own.
#[derive(Debug)]
pub(super) struct NfsSession {
    pub(super) client: Client,
    pub(super) folder: nfs_fh3,
    pub(super) options: TransferOptions,
    pub(super) limits: Limits,
}

impl Session for NfsSession {
    fn write(&mut self, object: &Object, call: &mut Call) -> Result<(), Failure> {
        let file = call.part(Part::Open, |call| match self.options.overwrite {
            true => self.client.truncate(&self.folder, &object.name, call),
            false => self.client.create(&self.folder, &object.name, call),
        })?;
        let uncommitted = call.part(Part::Data, |call| self.send(object, &file, call))?;
        // Like the client of a kernel, commit when a file is closed: whoever opens it next, on any machine,
        // must see all of it.
        let part = if self.options.mode == Mode::Durable { Part::Sync } else { Part::Close };
        call.part(part, |call| self.commit(&file, uncommitted, call))
    }

    fn read(&mut self, object: &Object, call: &mut Call) -> Result<(), Failure> {
        let file = call.part(Part::Open, |call| self.client.look_up(&self.folder, &object.name, call))?;
        let length = call.part(Part::Data, |call| self.fetch(object, &file, call))?;
        let Object { name, size, .. } = object;
        let detail = match length.cmp(size) {
            Ordering::Equal => return Ok(()),
            Ordering::Less => format!("{name} ends after {length} bytes, not after the {size} of the object"),
            Ordering::Greater => format!("{name} holds more than the {size} bytes of the object"),
        };
        Err(Failure::new(ErrorKind::Check, detail))
    }

    fn list(&mut self, expected: &Expected, call: &mut Call) -> Result<(), Failure> {
        let (mut found, mut next) = (0, Some(ListPosition::default()));
        while let Some(position) = next {
            call.go_on()?;
            let (names, following) = self.client.names(&self.folder, position, self.limits.page, call)?;
            (found, next) = (found + names.len(), following);
        }
        if expected.contains(&found) {
            return Ok(());
        }
        let expected = in_words(expected);
        Err(Failure::new(ErrorKind::Check, format!("the listing has {found} names, not those of {expected} objects")))
    }

    fn discard(&mut self, object: &Object, call: &mut Call) -> Result<(), Failure> {
        let deleted = self.delete(object, call);
        // The name of the status (RFC 1813) is a part of what a failure says.
        let is_gone = deleted.as_ref().is_err_and(|failure| failure.detail.contains("NFS3ERR_NOENT"));
        if is_gone { Ok(()) } else { deleted }
    }

    fn delete(&mut self, object: &Object, call: &mut Call) -> Result<(), Failure> {
        self.client.remove(&self.folder, &object.name, call)
    }
}

impl NfsSession {
    /// Writes all bytes. Returns the verifier of those that the server has not committed.
    fn send(&mut self, object: &Object, file: &File<'_>, call: &mut Call) -> Result<Option<writeverf3>, Failure> {
        let (mut offset, mut uncommitted) = (0, None);
        while offset < object.size {
            call.go_on()?;
            let longest = (object.size - offset).min(self.limits.write.into()) as usize;
            let bytes = self.options.content.slice(object.number, offset, longest);
            let written = self.client.write(file, offset, bytes, call)?;
            if let Some(verifier) = written.uncommitted {
                same_server(uncommitted.replace(verifier), verifier, file)?;
            }
            call.sent(written.count as usize);
            offset += u64::from(written.count);
        }
        Ok(uncommitted)
    }

    fn commit(&mut self, file: &File<'_>, uncommitted: Option<writeverf3>, call: &Call) -> Result<(), Failure> {
        let Some(verifier) = uncommitted else { return Ok(()) };
        same_server(Some(verifier), self.client.commit(file, call)?, file)
    }

    /// Reads all bytes, and one more if there is one. Returns their number.
    fn fetch(&mut self, object: &Object, file: &File<'_>, call: &mut Call) -> Result<u64, Failure> {
        let mut offset = 0;
        while offset <= object.size {
            call.go_on()?;
            let count = (object.size - offset).clamp(1, self.limits.read.into()) as u32;
            let (bytes, is_last) = self.client.read(file, offset, count, call)?;
            call.saw_first_byte();
            call.received(bytes.len());
            self.compare(object, offset, &bytes)?;
            offset += bytes.len() as u64;
            // Some servers never set the end-of-file flag.
            if is_last || bytes.is_empty() {
                break;
            }
        }
        Ok(offset)
    }

    fn compare(&self, object: &Object, offset: u64, bytes: &[u8]) -> Result<(), Failure> {
        if !self.options.verify {
            return Ok(());
        }
        let expected = (object.size - offset).min(bytes.len() as u64) as usize;
        match self.options.content.first_difference(object.number, offset, &bytes[..expected]) {
            None => Ok(()),
            Some(at) => {
                let detail = format!("{} differs from what was written at byte {at}", object.name);
                Err(Failure::new(ErrorKind::Check, detail))
            }
        }
    }
}

/// Fails if the server restarted between two replies: a changed verifier means that it lost uncommitted
/// bytes (RFC 1813, 3.3.7 and 3.3.21).
fn same_server(before: Option<writeverf3>, now: writeverf3, file: &File<'_>) -> Result<(), Failure> {
    match before {
        Some(before) if before != now => {
            let detail = format!("the server restarted while {} was written, and may have lost parts of it", file.name);
            Err(Failure::new(ErrorKind::Io, detail))
        }
        _ => Ok(()),
    }
}
