//! A template looked through before it ever runs: which headers it reads, and
//! what of it is not supported.

use super::capture::Wanted;
use super::printf;
use super::program::{Base, Branch, Command, Function, Node, Operand, Pipe};
use super::value::{Member, Object, Type, member};
use http::HeaderName;

/// Headers that the template reads.
///
/// # Errors
/// All that is not supported, by name.
pub(super) fn check(body: &[Node]) -> Result<Wanted, Vec<String>> {
    let mut check =
        Check { variables: vec![Type::Object(Object::Root)], names: Vec::new(), all: false, faults: Vec::new() };
    check.nodes(body, Type::Object(Object::Root));
    check.faults.dedup();
    match (check.faults.is_empty(), check.all) {
        (false, _) => Err(check.faults),
        (true, true) => Ok(Wanted::All),
        (true, false) => Ok(Wanted::Some(check.names)),
    }
}

struct Check {
    /// Types of the variables, by their places.
    variables: Vec<Type>,
    names: Vec<HeaderName>,
    /// A header's name is worked out when it runs.
    all: bool,
    faults: Vec<String>,
}

impl Check {
    fn nodes(&mut self, nodes: &[Node], dot: Type) {
        for node in nodes {
            match node {
                Node::Text(_) => {}
                Node::Action(pipe) => {
                    let shown = self.pipe(pipe, dot);
                    if pipe.sets.is_empty() {
                        self.shown(shown);
                    }
                }
                Node::If(branch) => self.branch(branch, dot, |_| dot),
                Node::With(branch) => self.branch(branch, dot, |with| with),
                Node::Range(branch) => self.range(branch, dot),
            }
        }
    }

    fn branch(&mut self, branch: &Branch, dot: Type, inner: impl Fn(Type) -> Type) {
        let scope = self.variables.len();
        let condition = self.pipe(&branch.pipe, dot);
        if condition == Type::Object(Object::Header) {
            self.fault("the truth of .Request.Header");
        }
        let inside = self.variables.len();
        self.nodes(&branch.then, inner(condition));
        self.variables.truncate(inside);
        self.nodes(&branch.otherwise, dot);
        self.variables.truncate(scope);
    }

    fn range(&mut self, branch: &Branch, dot: Type) {
        let scope = self.variables.len();
        let over = self.pipe(&branch.pipe, dot);
        let element = match over {
            Type::List => Type::Text,
            Type::Int => Type::Int,
            Type::Object(object) => {
                self.fault(&format!("range over {}", object.name()));
                Type::Any
            }
            _ => Type::Any,
        };
        // What the pipeline set is each element here, not the list.
        for place in &branch.pipe.sets {
            if let Some(variable) = self.variables.get_mut(*place) {
                *variable = Type::Any;
            }
        }
        let inside = self.variables.len();
        self.nodes(&branch.then, element);
        self.variables.truncate(inside);
        self.nodes(&branch.otherwise, dot);
        self.variables.truncate(scope);
    }

    fn fault(&mut self, what: &str) {
        self.faults.push(format!("unsupported: {what}"));
    }

    /// Objects are not printed, but for URLs.
    fn shown(&mut self, shown: Type) {
        if let Type::Object(object) = shown
            && object != Object::Url
        {
            self.fault(&format!("{} as text", object.name()));
        }
    }

    fn pipe(&mut self, pipe: &Pipe, dot: Type) -> Type {
        let mut last = None;
        for command in &pipe.commands {
            last = Some(self.command(command, dot, last));
        }
        let result = last.unwrap_or(Type::Any);
        for place in &pipe.sets {
            if pipe.declares {
                self.variables.push(result);
            } else if let Some(variable) = self.variables.get_mut(*place)
                && *variable != result
            {
                *variable = Type::Any;
            }
        }
        result
    }

    fn command(&mut self, command: &Command, dot: Type, piped: Option<Type>) -> Type {
        let mut types: Vec<Type> = command.args.iter().map(|arg| self.operand(arg, dot, None)).collect();
        types.extend(piped);
        match &command.head {
            Operand::Function(function) => self.function(*function, command, &types, piped.is_some()),
            head => self.operand(head, dot, Some((&command.args, piped.is_some()))),
        }
    }

