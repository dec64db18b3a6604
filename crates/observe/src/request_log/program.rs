//! A template that was read and found good.

use super::capture::{Entry, Wanted};
use super::{check, lex, parse, run};
use policy::compat::Compat;

/// A template, ready to be run.
pub struct Template {
    pub(super) body: Vec<Node>,
    wanted: Wanted,
}

/// A piece of a template.
pub(super) enum Node {
    Text(String),
    Action(Pipe),
    If(Branch),
    With(Branch),
    Range(Branch),
}

/// A condition or a list, and what is done by it.
pub(super) struct Branch {
    pub(super) pipe: Pipe,
    pub(super) then: Vec<Node>,
    pub(super) otherwise: Vec<Node>,
}

/// Commands, each of which gets the value of the one before.
#[derive(Default)]
pub(super) struct Pipe {
    /// Places of variables that are set, by their place on the stack.
    pub(super) sets: Vec<usize>,
    /// True when they are declared here.
    pub(super) declares: bool,
    pub(super) commands: Vec<Command>,
}

/// Something with its arguments.
pub(super) struct Command {
    pub(super) head: Operand,
    pub(super) args: Vec<Operand>,
}

pub(super) enum Operand {
    Nil,
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(String),
    Function(Function),
    /// Something, and what is asked of it by name.
    Path(Base, Vec<String>),
}

pub(super) enum Base {
    Dot,
    Variable(usize),
    Pipe(Pipe),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Function {
    And,
    Or,
    Not,
    Len,
    Index,
    Print,
    Printf,
    Println,
    Html,
    Js,
    Urlquery,
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
}

impl Function {
    pub(super) fn named(name: &str) -> Option<Function> {
        Some(match name {
            "and" => Function::And,
            "or" => Function::Or,
            "not" => Function::Not,
            "len" => Function::Len,
            "index" => Function::Index,
            "print" => Function::Print,
            "printf" => Function::Printf,
            "println" => Function::Println,
            "html" => Function::Html,
            "js" => Function::Js,
            "urlquery" => Function::Urlquery,
            "eq" => Function::Eq,
            "ne" => Function::Ne,
            "lt" => Function::Lt,
            "le" => Function::Le,
            "gt" => Function::Gt,
            "ge" => Function::Ge,
            _ => return None,
        })
    }
}

impl Template {
    /// Reads a template; a newline at its end is added if missing.
    ///
    /// # Errors
    /// All that is wrong with it, or that is Go's and is not supported here,
    /// by name.
    pub fn compile(text: &str) -> Result<Template, Vec<String>> {
        let text = if text.ends_with('\n') { text.to_owned() } else { format!("{text}\n") };
        let pieces = lex::pieces(&text).map_err(|fault| vec![fault])?;
        let body = parse::body(pieces).map_err(|fault| vec![fault])?;
        let wanted = check::check(&body)?;
        Ok(Template { body, wanted })
    }

    /// Headers that it reads.
    pub(crate) fn headers(&self) -> &Wanted {
        &self.wanted
    }

    /// Writes what it makes of a request.
    pub(super) fn run(&self, entry: &Entry<'_>, compat: Compat, out: &mut String) -> Result<(), run::Failed> {
        run::run(&self.body, entry, compat, out)
    }
}
