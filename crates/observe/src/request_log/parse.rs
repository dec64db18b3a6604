//! Pieces of a template put together to a program.

use super::lex::{Piece, Token};
use super::program::{Base, Branch, Command, Function, Node, Operand, Pipe};
use std::iter::Peekable;
use std::vec::IntoIter;

/// Parentheses and blocks inside of each other, at most.
const DEEPEST: usize = 64;

/// Go's keywords and functions that are not supported.
const ACTIONS: [&str; 5] = ["block", "break", "continue", "define", "template"];
const FUNCTIONS: [&str; 2] = ["call", "slice"];

pub(super) fn body(pieces: Vec<Piece>) -> Result<Vec<Node>, String> {
    let mut parser = Parser { pieces: pieces.into_iter(), names: vec!["$".to_owned()], depth: 0 };
    let (nodes, end) = parser.nodes()?;
    match end {
        Stop::OutOfText => Ok(nodes),
        Stop::AtEnd => Err("unexpected {{end}}".to_owned()),
        Stop::AtElse(_) => Err("unexpected {{else}}".to_owned()),
    }
}

/// Tokens of one action.
type Tokens = Peekable<IntoIter<Token>>;

struct Parser {
    pieces: IntoIter<Piece>,
    /// Variables in scope, by their places on the stack; `$` is the first.
    names: Vec<String>,
    depth: usize,
}

/// What ended a list of nodes.
enum Stop {
    OutOfText,
    AtEnd,
    /// With what follows `else`.
    AtElse(Tokens),
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    If,
    With,
    Range,
}

impl Kind {
    fn named(word: &str) -> Option<Kind> {
        match word {
            "if" => Some(Kind::If),
            "with" => Some(Kind::With),
            "range" => Some(Kind::Range),
            _ => None,
        }
    }

    fn node(self, branch: Branch) -> Node {
        match self {
            Kind::If => Node::If(branch),
            Kind::With => Node::With(branch),
            Kind::Range => Node::Range(branch),
        }
    }
}

impl Parser {
    fn nodes(&mut self) -> Result<(Vec<Node>, Stop), String> {
        let mut nodes = Vec::new();
        while let Some(piece) = self.pieces.next() {
            let mut tokens = match piece {
                Piece::Text(text) => {
                    nodes.push(Node::Text(text));
                    continue;
                }
                Piece::Action(tokens) => tokens.into_iter().peekable(),
            };
            let word = match tokens.peek() {
                Some(Token::Word(word)) => word.clone(),
                _ => String::new(),
            };
            match word.as_str() {
                "end" => {
                    tokens.next();
                    return if tokens.next().is_none() { Ok((nodes, Stop::AtEnd)) } else { Err(unexpected("end")) };
                }
                "else" => {
                    tokens.next();
                    return Ok((nodes, Stop::AtElse(tokens)));
                }
                word if ACTIONS.contains(&word) => return Err(format!("unsupported action {{{{{word}}}}}")),
                word => match Kind::named(word) {
                    Some(kind) => {
                        tokens.next();
                        nodes.push(self.branch(kind, tokens)?);
                    }
                    None => nodes.push(Node::Action(self.whole(&mut tokens, 1)?)),
                },
            }
        }
        Ok((nodes, Stop::OutOfText))
    }

    fn deeper(&mut self) -> Result<(), String> {
        self.depth += 1;
        if self.depth > DEEPEST { Err("is nested too deeply".to_owned()) } else { Ok(()) }
    }

    /// From after the keyword to the end of the block.
    fn branch(&mut self, kind: Kind, mut tokens: Tokens) -> Result<Node, String> {
        self.deeper()?;
        let scope = self.names.len();
        let pipe = self.whole(&mut tokens, if kind == Kind::Range { 2 } else { 1 })?;
        let inner = self.names.len();
        let (then, end) = self.nodes()?;
        self.names.truncate(inner);
        let otherwise = match end {
            Stop::OutOfText => return Err("a block has no {{end}}".to_owned()),
            Stop::AtEnd => Vec::new(),
            Stop::AtElse(tokens) => self.otherwise(kind, tokens)?,
        };
        self.names.truncate(scope);
        self.depth -= 1;
        Ok(kind.node(Branch { pipe, then, otherwise }))
    }

    /// From after `else`: the rest of the block, or of a chain of them.
    fn otherwise(&mut self, kind: Kind, mut tokens: Tokens) -> Result<Vec<Node>, String> {
        match tokens.next() {
            None => {
                let (nodes, end) = self.nodes()?;
                match end {
                    Stop::AtEnd => Ok(nodes),
                    _ => Err("an {{else}} has no {{end}}".to_owned()),
                }
            }
            Some(Token::Word(word)) if kind != Kind::Range && Kind::named(&word) == Some(kind) => {
                Ok(vec![self.branch(kind, tokens)?])
            }
            Some(_) => Err(unexpected("else")),
        }
    }

    /// A pipeline that is a whole action.
    fn whole(&mut self, tokens: &mut Tokens, declares: usize) -> Result<Pipe, String> {
        let pipe = self.pipe(tokens, declares)?;
        match tokens.next() {
            None => Ok(pipe),
            Some(token) => Err(format!("unexpected {token:?} in an action")),
        }
    }

