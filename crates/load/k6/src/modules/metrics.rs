//! The module `k6/metrics`: metrics of a script's own.

use crate::operations::K6;
use crate::user::warn;
use crate::user::{User, read_tags};
use plimsoll_javascript::{EventLoop, NativeModule};
use plimsoll_k6_run::metrics::{Contains, Kind, MetricId};
use rquickjs::class::{Class, JsClass, Trace};
use rquickjs::function::Opt;
use rquickjs::{Coerced, Ctx, Exception, FromJs, JsLifetime, Object, Result, Value};

/// See the module.
pub(crate) struct Metrics;

impl NativeModule for Metrics {
    const NAME: &'static str = "k6/metrics";
    const EXPORTS: &'static [&'static str] = &["default", "Counter", "Gauge", "Rate", "Trend"];

    fn evaluate<'js>(ctx: &Ctx<'js>) -> Result<Object<'js>> {
        let module = Object::new(ctx.clone())?;
        define::<Counter>(&module)?;
        define::<Gauge>(&module)?;
        define::<Rate>(&module)?;
        define::<Trend>(&module)?;
        Ok(module)
    }
}

fn define<'js, C: JsClass<'js>>(module: &Object<'js>) -> Result<()> {
    module.set(C::NAME, Class::<C>::create_constructor(module.ctx())?)
}

/// The class of a kind of metric.
macro_rules! class {
    ($kind:ident) => {
        #[derive(Trace, JsLifetime)]
        #[rquickjs::class]
        struct $kind {
            #[qjs(skip_trace)]
            metric: ScriptMetric,
        }

        #[rquickjs::methods]
        impl $kind {
            #[qjs(constructor)]
            fn new(ctx: Ctx<'_>, name: Coerced<String>, is_time: Opt<Coerced<bool>>) -> Result<Self> {
                Ok(Self { metric: ScriptMetric::new(&ctx, Kind::$kind, name.0, is_time.0)? })
            }

            #[qjs(get, enumerable)]
            fn name(&self) -> String {
                self.metric.name.clone()
            }

            fn add<'js>(&self, ctx: Ctx<'js>, value: Opt<Value<'js>>, tags: Opt<Value<'js>>) -> Result<bool> {
                self.metric.add(&ctx, value.0, tags.0)
            }
        }
    };
}

class!(Counter);
class!(Gauge);
class!(Rate);
class!(Trend);

/// A metric of the script.
struct ScriptMetric {
    name: String,
    id: MetricId,
}

impl ScriptMetric {
    fn new(ctx: &Ctx<'_>, kind: Kind, name: String, is_time: Option<Coerced<bool>>) -> Result<ScriptMetric> {
        if !EventLoop::<K6>::of(ctx)?.is_loading() {
            let what = format!("make the metric `{name}` while the script is loaded: outside of functions");
            return Err(Exception::throw_message(ctx, &what));
        }
        let contains = if is_time.is_some_and(|is_time| is_time.0) { Contains::Time } else { Contains::Default };
        let id = User::of(ctx)?.recording().register(&name, kind, contains);
        let id = id.map_err(|fault| Exception::throw_message(ctx, &fault.to_string()))?;
        Ok(ScriptMetric { name, id })
    }

    /// Adds a sample. A value that is no number returns false, or throws with the option `throw`.
    fn add<'js>(&self, ctx: &Ctx<'js>, value: Option<Value<'js>>, tags: Option<Value<'js>>) -> Result<bool> {
        let user = User::running(ctx, "add() of a metric")?;
        let tags = read_tags(ctx, tags)?;
        let tags: Vec<(&str, &str)> = tags.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let number = match &value {
            Some(value) if !value.is_null() => Coerced::<f64>::from_js(ctx, value.clone())?.0,
            _ => f64::NAN,
        };
        if !number.is_nan() {
            user.add(EventLoop::<K6>::of(ctx)?.now(), &[(self.id, number)], &tags);
            return Ok(true);
        }
        let found = value.map_or("nothing", |value| value.type_name());
        let what = format!("expected a number or a truth value for the metric `{}`, found {found}", self.name);
        if user.options().throw == Some(true) {
            return Err(Exception::throw_type(ctx, &what));
        }
        warn(ctx, &what)?;
        Ok(false)
    }
}
