//! A template at work on one request.

use super::capture::Entry;
use super::funcs;
use super::program::{Base, Branch, Command, Function, Node, Operand, Pipe};
use super::url;
use super::value::{Member, Object, Value, is_canonical, member};
use policy::compat::Compat;
use std::borrow::Cow;

/// It cannot go on: an index out of range, a field that is not there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Failed;

pub(super) type Done<T> = Result<T, Failed>;

/// Nodes of one run, at most: a range over a large number must not hold the
/// thread that serves.
const STEPS: u32 = 100_000;

/// Bytes that one run may make, its variables and all that it throws away
/// included: a text that is doubled in a loop must not fill the memory. The
/// longest head that is let in fits, escaped.
const BYTES: usize = 16 << 20;

/// Runs a template to its end.
pub(super) fn run(body: &[Node], entry: &Entry<'_>, compat: Compat, out: &mut String) -> Done<()> {
    let root = Value::Object(Object::Root);
    let mut run = Run { entry, compat, out, variables: vec![root.clone()], steps: STEPS, bytes: BYTES };
    run.nodes(body, &root)
}

struct Run<'a> {
    entry: &'a Entry<'a>,
    compat: Compat,
    out: &'a mut String,
    variables: Vec<Value<'a>>,
    steps: u32,
    bytes: usize,
}

impl<'a> Run<'a> {
    /// Pays for so many bytes.
    fn pay(&mut self, bytes: usize) -> Done<()> {
        self.bytes = self.bytes.checked_sub(bytes).ok_or(Failed)?;
        Ok(())
    }

    fn nodes(&mut self, nodes: &'a [Node], dot: &Value<'a>) -> Done<()> {
        for node in nodes {
            self.steps = self.steps.checked_sub(1).ok_or(Failed)?;
            match node {
                Node::Text(text) => {
                    self.pay(text.len())?;
                    self.out.push_str(text);
                }
                Node::Action(pipe) => {
                    let value = self.pipe(pipe, dot)?;
                    if pipe.sets.is_empty() {
                        self.print(&value)?;
                    }
                }
                Node::If(branch) => self.branch(branch, dot, false)?,
                Node::With(branch) => self.branch(branch, dot, true)?,
                Node::Range(branch) => self.range(branch, dot)?,
            }
        }
        Ok(())
    }

    fn print(&mut self, value: &Value<'a>) -> Done<()> {
        self.pay(value.bytes())?;
        if let Value::Object(Object::Url) = value {
            url::write(self.out, &self.entry.request.target);
            return Ok(());
        }
        funcs::print(self.out, value)
    }

    fn branch(&mut self, branch: &'a Branch, dot: &Value<'a>, with: bool) -> Done<()> {
        let scope = self.variables.len();
        let value = self.pipe(&branch.pipe, dot)?;
        if funcs::truth(&value)? {
            self.nodes(&branch.then, if with { &value } else { dot })?;
        } else {
            self.nodes(&branch.otherwise, dot)?;
        }
        self.variables.truncate(scope);
        Ok(())
    }

    fn range(&mut self, branch: &'a Branch, dot: &Value<'a>) -> Done<()> {
        let scope = self.variables.len();
        let over = self.pipe(&branch.pipe, dot)?;
        let inside = self.variables.len();
        let count = match &over {
            Value::List(list) => i64::try_from(list.len()).map_err(|_| Failed)?,
            Value::Int(count) => *count,
            Value::Missing | Value::Nil => 0,
            _ => return Err(Failed),
        };
        for at in 0..count {
            self.steps = self.steps.checked_sub(1).ok_or(Failed)?;
            let element = match &over {
                Value::List(list) => list.get(usize::try_from(at).map_err(|_| Failed)?).cloned().map(Value::Text),
                _ => Some(Value::Int(at)),
            };
            let element = element.ok_or(Failed)?;
            match branch.pipe.sets[..] {
                [value] => self.set(value, &element)?,
                [index, value] => {
                    self.set(index, &Value::Int(at))?;
                    self.set(value, &element)?;
                }
                _ => {}
            }
            self.nodes(&branch.then, &element)?;
            self.variables.truncate(inside);
        }
        if count <= 0 {
            self.nodes(&branch.otherwise, dot)?;
        }
        self.variables.truncate(scope);
        Ok(())
    }

