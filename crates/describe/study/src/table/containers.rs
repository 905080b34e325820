//! `start = { compose = … }` and `start = { image = … }`: systems that are containers.

use crate::document::{Fault, Faults, FromToml, Node, Schemas, Span, table};
use crate::value::{Command, Literal, Problem, Scalar, Scope, Templated, Text, resolve_optional};
use plimsoll_model::factor::{Assignment, Level};
use plimsoll_model::system::{CommandLine, Containers, ContainersOf};
use serde_json::{Value, json};
use std::path::PathBuf;
use toml::de::DeValue;

table! {
    /// Containers that are started for each trial and removed after it: those of a Compose file, or one of an image.
    struct ContainersTable {
        /// The Compose file, relative to `dir`. All of its services are started.
        compose: Option<Templated<Text>>,
        /// The image of one container. The variables of `env` are the container's.
        image: Option<Templated<Text>>,
        /// With `image`: the options of `docker run`, as in "-p {address}:80 --memory 1g". Default: none.
        options: Option<Command>,
        /// With `image`: what the container runs. Default: what the image says.
        arguments: Option<Command>,
        /// The program that starts them: with `compose` "docker compose", "docker-compose", "podman compose" or
        /// "podman-compose", with `image` "docker" or "podman". Default: "docker compose", "docker".
        with: Option<Literal<Tool>>,
    }
}

/// How a system is started.
#[derive(Clone, Debug)]
pub(crate) enum StartValue {
    /// A command whose processes are its own.
    Command(Command),
    /// Containers.
    Containers(Box<ContainersTable>),
}

/// How a system is started in a trial.
pub(crate) struct ResolvedStart {
    pub(crate) command: CommandLine,
    pub(crate) containers: Option<Containers>,
}