    /// A pipeline, up to the end or a closing parenthesis.
    fn pipe(&mut self, tokens: &mut Tokens, declares: usize) -> Result<Pipe, String> {
        let mut pipe = Pipe::default();
        let names = self.declaration(tokens, declares)?;
        loop {
            let command = self.command(tokens)?;
            let executable = matches!(command.head, Operand::Function(_) | Operand::Path(..));
            if !pipe.commands.is_empty() && !executable {
                return Err(format!("non executable command in pipeline stage {}", pipe.commands.len() + 1));
            }
            pipe.commands.push(command);
            if tokens.next_if_eq(&Token::Pipe).is_none() {
                break;
            }
        }
        if let Some((names, declared)) = names {
            pipe.declares = declared;
            for name in names {
                pipe.sets.push(self.set(&name, declared)?);
            }
        }
        Ok(pipe)
    }

    /// `$x :=`, `$x =` or, for a range, `$i, $x :=`, if it is there; `most`
    /// says how many may be set.
    fn declaration(&mut self, tokens: &mut Tokens, most: usize) -> Result<Option<(Vec<String>, bool)>, String> {
        let mut ahead = tokens.clone();
        let mut names = Vec::new();
        loop {
            let Some(Token::Variable(name)) = ahead.next() else { return Ok(None) };
            names.push(name);
            let declared = match ahead.next() {
                Some(Token::Declare) => true,
                Some(Token::Assign) => false,
                Some(Token::Comma) if most == 2 && names.len() < 2 => continue,
                Some(Token::Comma) => return Err("too many declarations".to_owned()),
                _ => return Ok(None),
            };
            if most == 0 {
                // `and` may never look at it, and its place would be another's.
                return Err(format!("unsupported: {} set inside of parentheses", names.join(", ")));
            }
            *tokens = ahead;
            return Ok(Some((names, declared)));
        }
    }

    fn set(&mut self, name: &str, declared: bool) -> Result<usize, String> {
        if declared {
            self.names.push(name.to_owned());
            return Ok(self.names.len() - 1);
        }
        self.variable(name)
    }

    fn variable(&self, name: &str) -> Result<usize, String> {
        self.names.iter().rposition(|known| known == name).ok_or_else(|| format!("undefined variable \"{name}\""))
    }

    fn command(&mut self, tokens: &mut Tokens) -> Result<Command, String> {
        let mut operands = Vec::new();
        while !matches!(tokens.peek(), None | Some(Token::Pipe | Token::Close)) {
            operands.push(self.operand(tokens)?);
        }
        let mut operands = operands.into_iter();
        match operands.next() {
            None => Err("missing value for command".to_owned()),
            Some(Operand::Nil) => Err("nil is not a command".to_owned()),
            Some(head) => Ok(Command { head, args: operands.collect() }),
        }
    }

    fn operand(&mut self, tokens: &mut Tokens) -> Result<Operand, String> {
        let Some(token) = tokens.next() else { return Err("missing value for command".to_owned()) };
        let base = match token {
            Token::Nil => return constant(Operand::Nil, tokens),
            Token::Bool(value) => return constant(Operand::Bool(value), tokens),
            Token::Int(value) => return constant(Operand::Int(value), tokens),
            Token::Float(value) => return constant(Operand::Float(value), tokens),
            Token::Text(value) => return constant(Operand::Text(value), tokens),
            Token::Word(word) => return constant(function(&word).map(Operand::Function)?, tokens),
            Token::Dot => Base::Dot,
            Token::Field(name, _) => return Ok(Operand::Path(Base::Dot, path(vec![name], tokens))),
            Token::Variable(name) => Base::Variable(self.variable(&name)?),
            Token::Open => {
                self.deeper()?;
                let inner = self.pipe(tokens, 0)?;
                if tokens.next() != Some(Token::Close) {
                    return Err("a parenthesis is not closed".to_owned());
                }
                self.depth -= 1;
                Base::Pipe(inner)
            }
            token => return Err(format!("unexpected {token:?} in an action")),
        };
        Ok(Operand::Path(base, path(Vec::new(), tokens)))
    }
}

/// What has no fields.
fn constant(operand: Operand, tokens: &mut Tokens) -> Result<Operand, String> {
    match tokens.peek() {
        Some(Token::Field(name, false)) => Err(format!("unexpected .{name} after a constant or a function")),
        _ => Ok(operand),
    }
}

/// The fields that follow without a space.
fn path(mut names: Vec<String>, tokens: &mut Tokens) -> Vec<String> {
    while let Some(Token::Field(name, _)) = tokens.next_if(|token| matches!(token, Token::Field(_, false))) {
        names.push(name);
    }
    names
}

fn function(word: &str) -> Result<Function, String> {
    if FUNCTIONS.contains(&word) {
        return Err(format!("unsupported function {word}"));
    }
    if ACTIONS.contains(&word) || Kind::named(word).is_some() || matches!(word, "end" | "else") {
        return Err(unexpected(word));
    }
    Function::named(word).ok_or_else(|| format!("function \"{word}\" not defined"))
}

fn unexpected(word: &str) -> String {
    format!("unexpected {{{{{word}}}}}")
}
