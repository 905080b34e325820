//! The parameters of connections and calls.

use crate::operations::{GrpcConnect, Metadata};
use crate::user::{User, read_tags};
use crate::value::{binary, is_nothing, non_null, text, thrown};
use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use plimsoll_k6_run::duration;
use plimsoll_model::units::Nanos;
use plimsoll_web::Url;
use rquickjs::{Ctx, Object, Result, Value};

/// The default limit on a received message, as in gRPC's own libraries.
const LARGEST_MESSAGE: usize = 4 << 20;

const MINUTE: Nanos = Nanos(60_000_000_000);

/// The parameters of a connection.
pub(super) struct ConnectParams {
    pub(super) connect: GrpcConnect,
    pub(super) timeout: Nanos,
    pub(super) largest_sent: Option<usize>,
    /// True to ask the server for its services by reflection, with this metadata.
    pub(super) reflect: bool,
    pub(super) reflect_metadata: Metadata,
}

/// The parameters of a call.
#[derive(Debug, Default)]
pub(super) struct CallParams {
    pub(super) metadata: Metadata,
    pub(super) tags: Vec<(String, String)>,
    pub(super) timeout: Option<Nanos>,
    pub(super) discard: bool,
}

impl ConnectParams {
    /// Reads the parameters of `connect(address, { … })`.
    pub(super) fn read<'js>(
        ctx: &Ctx<'js>,
        user: &User,
        address: &str,
        params: Option<Value<'js>>,
    ) -> Result<ConnectParams> {
        let mut read = ConnectParams {
            connect: GrpcConnect {
                url: url_of(ctx, "https", address)?,
                authority: None,
                user_agent: user.user_agent().to_owned(),
                authorities: Vec::new(),
                identity: None,
                largest_message: LARGEST_MESSAGE,
            },
            timeout: MINUTE,
            largest_sent: None,
            reflect: false,
            reflect_metadata: Vec::new(),
        };
        for (name, value) in entries(params)? {
            read.set(ctx, address, &name, value)?;
        }
        Ok(read)
    }

    fn set<'js>(&mut self, ctx: &Ctx<'js>, address: &str, name: &str, value: Value<'js>) -> Result<()> {
        match name {
            "plaintext" if boolean(ctx, name, &value)? => self.connect.url = url_of(ctx, "http", address)?,
            "plaintext" => {}
            "timeout" => self.timeout = timeout(ctx, value)?,
            "reflect" => self.reflect = boolean(ctx, name, &value)?,
            "reflectMetadata" => self.reflect_metadata = metadata(ctx, &value)?,
            "maxReceiveSize" => self.connect.largest_message = size(ctx, name, &value)?.unwrap_or(LARGEST_MESSAGE),
            "maxSendSize" => self.largest_sent = size(ctx, name, &value)?,
            "authority" => self.connect.authority = Some(text(ctx, value)?).filter(|text| !text.is_empty()),
            "tls" => self.set_tls(ctx, &value)?,
            other => return Err(invalid_connect(ctx, &format!("unknown connect param: \"{other}\""))),
        }
        Ok(())
    }

    fn set_tls<'js>(&mut self, ctx: &Ctx<'js>, value: &Value<'js>) -> Result<()> {
        let Some(tls) = value.as_object() else {
            let what = "invalid tls value: expected (optional) keys: cert, key, password, and cacerts";
            return Err(invalid_connect(ctx, what));
        };
        let pem = |name: &str| non_null(tls.get(name)?).map(|value| pem(ctx, name, &value)).transpose();
        if pem("password")?.is_some_and(|password| !password.is_empty()) {
            return Err(invalid_connect(ctx, "a `tls.key` that is encrypted is not supported: leave out `password`"));
        }
        self.connect.identity = pem("cert")?.zip(pem("key")?);
        self.connect.authorities = match non_null(tls.get("cacerts")?) {
            None => Vec::new(),
            Some(list) => match list.as_array() {
                Some(list) => {
                    list.iter::<Value<'js>>().map(|one| self::pem(ctx, "cacerts", &one?)).collect::<Result<_>>()?
                }
                None => vec![self::pem(ctx, "cacerts", &list)?],
            },
        };
        Ok(())
    }
}

