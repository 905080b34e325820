//! The module `k6/data`: arrays that all users share.
//!
//! Elements are kept as JSON, once for the process. A user holds only the elements that it has read, instead of a copy of
//! the whole array.
#![expect(clippy::needless_pass_by_value, reason = "natives own what the bindings hand them")]

use crate::user::User;
use crate::user::shared_arrays::Elements;
use crate::value::thrown;
use plimsoll_javascript::{EventLoop, NativeModule};
use rquickjs::function::{Constructor, Opt};
use rquickjs::{Array, Ctx, Exception, Function, IntoJs, Object, Result, Value};

/// See the module.
pub(crate) struct Data;

impl NativeModule for Data {
    const NAME: &'static str = "k6/data";
    const EXPORTS: &'static [&'static str] = &["default", "SharedArray"];

    fn evaluate<'js>(ctx: &Ctx<'js>) -> Result<Object<'js>> {
        let object = Object::new(ctx.clone())?;
        let prototype = Object::new(ctx.clone())?;
        let constructor = Constructor::new_prototype(ctx, prototype, shared_array)?;
        object.set("SharedArray", constructor)?;
        Ok(object)
    }
}

/// `new SharedArray(name, function)`
fn shared_array<'js>(ctx: Ctx<'js>, name: String, make: Opt<Function<'js>>) -> Result<Value<'js>> {
    if !EventLoop::<crate::operations::K6>::of(&ctx)?.is_loading() {
        return Err(thrown(&ctx, "new SharedArray must be called in the init context: outside of functions"));
    }
    if name.is_empty() {
        return Err(thrown(&ctx, "empty name provided to SharedArray's constructor"));
    }
    let shared = User::of(&ctx)?.run().shared_arrays.clone();
    let elements = match (shared.get(&name), make.0) {
        (Some(elements), _) => elements,
        (None, Some(make)) => shared.keep(name, elements_of(&ctx, &make.call(())?)?),
        (None, None) => {
            return Err(thrown(&ctx, "a function is expected as the second argument of SharedArray's constructor"));
        }
    };
    proxy(&ctx, elements)
}

fn elements_of<'js>(ctx: &Ctx<'js>, made: &Value<'js>) -> Result<Elements> {
    let Some(array) = made.as_array() else {
        return Err(thrown(ctx, "only arrays can be made into SharedArray"));
    };
    let json = |element: Result<Value<'js>>| {
        let json = ctx.json_stringify(element?)?.map(|json| json.to_string()).transpose()?;
        // Values without JSON are null, as in arrays.
        Ok(json.unwrap_or_else(|| "null".to_owned()).into_boxed_str())
    };
    array.iter::<Value<'js>>().map(json).collect()
}

/// The array as a script sees it: elements are parsed on demand, and neither they nor the array can be changed.
pub(super) fn proxy<'js>(ctx: &Ctx<'js>, elements: Elements) -> Result<Value<'js>> {
    let count = elements.len();
    // Functions in Rust must hold no value of the engine, which would not see the cycle and never free it.
    let get = move |ctx: Ctx<'js>, target: Object<'js>, key: Value<'js>| match index(&key)? {
        Some(index) => match elements.get(index) {
            Some(json) => frozen(&of_object(&ctx, "freeze")?, ctx.json_parse(&**json)?),
            None => Ok(Value::new_undefined(ctx)),
        },
        None if is_length(&key)? => count.into_js(&ctx),
        None => target.get(key),
    };
    let has = move |target: Object<'js>, key: Value<'js>| match index(&key)? {
        Some(index) => Ok(index < count),
        None => target.contains_key(key),
    };
    let keys = move || (0..count).map(|index| index.to_string()).chain(["length".to_owned()]).collect::<Vec<_>>();
    let describe = move |ctx: Ctx<'js>, target: Object<'js>, key: Value<'js>| describe(&ctx, count, &target, &key);
    let handler = Object::new(ctx.clone())?;
    handler.set("get", Function::new(ctx.clone(), get)?)?;
    handler.set("has", Function::new(ctx.clone(), has)?)?;
    handler.set("ownKeys", Function::new(ctx.clone(), keys)?)?;
    handler.set("getOwnPropertyDescriptor", Function::new(ctx.clone(), describe)?)?;
    for change in ["set", "defineProperty", "deleteProperty", "preventExtensions"] {
        handler.set(change, Function::new(ctx.clone(), immutable)?)?;
    }
    // The bindings set another prototype on the result of a constructor. It stays an array.
    handler.set("setPrototypeOf", Function::new(ctx.clone(), || true)?)?;
    let target = Array::new(ctx.clone())?;
    let proxy: Constructor<'js> = ctx.globals().get("Proxy")?;
    proxy.construct((target, handler))
}

fn immutable(ctx: Ctx<'_>) -> Result<bool> {
    Err(Exception::throw_type(&ctx, "SharedArray is immutable"))
}