/// The values of other keys of a system that concern its containers.
pub(crate) struct AroundContainers<'a> {
    /// The names of the variables of `env`.
    pub(crate) variables: Vec<String>,
    /// The processors that it may use, as `--cpuset-cpus` has them, and where the study says so.
    pub(crate) cpus: Option<(String, &'a Span)>,
    /// The signal that asks it to end, and where the study says so.
    pub(crate) signal: Option<(String, &'a Span)>,
}

impl StartValue {
    /// The place in the study.
    pub(crate) fn span(&self) -> &Span {
        match self {
            StartValue::Command(command) => &command.span,
            StartValue::Containers(table) => &table.place,
        }
    }

    /// The command, if it starts no containers.
    pub(crate) fn as_command(&self) -> Option<&Command> {
        match self {
            StartValue::Command(command) => Some(command),
            StartValue::Containers(_) => None,
        }
    }

    /// True if it starts the services of a Compose file.
    pub(crate) fn is_compose(&self) -> bool {
        matches!(self, StartValue::Containers(table) if table.compose.is_some())
    }

    /// The command for people, with the levels that are known.
    pub(crate) fn shown(&self, levels: &Assignment) -> String {
        match self {
            StartValue::Command(command) => command.shown(levels),
            StartValue::Containers(table) => table.shown(levels),
        }
    }

    /// The command for the trial that `scope` stands for.
    pub(crate) fn resolve(
        &self,
        around: &AroundContainers<'_>,
        scope: &Scope<'_>,
        faults: &mut Faults,
    ) -> Option<ResolvedStart> {
        match self {
            StartValue::Command(command) => {
                Some(ResolvedStart { command: command.resolve(scope, faults)?, containers: None })
            }
            StartValue::Containers(table) => table.resolve(around, scope, faults),
        }
    }
}

impl ContainersTable {
    fn tool(&self) -> Tool {
        match &self.with {
            Some(tool) => tool.value,
            None if self.compose.is_some() => Tool::DockerWithCompose,
            None => Tool::Docker,
        }
    }

    fn shown(&self, levels: &Assignment) -> String {
        let optional = |command: &Option<Command>| command.as_ref().map(|command| command.shown(levels));
        let words = self.tool().words().join(" ");
        match (&self.compose, &self.image) {
            (Some(file), _) => format!("{words} --file {} up", file.shown(levels)),
            (None, Some(image)) => {
                let image = Some(image.shown(levels));
                let parts = [Some(format!("{words} run")), optional(&self.options), image, optional(&self.arguments)];
                parts.into_iter().flatten().collect::<Vec<String>>().join(" ")
            }
            (None, None) => words,
        }
    }

    fn resolve(&self, around: &AroundContainers<'_>, scope: &Scope<'_>, faults: &mut Faults) -> Option<ResolvedStart> {
        let (engine, words) =
            (self.tool().engine().to_owned(), self.tool().words().iter().map(|word| (*word).to_owned()));
        if let Some(file) = &self.compose {
            let file = file.resolve(scope, faults)?.0;
            around.refuse_for_compose(faults)?;
            let command = words.chain(["--file".to_owned(), file.clone(), "up".to_owned()]).collect();
            let containers = Containers { engine, origin: ContainersOf::Compose(PathBuf::from(file)) };
            return Some(ResolvedStart { command: CommandLine(command), containers: Some(containers) });
        }
        let image = self.image.as_ref()?.resolve(scope, faults);
        let options = resolve_optional(self.options.as_ref(), |options| options.resolve(scope, faults));
        let arguments = resolve_optional(self.arguments.as_ref(), |arguments| arguments.resolve(scope, faults));
        let (image, options, arguments) = (image?.0, options?, arguments?);
        if let Some(detached) = options.iter().flat_map(|options| &options.0).find(|word| is_detached(word)) {
            let place = self.options.as_ref().map_or(&self.place, |options| &options.span);
            let fault = Fault::error(
                place,
                format!("with `{detached}` nothing waits for the container, and its end goes unseen"),
            );
            faults.add(fault.help("leave it out: Plimsoll needs the command in the foreground"));
            return None;
        }
        let mut command: Vec<String> = words.chain(["run".to_owned()]).collect();
        command.extend(around.variables.iter().flat_map(|name| ["--env".to_owned(), name.clone()]));
        let option = |name: &str, value: &Option<(String, &Span)>| {
            value.as_ref().map(|(value, _)| [name.to_owned(), value.clone()])
        };
        command.extend(option("--cpuset-cpus", &around.cpus).into_iter().flatten());
        command.extend(option("--stop-signal", &around.signal).into_iter().flatten());
        command.extend(options.into_iter().flat_map(|options| options.0));
        command.push(image.clone());
        command.extend(arguments.into_iter().flat_map(|arguments| arguments.0));
        let containers = Containers { engine, origin: ContainersOf::Image(image) };
        Some(ResolvedStart { command: CommandLine(command), containers: Some(containers) })
    }

    /// Refuses what does not belong together.
    fn check(&self, node: &Node<'_>, faults: &mut Faults) -> Option<()> {
        let fault = match (&self.compose, &self.image) {
            (None, None) => Fault::error(&self.place, format!("{} does not say which containers", node.name()))
                .help("name a Compose file, `compose = \"compose.yaml\"`, or an image, `image = \"nginx:1.27\"`"),
            (Some(_), Some(image)) => {
                Fault::error(&image.span, format!("{} has both `compose` and `image`", node.name()))
                    .help("keep one: a Compose file names the images of its services itself")
            }
            (Some(_), None) => {
                if let Some(of_image) = self.options.as_ref().or(self.arguments.as_ref()) {
                    let message = "`options` and `arguments` are those of one container, and there is a Compose file";
                    Fault::error(&of_image.span, message).help("write them into the Compose file")
                } else {
                    return self.check_tool(true, faults);
                }
            }
            (None, Some(_)) => return self.check_tool(false, faults),
        };
        faults.add(fault);
        None
    }

    fn check_tool(&self, reads_compose: bool, faults: &mut Faults) -> Option<()> {
        let Some(tool) = self.with.as_ref().filter(|tool| tool.value.reads_compose() != reads_compose) else {
            return Some(());
        };
        let help = match reads_compose {
            true => {
                "a Compose file takes \"docker compose\", \"docker-compose\", \"podman compose\" or \"podman-compose\""
            }
            false => "an image takes \"docker\" or \"podman\"",
        };
        let what = if reads_compose { "starts no Compose file" } else { "starts no single container" };
        faults.add(Fault::error(&tool.span, format!("`{}` {what}", tool.value.words().join(" "))).help(help));
        None
    }
}

impl AroundContainers<'_> {
    /// Refuses what only the Compose file itself can say.
    fn refuse_for_compose(&self, faults: &mut Faults) -> Option<()> {
        let cpus = self.cpus.as_ref().map(|(cpus, span)| ("cpus", format!("cpuset: \"{cpus}\""), *span));
        let signal = self.signal.as_ref().map(|(signal, span)| ("signal", format!("stop_signal: {signal}"), *span));
        let mut allowed = Some(());
        for (key, instead, span) in [cpus, signal].into_iter().flatten() {
            let fault = Fault::error(span, format!("`{key}` does not reach the services of a Compose file"));
            faults.add(fault.help(format!("say it there, for each service: `{instead}`")));
            allowed = None;
        }
        allowed
    }
}

