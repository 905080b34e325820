//! Asks a server for its services by reflection, over the connection of a script.

use crate::operations::{Event, GrpcCall, GrpcEnd, GrpcEvent, K6, Metadata, Op};
use crate::schema::Methods;
use plimsoll_grpc::reflection::{Inquiry, PATHS};
use plimsoll_grpc::status;
use plimsoll_javascript::{EventLoop, OpId, Wakeup};
use plimsoll_model::units::{Instant, Nanos};
use prost_reflect::DescriptorPool;
use rquickjs::{Ctx, Result};

/// All methods of the server, or why they are unknown.
pub(super) fn ask(
    ctx: &Ctx<'_>,
    connection: OpId,
    metadata: &Metadata,
    timeout: Nanos,
) -> Result<std::result::Result<Methods, String>> {
    let until = EventLoop::<K6>::of(ctx)?.now().after(timeout);
    for path in PATHS {
        let stream = ReflectionStream::begin(ctx, connection, path, metadata, until)?;
        let types = stream.types(ctx)?;
        stream.end(ctx)?;
        match types {
            Ok(types) => return Ok(Ok(Methods::of(&types))),
            // It may support the older version.
            Err(end) if end.status == status::UNIMPLEMENTED => {}
            Err(end) => return Ok(Err(end.message)),
        }
    }
    Ok(Err("the server has no reflection: name its files with `client.load()`".to_owned()))
}

/// A stream of reflection requests and responses.
struct ReflectionStream {
    id: OpId,
    timer: OpId,
}

type CallResult<T> = Result<std::result::Result<T, GrpcEnd>>;

impl ReflectionStream {
    fn begin(
        ctx: &Ctx<'_>,
        connection: OpId,
        path: &str,
        metadata: &Metadata,
        until: Instant,
    ) -> Result<ReflectionStream> {
        let events = EventLoop::<K6>::of(ctx)?;
        let (name, path, metadata) = (path.into(), path.to_owned(), metadata.clone());
        let call = GrpcCall { connection, path, metadata, timeout: None, message: None, name };
        Ok(ReflectionStream { id: events.start(Op::GrpcCall(Box::new(call))), timer: events.start_timer(until) })
    }

    fn types(&self, ctx: &Ctx<'_>) -> CallResult<DescriptorPool> {
        let mut inquiry = Inquiry::about_all();
        while let Some(question) = inquiry.question() {
            let taken = self.answer(ctx, question)?.and_then(|answer| inquiry.take(&answer).map_err(failed));
            if let Err(end) = taken {
                return Ok(Err(end));
            }
        }
        Ok(inquiry.pool().map_err(failed))
    }

    fn answer(&self, ctx: &Ctx<'_>, question: Vec<u8>) -> CallResult<Vec<u8>> {
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