/// The descriptor of a property: elements are enumerable, their values are read by `get`.
fn describe<'js>(ctx: &Ctx<'js>, count: usize, target: &Object<'js>, key: &Value<'js>) -> Result<Value<'js>> {
    let descriptor = Object::new(ctx.clone())?;
    match index(key)? {
        Some(index) if index < count => {
            descriptor.set("enumerable", true)?;
            descriptor.set("configurable", true)?;
        }
        None if is_length(key)? => {
            descriptor.set("value", count)?;
            descriptor.set("writable", true)?;
        }
        _ => {
            return of_object(ctx, "getOwnPropertyDescriptor")?.call((target.clone(), key.clone()));
        }
    }
    Ok(descriptor.into_value())
}

/// `Object.freeze` and its like.
fn of_object<'js>(ctx: &Ctx<'js>, name: &str) -> Result<Function<'js>> {
    ctx.globals().get::<_, Object<'js>>("Object")?.get(name)
}

/// The index of a key.
fn index(key: &Value<'_>) -> Result<Option<usize>> {
    let Some(key) = key.as_string() else { return Ok(None) };
    let key = key.to_string()?;
    let is_index = key == "0" || (!key.starts_with('0') && key.bytes().all(|byte| byte.is_ascii_digit()));
    Ok(is_index.then(|| key.parse().ok()).flatten())
}

fn is_length(key: &Value<'_>) -> Result<bool> {
    key.as_string().map_or(Ok(false), |key| Ok(key.to_string()? == "length"))
}

/// Freezes a value and everything in it.
fn frozen<'js>(freeze: &Function<'js>, value: Value<'js>) -> Result<Value<'js>> {
    if let Some(object) = value.as_object() {
        object.values::<Value<'js>>().try_for_each(|inner| frozen(freeze, inner?).map(|_| ()))?;
        freeze.call::<_, ()>((value.clone(),))?;
    }
    Ok(value)
}

#[cfg(test)]
mod tests {
    use crate::testing::{TestUser, measuring};
    use plimsoll_k6_run::options::Options;
    use std::sync::Arc;

    /// What k6 v1.8.1 gives for the same.
    #[test]
    fn a_shared_array_is_read_as_an_array_is() {
        let text = "import { SharedArray } from 'k6/data';
            const shared = new SharedArray('name', () => [{ a: 1 }, [1], 's', null, undefined]);
            export default () => [shared.length, shared[0], shared[1][0], shared[2], shared[9] ?? 'none', Array.isArray(shared),
                JSON.stringify(shared), Object.keys(shared), shared.map((one) => typeof one), 1 in shared, 5 in shared,
                shared.indexOf('s'), [...shared].length, shared.at(-3), shared[0] === shared[0], shared.filter((one) => one).length];";
        assert_eq!(
            TestUser::of(text).returned(),
            r#"[5,{"a":1},1,"s","none",true,"[{\"a\":1},[1],\"s\",null,null]",["0","1","2","3","4"],["object","object","string","object","object"],true,false,2,5,"s",false,3]"#
        );
    }

    #[test]
    fn neither_it_nor_its_elements_can_be_changed() {
        let text = "import { SharedArray } from 'k6/data';
            const shared = new SharedArray('name', () => [{ a: { b: [1] } }, 0]);
            export default () => [() => { shared[0] = 1; }, () => shared.push(1), () => { shared.length = 0; }, () => { delete shared[0]; },
                () => { shared[0].a = 2; }, () => { shared[0].a.b.push(2); }, () => shared.sort(), () => Object.defineProperty(shared, 'x', { value: 1 })].map((change) => {
                try { change(); return 'changed'; } catch (error) { return error.name; }
            }).concat(JSON.stringify(shared));";
        let expected = ["\"TypeError\""; 8].join(",");
        assert_eq!(TestUser::of(text).returned(), format!(r#"[{expected},"[{{\"a\":{{\"b\":[1]}}}},0]"]"#));
    }

    #[test]
    fn the_function_is_called_once_for_all_users_of_a_run() {
        let text = "import { SharedArray } from 'k6/data'; let calls = 0;
            const shared = new SharedArray('name', () => { calls += 1; return [7]; });
            export default () => [calls, shared[0]];";
        let run = measuring(Options::defaults(), &[]);
        assert_eq!(TestUser::sharing(text, &run).returned(), "[1,7]");
        assert_eq!(TestUser::sharing(text, &run).returned(), "[0,7]");
        let configured = Arc::new(run.configured(Options::defaults(), run.scenarios.clone(), (*run.registry).clone()));
        assert_eq!(TestUser::sharing(text, &configured).returned(), "[0,7]", "what was loaded for the options is kept");
        assert_eq!(TestUser::of(text).returned(), "[1,7]", "another run has its own");
    }

    #[test]
    fn wrong_arrays_are_exceptions() {
        let text = "import { SharedArray } from 'k6/data';
            const wrong = [() => new SharedArray('', () => []), () => new SharedArray('a', () => 5), () => new SharedArray('a'),
                () => new SharedArray('a', () => { throw new Error('own'); })];
            const said = (make) => { try { make(); } catch (error) { return error.message; } };
            const all = wrong.map(said);
            export default () => all.concat(said(() => new SharedArray('late', () => [])));";
        assert_eq!(
            TestUser::of(text).returned(),
            r#"["empty name provided to SharedArray's constructor","only arrays can be made into SharedArray","a function is expected as the second argument of SharedArray's constructor","own","new SharedArray must be called in the init context: outside of functions"]"#
        );
    }
}