impl FromToml for StartValue {
    fn from_toml(node: &Node<'_>, faults: &mut Faults) -> Option<Self> {
        if !matches!(node.value, DeValue::Table(_)) {
            let command = Command::from_toml(node, faults)?;
            warn_of_engine(&command, faults);
            return Some(StartValue::Command(command));
        }
        let table = ContainersTable::from_toml(node, faults)?;
        table.check(node, faults)?;
        Some(StartValue::Containers(Box::new(table)))
    }

    fn json_schema(schemas: &mut Schemas) -> Value {
        json!({ "anyOf": [Command::json_schema(schemas), ContainersTable::json_schema(schemas)] })
    }
}

/// True for the option that lets a container run in the background.
fn is_detached(word: &str) -> bool {
    let letters = word.strip_prefix('-').filter(|rest| !rest.starts_with('-'));
    word == "--detach"
        || word == "--detach=true"
        || letters.is_some_and(|letters| matches!(letters, "d" | "dit" | "itd" | "td"))
}

/// Warns of a plain command that asks an engine for containers: they outlive it.
fn warn_of_engine(command: &Command, faults: &mut Faults) {
    let shown = command.shown(&Assignment::default());
    let words: Vec<&str> = shown.split_whitespace().collect();
    let Some(tool) = Tool::ALL.into_iter().rev().find(|tool| words.starts_with(tool.words())) else { return };
    let (verb, key) = if tool.reads_compose() { ("up", "compose = \"FILE\"") } else { ("run", "image = \"IMAGE\"") };
    if words.contains(&verb) {
        let tool = tool.words().join(" ");
        let what =
            format!("containers that `{tool} {verb}` starts may outlive their system, and nothing measures them");
        let fault = Fault::warning(&command.span, what);
        faults.add(fault.help(format!("let Plimsoll start and remove them: `start = {{ {key} }}`")));
    }
}

/// A program that starts containers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tool {
    Docker,
    Podman,
    DockerWithCompose,
    DockerCompose,
    PodmanWithCompose,
    PodmanCompose,
}

impl Tool {
    const ALL: [Tool; 6] = [
        Tool::Docker,
        Tool::Podman,
        Tool::DockerWithCompose,
        Tool::DockerCompose,
        Tool::PodmanWithCompose,
        Tool::PodmanCompose,
    ];

    fn words(self) -> &'static [&'static str] {
        match self {
            Tool::Docker => &["docker"],
            Tool::Podman => &["podman"],
            Tool::DockerWithCompose => &["docker", "compose"],
            Tool::DockerCompose => &["docker-compose"],
            Tool::PodmanWithCompose => &["podman", "compose"],
            Tool::PodmanCompose => &["podman-compose"],
        }
    }

    fn reads_compose(self) -> bool {
        !matches!(self, Tool::Docker | Tool::Podman)
    }

    fn engine(self) -> &'static str {
        match self {
            Tool::Docker | Tool::DockerWithCompose | Tool::DockerCompose => "docker",
            Tool::Podman | Tool::PodmanWithCompose | Tool::PodmanCompose => "podman",
        }
    }
}

impl Scalar for Tool {
    const EXPECTED: &'static str = "\"docker compose\", \"docker-compose\", \"podman compose\", \"podman-compose\", \
                                    \"docker\" or \"podman\"";

    fn from_level(level: &Level) -> Result<Self, Problem> {
        let Level::Text(text) = level else { return Err(Problem::wrong::<Self>(level)) };
        let named = Tool::ALL.into_iter().find(|tool| tool.words().join(" ") == *text);
        named.ok_or_else(|| Problem::wrong::<Self>(level))
    }

