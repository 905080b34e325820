//! The module `k6/experimental/streams`: readable streams with a default controller, as the standard
//! <https://streams.spec.whatwg.org> has them. They are promises and queues, and so written in JavaScript.

use plimsoll_javascript::NativeModule;
use rquickjs::{Ctx, Object, Result};

/// See the module.
pub(crate) struct Streams;

impl NativeModule for Streams {
    const NAME: &'static str = "k6/experimental/streams";
    const EXPORTS: &'static [&'static str] =
        &["default", "CountQueuingStrategy", "ReadableStream", "ReadableStreamDefaultReader"];

    fn evaluate<'js>(ctx: &Ctx<'js>) -> Result<Object<'js>> {
        ctx.eval(include_str!("streams.js"))
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::TestUser;

    /// The value of an expression in an async function, after all that it waits for.
    fn evaluated(body: &str) -> String {
        let text = format!(
            "import {{ ReadableStream, CountQueuingStrategy, ReadableStreamDefaultReader }} from 'k6/experimental/streams';
            const all = async (stream) => {{
                const [reader, chunks] = [stream.getReader(), []];
                for (;;) {{ const {{ done, value }} = await reader.read(); if (done) return chunks; chunks.push(value); }}
            }};
            const why = async (make) => {{ try {{ await make(); return 'nothing'; }} catch (error) {{ return error.name ?? error; }} }};
            const settled = async () => {{ for (let turn = 0; turn < 20; turn += 1) await null; }};
            export default async () => {{ {body} }};"
        );
        TestUser::of(&text).returned()
    }

    #[test]
    fn streams_give_what_their_sources_enqueue() {
        for (body, expected) in [
            ("return all(new ReadableStream({ start(c) { c.enqueue(1); c.enqueue('b'); c.close(); } }))", r#"[1,"b"]"#),
            (
                "let n = 0; return all(new ReadableStream({ pull(c) { c.enqueue(++n); if (n === 3) c.close(); } }))",
                "[1,2,3]",
            ),
            (
                "let n = 0; return all(new ReadableStream({ async pull(c) { await null; n += 1; if (n < 3) c.enqueue(n); else c.close(); } }))",
                "[1,2]",
            ),
            (
                "return all(new ReadableStream({ start(c) { settled().then(() => { c.enqueue('late'); c.close(); }); } }))",
                r#"["late"]"#,
            ),
        ] {
            assert_eq!(evaluated(body), expected, "{body}");
        }
    }

    #[test]
    fn a_source_is_asked_only_for_what_there_is_room_for() {
        let body = |strategy: &str| {
            format!(
                "let [pulls, sizes] = [0, []];
                const stream = new ReadableStream({{ pull(c) {{ pulls += 1; c.enqueue(pulls); sizes.push(c.desiredSize); }} }}, {strategy});
                await settled();
                const before = pulls; const reader = stream.getReader(); await reader.read();
                await settled();
                return [before, pulls, sizes[0]];"
            )
        };
        for (strategy, expected) in [
            ("undefined", "[1,2,0]"),
            ("new CountQueuingStrategy({ highWaterMark: 3 })", "[3,4,2]"),
            ("{ highWaterMark: 4, size: () => 2 }", "[2,3,2]"),
            ("{ highWaterMark: 0 }", "[0,1,0]"),
        ] {
            assert_eq!(evaluated(&body(strategy)), expected, "{strategy}");
        }
    }

    #[test]
    fn a_stream_has_one_reader_until_that_lets_go() {
        let body = "const stream = new ReadableStream({ start(c) { c.enqueue(1); c.enqueue(2); } });
            const first = stream.getReader(); const seen = [stream.locked, await why(() => stream.getReader()), await why(() => stream.cancel())];
            const one = await first.read(); first.releaseLock();
            const second = new ReadableStreamDefaultReader(stream);
            return [...seen, one, await why(() => first.read()), await why(() => first.closed), await second.read()];";
        assert_eq!(
            evaluated(body),
            r#"[true,"TypeError","TypeError",{"value":1,"done":false},"TypeError","TypeError",{"value":2,"done":false}]"#
        );
    }

    #[test]
    fn errors_and_cancels_reach_both_sides() {
        for (body, expected) in [
            ("return why(() => all(new ReadableStream({ pull() { throw 'broken'; } })))", r#""broken""#),
            ("return why(() => all(new ReadableStream({ start(c) { c.error('gone'); } })))", r#""gone""#),
            ("return why(() => all(new ReadableStream({ start: () => Promise.reject('late') })))", r#""late""#),
            ("return why(() => new ReadableStream({ start() { throw 'at once'; } }))", r#""at once""#),
            (
                "const told = []; const stream = new ReadableStream({ cancel(reason) { told.push(reason); } });
                const reader = stream.getReader(); await reader.cancel('enough'); return [told, await reader.read(), await reader.closed ?? null];",
                r#"[["enough"],{"done":true},null]"#,
            ),
            (
                "const held = []; const stream = new ReadableStream({ start(c) { held.push(c); c.close(); } });
                return [await why(() => held[0].enqueue(1)), await why(() => held[0].close()), held[0].desiredSize];",
                r#"["TypeError","TypeError",0]"#,
            ),
            (
                "const stream = new ReadableStream({ start(c) { c.enqueue(1); } }, { size: () => -1 }); return 'made'",
                "",
            ),
        ] {
            if expected.is_empty() {
                let text = format!(
                    "import {{ ReadableStream }} from 'k6/experimental/streams'; export default () => {{ {body} }};"
                );
                assert!(TestUser::of(&text).thrown().contains("size"), "{body}");
            } else {
                assert_eq!(evaluated(body), expected, "{body}");
            }
        }
    }

    #[test]
    fn what_is_no_source_or_strategy_is_refused() {
        let body = "return Promise.all([() => new ReadableStream(5), () => new ReadableStream({ type: 'bytes' }),
            () => new ReadableStream({ pull: 1 }), () => new ReadableStream({}, { highWaterMark: -1 }), () => new ReadableStream({}, { size: 1 }),
            () => new CountQueuingStrategy(), () => new CountQueuingStrategy({}), () => new ReadableStreamDefaultReader({})].map(why));";
        assert_eq!(
            evaluated(body),
            r#"["TypeError","NotSupportedError","TypeError","RangeError","TypeError","TypeError","TypeError","TypeError"]"#
        );
    }
}
