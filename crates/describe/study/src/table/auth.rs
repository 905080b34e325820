//! `auth`: as whom requests are made. No secret stands in a study: it is a value that users have, or a
//! variable of the environment.

use crate::document::{Fault, Faults, FromToml, Node, Schemas, table};
use crate::value::{BUILT_IN, Scope, Templated, Text, UserTemplate, ValueNames, ValueUse, Word};
use plimsoll_model::flow::{Auth, Password, Reference};
use serde_json::{Value, json};
use toml::de::DeValue;

/// As whom requests are made, or that they are made as nobody.
#[derive(Clone, Debug)]
pub(crate) enum AuthValue {
    /// `false`: what the workload says does not hold for this request.
    Nobody,
    /// As somebody.
    Somebody(Box<AuthTable>),
}

table! {
    /// A bearer token, or a user with a password.
    struct AuthTable {
        /// The token: a value such as "{$token}".
        bearer: Option<UserTemplate<Word>>,
        /// The variable of Plimsoll's environment that has the token.
        bearer_env: Option<Templated<Text>>,
        /// The name of the user, for basic authentication.
        user: Option<UserTemplate<Text>>,
        /// The password: a value such as "{$account.password}".
        password: Option<UserTemplate<Word>>,
        /// The variable of Plimsoll's environment that has the password.
        password_env: Option<Templated<Text>>,
    }
}

const FORMS: &str = "write `{ bearer = \"{$token}\" }`, `{ bearer_env = \"VARIABLE\" }`, `{ user = \"bob\", password_env = \"VARIABLE\" }` or \
                     `{ user = \"{$account.name}\", password = \"{$account.password}\" }`";

impl AuthValue {
    pub(crate) fn uses(&self) -> Vec<ValueUse> {
        let AuthValue::Somebody(table) = self else { return Vec::new() };
        let user = table.user.iter().flat_map(UserTemplate::uses);
        let secrets = table.bearer.iter().chain(&table.password).flat_map(UserTemplate::uses);
        user.chain(secrets).collect()
    }

    /// None inside for a request that is made as nobody.
    pub(crate) fn resolve(&self, scope: &Scope<'_>, values: &ValueNames, faults: &mut Faults) -> Option<Option<Auth>> {
        match self {
            AuthValue::Nobody => Some(None),
            AuthValue::Somebody(table) => table.resolve(scope, values, faults).map(Some),
        }
    }

    /// Faults that no level changes.
    pub(crate) fn check(&self, faults: &mut Faults) {
        if let AuthValue::Somebody(table) = self {
            faults_of(table).into_iter().for_each(|fault| faults.add(fault));
        }
    }
}

impl AuthTable {
    fn resolve(&self, scope: &Scope<'_>, values: &ValueNames, faults: &mut Faults) -> Option<Auth> {
        if let Some(bearer) = &self.bearer {
            return bearer.resolve(scope, values, faults).map(Auth::Bearer);
        }
        if let Some(variable) = &self.bearer_env {
            return variable.resolve(scope, faults).map(|name| Auth::BearerOf(name.0));
        }
        let user = self.user.as_ref()?.resolve(scope, values, faults);
        let password = match (&self.password, &self.password_env) {
            (Some(password), _) => match values.reference(password.single_value()?)? {
                Reference::Value(value) => Some(Password::Value(value)),
                _ => None,
            },
            (None, Some(variable)) => variable.resolve(scope, faults).map(|name| Password::Environment(name.0)),
            (None, None) => None,
        };
        Some(Auth::Basic { user: user?, password: password? })
    }
}

fn faults_of(table: &AuthTable) -> Option<Fault> {
    let AuthTable { bearer, bearer_env, user, password, password_env, place } = table;
    let ways = [bearer.is_some(), bearer_env.is_some(), password.is_some(), password_env.is_some()];
    let with_password = password.is_some() || password_env.is_some();
    if ways.iter().filter(|way| **way).count() != 1 || user.is_some() != with_password {
        let fault = Fault::error(place, "`auth` is either a bearer token, or a user and one password");
        return Some(fault.help(FORMS));
    }
    if let Some(bearer) = bearer.as_ref().filter(|bearer| bearer.uses().is_empty()) {
        let help = "write `bearer_env` with a variable of the environment, or a value such as \"{$token}\"";
        return Some(Fault::error(&bearer.span, "a token does not stand in a study").help(help));
    }
    let is_one_value = |text: &UserTemplate<Word>| text.single_value().is_some_and(|name| !BUILT_IN.contains(&name));
    let password = password.as_ref().filter(|password| !is_one_value(password))?;
    let help = "write `password_env` with a variable of the environment, or a value such as \"{$account.password}\"";
    Some(Fault::error(&password.span, "a password does not stand in a study").help(help))
}

impl FromToml for AuthValue {
    fn from_toml(node: &Node<'_>, faults: &mut Faults) -> Option<Self> {
        match node.value {
            DeValue::Boolean(false) => Some(AuthValue::Nobody),
            DeValue::Table(_) => AuthTable::from_toml(node, faults).map(|table| AuthValue::Somebody(Box::new(table))),
            _ => {
                faults.add(node.wrong_type("a table or false").help(FORMS));
                None
            }
        }
    }

    fn json_schema(schemas: &mut Schemas) -> Value {
        json!({ "anyOf": [{ "const": false }, AuthTable::json_schema(schemas)] })
    }
}
