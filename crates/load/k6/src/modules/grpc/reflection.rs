//! Asks a server for its types, by `reflection`, over the connection of a script.

use crate::operations::{Event, GrpcCall, GrpcEnd, GrpcEvent, K6, Metadata, Op};
use crate::schema::Methods;
use plimsoll_grpc::reflection::{Inquiry, PATHS};
use plimsoll_grpc::status;
use plimsoll_javascript::{EventLoop, OpId, Wakeup};
use plimsoll_model::units::{Instant, Nanos};
use prost_reflect::DescriptorPool;
use rquickjs::{Ctx, Result};

/// All methods of the server, or why they are not known.
pub(super) fn ask(
    ctx: &Ctx<'_>,
    connection: OpId,
    metadata: &Metadata,
    timeout: Nanos,
) -> Result<std::result::Result<Methods, String>> {
    let until = EventLoop::<K6>::of(ctx)?.now().after(timeout);
    for path in PATHS {
        let talk = Talk::begin(ctx, connection, path, metadata, until)?;
        let told = talk.types(ctx)?;
        talk.end(ctx)?;
        match told {
            Ok(types) => return Ok(Ok(Methods::of(&types))),
            // It may know the older version.
            Err(end) if end.status == status::UNIMPLEMENTED => {}
            Err(end) => return Ok(Err(end.message)),
        }
    }
    Ok(Err("the server has no reflection: name its files with `client.load()`".to_owned()))
}

/// One stream of questions and answers.
struct Talk {
    id: OpId,
    timer: OpId,
}

type Asked<T> = Result<std::result::Result<T, GrpcEnd>>;

impl Talk {
    fn begin(ctx: &Ctx<'_>, connection: OpId, path: &str, metadata: &Metadata, until: Instant) -> Result<Talk> {
        let events = EventLoop::<K6>::of(ctx)?;
        let (name, path, metadata) = (path.into(), path.to_owned(), metadata.clone());
        let call = GrpcCall { connection, path, metadata, timeout: None, message: None, name };
        Ok(Talk { id: events.start(Op::GrpcCall(Box::new(call))), timer: events.start_timer(until) })
    }

    fn types(&self, ctx: &Ctx<'_>) -> Asked<DescriptorPool> {
        let mut inquiry = Inquiry::about_all();
        while let Some(question) = inquiry.question() {
            let taken = self.answer(ctx, question)?.and_then(|answer| inquiry.take(&answer).map_err(failed));
            if let Err(end) = taken {
                return Ok(Err(end));
            }
        }
        Ok(inquiry.pool().map_err(failed))
    }

    fn answer(&self, ctx: &Ctx<'_>, question: Vec<u8>) -> Asked<Vec<u8>> {
        let events = EventLoop::<K6>::of(ctx)?;
        events.send(Op::GrpcSend(self.id, question));
        loop {
            let (_, Wakeup::Operation(Event::Grpc(event))) = events.next(ctx, &[self.id, self.timer])? else {
                return Ok(Err(failed("the server did not answer to reflection in time".to_owned())));
            };
            match *event {
                GrpcEvent::Message(message) => return Ok(Ok(message)),
                GrpcEvent::Ended(end) => {
                    let message = format!("the server ended reflection with status {}: {}", end.status, end.message);
                    return Ok(Err(GrpcEnd { message, ..end }));
                }
                _ => {}
            }
        }
    }

    fn end(self, ctx: &Ctx<'_>) -> Result<()> {
        let events = EventLoop::<K6>::of(ctx)?;
        events.send(Op::GrpcEnd(self.id));
        events.cancel(self.id);
        events.cancel(self.timer);
        Ok(())
    }
}

fn failed(message: String) -> GrpcEnd {
    GrpcEnd { status: status::INTERNAL, message, ..GrpcEnd::default() }
}