    fn schema() -> Value {
        json!({ "type": "string", "enum": Tool::ALL.map(|tool| tool.words().join(" ")) })
    }
}

#[cfg(test)]
mod tests {
    use crate::table::system::SystemTable;
    use crate::table::testing::{faults_of, no_faults, read_table};
    use crate::value::{Bindings, NO_LOGINS, Scope};
    use plimsoll_model::factor::{Assignment, Level};
    use plimsoll_model::system::{Containers, ContainersOf, SystemSpec};
    use std::path::Path;

    fn resolved(text: &str) -> SystemSpec {
        let table: SystemTable = read_table(text);
        let bindings = Bindings { ports: [("web".to_owned(), 8080)].into(), ..Bindings::default() };
        let assignment = Assignment(vec![("version".to_owned(), Level::Text("1.27".to_owned()))]);
        let scope = Scope {
            assignment: &assignment,
            bindings: &bindings,
            not_running: &[],
            elsewhere: &[],
            logins: &NO_LOGINS,
            is_trusted: false,
            system: Some("web"),
            dir: Path::new("/study"),
            processors: &[0, 1],
            of_generator: None,
        };
        table.resolve("web", &scope, &mut no_faults()).expect("a system")
    }

    #[test]
    fn a_compose_file_is_started_in_the_foreground() {
        let system = resolved("start = { compose = 'compose-{version}.yaml' }\nenv = { PORT = '{port}' }");
        assert_eq!(system.start.to_string(), "docker compose --file compose-1.27.yaml up");
        let origin = ContainersOf::Compose("compose-1.27.yaml".into());
        assert_eq!(system.containers, Some(Containers { engine: "docker".to_owned(), origin }));
        let other = resolved("start = { compose = 'c.yaml', with = 'podman-compose' }");
        assert_eq!(other.start.to_string(), "podman-compose --file c.yaml up");
        assert_eq!(other.containers.map(|containers| containers.engine).as_deref(), Some("podman"));
    }

    #[test]
    fn an_image_is_started_with_the_environment_the_processors_and_the_signal_of_the_system() {
        let system = resolved(
            "start = { image = 'nginx:{version}', options = '-p {address}:80 --memory 1g', arguments = \"nginx -g 'daemon off;'\" }\n\
             env = { A = 'x y', B = 2 }\ncpus = 'upper half'\nstop.signal = 'QUIT'",
        );
        let expected = "docker run --env A --env B --cpuset-cpus 1 --stop-signal SIGQUIT -p 127.0.0.1:8080:80 --memory 1g \
                        nginx:1.27 nginx -g daemon off;";
        assert_eq!(system.start.to_string(), expected);
        assert_eq!(
            system.containers.map(|containers| containers.origin),
            Some(ContainersOf::Image("nginx:1.27".to_owned()))
        );
    }

    #[test]
    fn what_does_not_belong_together_is_refused() {
        for (text, expected) in [
            ("start = {}", "does not say which containers"),
            ("start = { compose = 'c.yaml', image = 'nginx' }", "has both `compose` and `image`"),
            ("start = { compose = 'c.yaml', options = '-p 80:80' }", "are those of one container"),
            ("start = { compose = 'c.yaml', with = 'docker' }", "`docker` starts no Compose file"),
            ("start = { image = 'nginx', with = 'docker compose' }", "`docker compose` starts no single container"),
            ("start = { image = 'nginx', with = 'runc' }", "\"docker compose\", \"docker-compose\""),
            ("start = { composed = 'c.yaml' }", "composed"),
            (
                "start = 'docker compose -f c.yaml up'",
                "warning: containers that `docker compose up` starts may outlive",
            ),
            ("start = 'podman run --rm nginx'", "warning: containers that `podman run` starts may outlive"),
        ] {
            let faults = faults_of::<SystemTable>(text);
            assert!(faults[0].contains(expected), "{text}: {faults:?}");
        }
    }

    #[test]
    fn a_container_in_the_background_is_refused() {
        for option in ["-d", "--detach", "-itd"] {
            assert!(super::is_detached(option), "{option}");
        }
        for option in ["-it", "--dns", "-v", "detach"] {
            assert!(!super::is_detached(option), "{option}");
        }
    }
}