    fn pipe(&mut self, pipe: &'a Pipe, dot: &Value<'a>) -> Done<Value<'a>> {
        let mut last = None;
        for command in &pipe.commands {
            last = Some(self.command(command, dot, last)?);
        }
        let value = last.ok_or(Failed)?;
        for place in &pipe.sets {
            if pipe.declares {
                self.variables.push(value.clone());
            } else {
                self.set(*place, &value)?;
            }
        }
        Ok(value)
    }

    fn set(&mut self, place: usize, value: &Value<'a>) -> Done<()> {
        *self.variables.get_mut(place).ok_or(Failed)? = value.clone();
        Ok(())
    }

    fn command(&mut self, command: &'a Command, dot: &Value<'a>, piped: Option<Value<'a>>) -> Done<Value<'a>> {
        match &command.head {
            Operand::Function(function @ (Function::And | Function::Or)) => {
                self.either(*function == Function::Or, command, dot, piped)
            }
            Operand::Function(function) => {
                let args = self.args(command, dot, piped)?;
                // What is made of them is longer by a factor at most.
                self.pay(args.iter().map(Value::bytes).sum())?;
                let made = self.function(*function, args)?;
                self.pay(made.bytes())?;
                Ok(made)
            }
            Operand::Path(base, names) => {
                let args = self.args(command, dot, piped)?;
                self.path(base, names, dot, args)
            }
            head if command.args.is_empty() && piped.is_none() => self.operand(head, dot),
            _ => Err(Failed),
        }
    }

    fn args(&mut self, command: &'a Command, dot: &Value<'a>, piped: Option<Value<'a>>) -> Done<Vec<Value<'a>>> {
        let mut args = Vec::with_capacity(command.args.len() + 1);
        for arg in &command.args {
            args.push(self.operand(arg, dot)?);
        }
        args.extend(piped);
        Ok(args)
    }

    fn operand(&mut self, operand: &'a Operand, dot: &Value<'a>) -> Done<Value<'a>> {
        Ok(match operand {
            Operand::Nil => Value::Nil,
            Operand::Bool(value) => Value::Bool(*value),
            Operand::Int(value) => Value::Int(*value),
            Operand::Float(value) => Value::Float(*value),
            Operand::Text(value) => Value::Text(Cow::Borrowed(value)),
            Operand::Function(_) => return Err(Failed),
            Operand::Path(base, names) => return self.path(base, names, dot, Vec::new()),
        })
    }

    /// `and` and `or` look at no more arguments than they must.
    fn either(&mut self, or: bool, command: &'a Command, dot: &Value<'a>, piped: Option<Value<'a>>) -> Done<Value<'a>> {
        let mut last = None;
        for arg in &command.args {
            let value = self.operand(arg, dot)?;
            if funcs::truth(&value)? == or {
                return Ok(value);
            }
            last = Some(value);
        }
        piped.or(last).ok_or(Failed)
    }

    /// Functions that need more than their arguments.
    fn function(&self, function: Function, mut args: Vec<Value<'a>>) -> Done<Value<'a>> {
        if function == Function::Index && args.first() == Some(&Value::Object(Object::Header)) {
            let [_, Value::Text(name), rest @ ..] = &args[..] else { return Err(Failed) };
            let values = if is_canonical(name) { self.values(name) } else { Vec::new() };
            let rest = rest.to_vec();
            return rest.into_iter().try_fold(Value::List(values), |value, at| funcs::index(&value, &at));
        }
        for arg in &mut args {
            if let Value::Object(Object::Url) = arg {
                let mut text = String::new();
                url::write(&mut text, &self.entry.request.target);
                *arg = Value::Text(Cow::Owned(text));
            }
        }
        funcs::call(function, &args, self.compat)
    }

    fn values(&self, name: &str) -> Vec<Cow<'a, str>> {
        let request = self.entry.request;
        let same = |known: &http::HeaderName| known.as_str().eq_ignore_ascii_case(name);
        let found = request.headers.iter().filter(|(known, _)| same(known));
        found.map(|(_, value)| String::from_utf8_lossy(value.as_bytes())).collect()
    }

    /// Members one after the other; arguments belong to the last.
    fn path(&mut self, base: &'a Base, names: &'a [String], dot: &Value<'a>, args: Vec<Value<'a>>) -> Done<Value<'a>> {
        let mut at = match base {
            Base::Dot => dot.clone(),
            Base::Variable(place) => {
                let value = self.variables.get(*place).cloned().ok_or(Failed)?;
                self.pay(value.bytes())?;
                value
            }
            Base::Pipe(pipe) => self.pipe(pipe, dot)?,
        };
        let Some((last, before)) = names.split_last() else {
            return if args.is_empty() { Ok(at) } else { Err(Failed) };
        };
        for name in before {
            at = self.member(&at, name, &[])?;
        }
        self.member(&at, last, &args)
    }

    fn member(&self, of: &Value<'a>, name: &'a str, args: &[Value<'a>]) -> Done<Value<'a>> {
        let Value::Object(object) = of else { return Err(Failed) };
        let takes = match member(*object, name) {
            Member::Field(_) => 0,
            Member::Method(_, count) => count,
            Member::Unsupported | Member::Unknown => return Err(Failed),
        };
        if args.len() != takes {
            return Err(Failed);
        }
        self.get(*object, name, args.first())
    }

    fn get(&self, object: Object, name: &'a str, arg: Option<&Value<'a>>) -> Done<Value<'a>> {
        let (entry, request) = (self.entry, self.entry.request);
        let text = |text: &'a str| Value::Text(Cow::Borrowed(text));
        Ok(match (object, name) {
            (Object::Root, "Request") => Value::Object(Object::Request),
            (Object::Root, "Response") => Value::Object(Object::Response),
            (Object::Root, "Revision") => Value::Object(Object::Revision),
            (Object::Root, "TraceID") => Value::Text(request.trace_id()),
            (Object::Request, "Method") => text(request.method.as_str()),
            (Object::Request, "RequestURI") => text(&request.target),
            (Object::Request, "Host") => text(&request.host),
            (Object::Request, "Proto") => text(request.protocol),
            (Object::Request, "RemoteAddr") => Value::Text(Cow::Owned(request.peer.to_string())),
            (Object::Request, "UserAgent") => Value::Text(request.first("user-agent")),
            (Object::Request, "Referer") => Value::Text(request.first("referer")),
            (Object::Request, "ContentLength") => Value::Int(request.content_length),
            (Object::Request, "ProtoMajor") => Value::Int(if request.protocol == "HTTP/2.0" { 2 } else { 1 }),
            (Object::Request, "ProtoMinor") => Value::Int(i64::from(request.protocol == "HTTP/1.1")),
            (Object::Request, "Header") => Value::Object(Object::Header),
            (Object::Request, "URL") => Value::Object(Object::Url),
            (Object::Response, "Code") => Value::Int(i64::from(entry.code)),
            (Object::Response, "Size") => Value::Int(i64::try_from(entry.size).unwrap_or(i64::MAX)),
            (Object::Response, "Latency") => Value::Float(entry.seconds),
            (Object::Revision, "Name") => text(&entry.who.revision),
            (Object::Revision, "Namespace") => text(&entry.who.namespace),
            (Object::Revision, "Service") => text(&entry.who.service),
            (Object::Revision, "Configuration") => text(&entry.who.configuration),
            (Object::Revision, "PodName") => text(&entry.who.pod),
            (Object::Revision, "PodIP") => text(&entry.who.pod_ip),
            (Object::Header, name) => return self.header(name, arg),
            (Object::Url, "IsAbs") => Value::Bool(url::is_absolute(&request.target)),
            (Object::Url, name) => Value::Text(url::part(&request.target, name).ok_or(Failed)?),
            _ => return Err(Failed),
        })
    }

    fn header(&self, name: &'a str, arg: Option<&Value<'a>>) -> Done<Value<'a>> {
        let Some(arg) = arg else {
            let values = if is_canonical(name) { self.values(name) } else { Vec::new() };
            return Ok(if values.is_empty() { Value::Missing } else { Value::List(values) });
        };
        let Value::Text(wanted) = arg else { return Err(Failed) };
        let mut values = self.values(wanted);
        match name {
            "Values" => Ok(Value::List(values)),
            _ if values.is_empty() => Ok(Value::Text(Cow::Borrowed(""))),
            _ => Ok(Value::Text(values.swap_remove(0))),
        }
    }
}