    fn operand(&mut self, operand: &Operand, dot: Type, args: Option<(&[Operand], bool)>) -> Type {
        match operand {
            Operand::Nil => Type::Any,
            Operand::Bool(_) => Type::Bool,
            Operand::Int(_) => Type::Int,
            Operand::Float(_) => Type::Float,
            Operand::Text(_) => Type::Text,
            // A function without arguments; none of ours works so.
            Operand::Function(_) => Type::Any,
            Operand::Path(base, names) => {
                let mut at = match base {
                    Base::Dot => dot,
                    Base::Variable(place) => self.variables.get(*place).copied().unwrap_or(Type::Any),
                    Base::Pipe(pipe) => self.pipe(pipe, dot),
                };
                for name in names {
                    at = self.member(at, name, args);
                }
                at
            }
        }
    }

    fn member(&mut self, at: Type, name: &str, args: Option<(&[Operand], bool)>) -> Type {
        let Type::Object(object) = at else { return Type::Any };
        match (object, name) {
            (Object::Root, "TraceID") => self.want(&["traceparent", "x-b3-traceid"]),
            (Object::Request, "UserAgent") => self.want(&["user-agent"]),
            (Object::Request, "Referer") => self.want(&["referer"]),
            (Object::Header, "Get" | "Values") => self.want_operand(args.and_then(|(args, _)| args.first())),
            (Object::Header, name) => self.want(&[name]),
            _ => {}
        }
        match member(object, name) {
            Member::Field(of) | Member::Method(of, _) => of,
            Member::Unsupported => {
                self.fault(&format!("{}.{name}", if object == Object::Root { "" } else { object.name() }));
                Type::Any
            }
            Member::Unknown => Type::Any,
        }
    }

    fn want(&mut self, names: &[&str]) {
        for name in names {
            // What is no header's name is in no request.
            if let Ok(name) = HeaderName::from_bytes(name.as_bytes())
                && !self.names.contains(&name)
            {
                self.names.push(name);
            }
        }
    }

    fn want_operand(&mut self, operand: Option<&Operand>) {
        match operand {
            Some(Operand::Text(name)) => self.want(&[name.as_str()]),
            _ => self.all = true,
        }
    }

    fn function(&mut self, function: Function, command: &Command, types: &[Type], piped: bool) -> Type {
        match function {
            Function::And | Function::Or => {
                let first = types.first().copied().unwrap_or(Type::Any);
                if types.contains(&Type::Object(Object::Header)) {
                    self.fault("the truth of .Request.Header");
                }
                if types.iter().all(|of| *of == first) { first } else { Type::Any }
            }
            Function::Not => Type::Bool,
            Function::Len => {
                if let Some(Type::Object(object)) = types.first() {
                    self.fault(&format!("len of {}", object.name()));
                }
                Type::Int
            }
            Function::Index => self.index(command, types),
            Function::Printf => {
                self.format(command, types, piped);
                Type::Text
            }
            Function::Print | Function::Println | Function::Html | Function::Js | Function::Urlquery => {
                types.iter().for_each(|of| self.shown(*of));
                Type::Text
            }
            Function::Eq | Function::Ne | Function::Lt | Function::Le | Function::Gt | Function::Ge => {
                if let Some(Type::Object(object)) = types.iter().find(|of| matches!(of, Type::Object(_))) {
                    self.fault(&format!("comparison of {}", object.name()));
                }
                Type::Bool
            }
        }
    }

    fn index(&mut self, command: &Command, types: &[Type]) -> Type {
        match (types.first(), types.len()) {
            (Some(Type::Object(Object::Header)), count) => {
                self.want_operand(command.args.get(1));
                if count == 2 { Type::List } else { Type::Text }
            }
            (Some(Type::Object(object)), _) => {
                self.fault(&format!("index of {}", object.name()));
                Type::Any
            }
            (Some(Type::List), 2) => Type::Text,
            _ => Type::Any,
        }
    }

    fn format(&mut self, command: &Command, types: &[Type], piped: bool) {
        types.iter().for_each(|of| self.shown(*of));
        let Some(Operand::Text(format)) = command.args.first() else {
            self.fault("printf with a format that is no literal");
            return;
        };
        let values = command.args.len() - 1 + usize::from(piped);
        match printf::verbs(format) {
            Ok(verbs) if verbs == values => {}
            Ok(verbs) => self.fault(&format!("printf {format:?} with {values} values for {verbs} verbs")),
            Err(verb) => self.fault(&format!("printf verb {verb}")),
        }
    }
}