impl CallParams {
    /// Reads `{ metadata, tags, timeout, discardResponseMessage }`.
    pub(super) fn read<'js>(ctx: &Ctx<'js>, params: Option<Value<'js>>) -> Result<CallParams> {
        let mut read = CallParams::default();
        for (name, value) in entries(params)? {
            match name.as_str() {
                "metadata" => read.metadata = metadata(ctx, &value)?,
                "tags" => read.tags = read_tags(ctx, Some(value))?,
                "timeout" => read.timeout = Some(timeout(ctx, value)?).filter(|timeout| *timeout != Nanos(0)),
                "discardResponseMessage" => read.discard = value.as_bool().unwrap_or(false),
                other => return Err(thrown(ctx, format!("unknown param: \"{other}\""))),
            }
        }
        Ok(read)
    }
}

fn entries<'js>(params: Option<Value<'js>>) -> Result<Vec<(String, Value<'js>)>> {
    let params = non_null(params).and_then(Value::into_object);
    params.iter().flat_map(Object::props::<String, Value<'js>>).collect()
}

/// The URL of `host:port`.
fn url_of(ctx: &Ctx<'_>, scheme: &str, address: &str) -> Result<Url> {
    let address = address.strip_prefix("dns:///").unwrap_or(address);
    let url = Url::parse(&format!("{scheme}://{address}"));
    let url = url.ok().filter(|url| url.target() == "/" && url.userinfo().is_none());
    url.ok_or_else(|| thrown(ctx, format!("expected the address of a gRPC server as `host:port`, found `{address}`")))
}

fn invalid_connect(ctx: &Ctx<'_>, what: &str) -> rquickjs::Error {
    thrown(ctx, format!("invalid grpc.connect() parameters: {what}"))
}

fn boolean(ctx: &Ctx<'_>, name: &str, value: &Value<'_>) -> Result<bool> {
    let found = value.type_name();
    value
        .as_bool()
        .ok_or_else(|| invalid_connect(ctx, &format!("invalid {name} value: it needs to be boolean, found {found}")))
}

/// A number of bytes; 0 is none.
fn size(ctx: &Ctx<'_>, name: &str, value: &Value<'_>) -> Result<Option<usize>> {
    let number = value.as_number().filter(|number| *number >= 0.0 && number.fract() == 0.0);
    let what = format!("invalid {name} value: it needs to be a positive integer");
    let number = number.ok_or_else(|| invalid_connect(ctx, &what))?;
    Ok(Some(number as usize).filter(|size| *size > 0))
}

fn pem(ctx: &Ctx<'_>, name: &str, value: &Value<'_>) -> Result<String> {
    match value.as_string() {
        Some(pem) => pem.to_string(),
        None => Err(invalid_connect(ctx, &format!("invalid tls {name} value: it needs to be a PEM formatted string"))),
    }
}

fn timeout<'js>(ctx: &Ctx<'js>, value: Value<'js>) -> Result<Nanos> {
    let span = match value.as_number() {
        Some(milliseconds) => duration::from_milliseconds(milliseconds),
        None => duration::parse(&text(ctx, value)?),
    };
    let wrong = || thrown(ctx, "invalid timeout value: expected milliseconds or a duration such as `10s`");
    span.map(Nanos::from).ok_or_else(wrong)
}

/// Names and values as they are sent.
fn metadata<'js>(ctx: &Ctx<'js>, value: &Value<'js>) -> Result<Metadata> {
    if is_nothing(value) {
        return Ok(Vec::new());
    }
    let Some(object) = value.as_object() else {
        return Err(thrown(ctx, "invalid metadata param: must be an object with key-value pairs"));
    };
    object
        .props::<String, Value<'js>>()
        .map(|entry| entry.and_then(|(name, value)| field(ctx, &name, &value)))
        .collect()
}

fn field(ctx: &Ctx<'_>, name: &str, value: &Value<'_>) -> Result<(String, String)> {
    let lower = name.to_ascii_lowercase();
    let usual = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-_.".contains(&byte);
    if lower.is_empty() || !lower.bytes().all(usual) {
        return Err(thrown(ctx, format!("invalid metadata param: \"{name}\" is no name of metadata")));
    }
    if lower.ends_with("-bin") {
        let Some(bytes) = binary(value)? else {
            return Err(thrown(ctx, format!("invalid metadata param: \"{name}\" value must be binary")));
        };
        return Ok((lower, STANDARD_NO_PAD.encode(bytes)));
    }
    let text = value.as_string().map(rquickjs::String::to_string).transpose()?;
    let text = text.filter(|text| text.bytes().all(|byte| (0x20..0x7f).contains(&byte)));
    let wrong = || thrown(ctx, format!("invalid metadata param: \"{name}\" value must be a string of printable ASCII"));
    Ok((lower, text.ok_or_else(wrong)?))
}
