//! The functions of templates.

use super::escape;
use super::printf;
use super::program::Function;
use super::run::{Done, Failed};
use super::value::{Object, Value};
use crate::go_text;
use policy::compat::Compat;
use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt::Write;

/// Calls one.
pub(super) fn call<'a>(function: Function, args: &[Value<'a>], compat: Compat) -> Done<Value<'a>> {
    let text = |text: String| Ok(Value::Text(Cow::Owned(text)));
    match function {
        Function::Not => match args {
            [value] => Ok(Value::Bool(!truth(value)?)),
            _ => Err(Failed),
        },
        Function::Len => match args {
            [Value::Text(text)] => length(text.len()),
            [Value::List(list)] => length(list.len()),
            _ => Err(Failed),
        },
        Function::Index => {
            let (first, rest) = args.split_first().ok_or(Failed)?;
            rest.iter().try_fold(first.clone(), |value, at| index(&value, at))
        }
        Function::Print => text(joined(args)?),
        Function::Println => {
            let parts: Vec<String> = args.iter().map(as_text).collect::<Done<_>>()?;
            text(parts.join(" ") + "\n")
        }
        Function::Printf => printf::format(args).map(|text| Value::Text(Cow::Owned(text))),
        Function::Html => text(escape::html(&joined(args)?)),
        Function::Js => text(escape::js(&joined(args)?, compat)),
        Function::Urlquery => text(escape::query(&joined(args)?)),
        Function::Eq => equal(args).map(Value::Bool),
        Function::Ne => match args {
            [_, _] => Ok(Value::Bool(!equal(args)?)),
            _ => Err(Failed),
        },
        Function::Lt | Function::Le | Function::Gt | Function::Ge => {
            let [a, b] = args else { return Err(Failed) };
            let order = compare(a, b)?;
            Ok(Value::Bool(match (function, order) {
                (Function::Lt, Some(order)) => order == Ordering::Less,
                (Function::Le, Some(order)) => order != Ordering::Greater,
                (Function::Gt, Some(order)) => order == Ordering::Greater,
                (_, Some(order)) => order != Ordering::Less,
                // NaN.
                (_, None) => false,
            }))
        }
        Function::And | Function::Or => Err(Failed),
    }
}

fn length<'a>(length: usize) -> Done<Value<'a>> {
    i64::try_from(length).map(Value::Int).map_err(|_| Failed)
}

/// One step of `index`.
pub(super) fn index<'a>(value: &Value<'a>, at: &Value<'a>) -> Done<Value<'a>> {
    let Value::Int(at) = at else { return Err(Failed) };
    let at = usize::try_from(*at).map_err(|_| Failed)?;
    match value {
        Value::List(list) => list.get(at).cloned().map(Value::Text).ok_or(Failed),
        // A byte is a number in Go.
        Value::Text(text) => text.as_bytes().get(at).map(|byte| Value::Int(i64::from(*byte))).ok_or(Failed),
        _ => Err(Failed),
    }
}

/// As conditions see it.
pub(super) fn truth(value: &Value<'_>) -> Done<bool> {
    Ok(match value {
        Value::Missing | Value::Nil => false,
        Value::Bool(value) => *value,
        Value::Int(value) => *value != 0,
        Value::Float(value) => *value != 0.0,
        Value::Text(text) => !text.is_empty(),
        Value::List(list) => !list.is_empty(),
        // Whether it is empty is not known: only some headers are kept.
        Value::Object(Object::Header) => return Err(Failed),
        Value::Object(_) => true,
    })
}

/// As an action shows it.
pub(super) fn print(out: &mut String, value: &Value<'_>) -> Done<()> {
    match value {
        Value::Missing => out.push_str("<no value>"),
        Value::Nil => out.push_str("<nil>"),
        Value::Bool(value) => {
            let _ = write!(out, "{value}");
        }
        Value::Int(value) => {
            let _ = write!(out, "{value}");
        }
        Value::Float(value) => go_text::float(out, *value),
        Value::Text(text) => out.push_str(text),
        Value::List(list) => {
            out.push('[');
            out.push_str(&list.join(" "));
            out.push(']');
        }
        Value::Object(_) => return Err(Failed),
    }
    Ok(())
}

fn as_text(value: &Value<'_>) -> Done<String> {
    let mut text = String::new();
    print(&mut text, value)?;
    Ok(text)
}

/// As Go's `Sprint`: a space between two values of which neither is text.
fn joined(args: &[Value<'_>]) -> Done<String> {
    let mut out = String::new();
    let mut was_text = true;
    for (at, arg) in args.iter().enumerate() {
        let is_text = matches!(arg, Value::Text(_));
        if at > 0 && !is_text && !was_text {
            out.push(' ');
        }
        print(&mut out, arg)?;
        was_text = is_text;
    }
    Ok(out)
}

/// Is the first equal to any of the others?
fn equal(args: &[Value<'_>]) -> Done<bool> {
    let (first, others) = args.split_first().ok_or(Failed)?;
    if others.is_empty() {
        return Err(Failed);
    }
    for other in others {
        let same = match (first, other) {
            (Value::Bool(a), Value::Bool(b)) => a == b,
            (Value::Int(a), Value::Int(b)) => a == b,
            #[expect(clippy::float_cmp, reason = "it is what the template asks for")]
            (Value::Float(a), Value::Float(b)) => a == b,
            (Value::Text(a), Value::Text(b)) => a == b,
            // Nothing is like nothing, and unlike all else.
            (Value::Missing | Value::Nil, Value::Missing | Value::Nil) => true,
            (Value::Missing | Value::Nil, _) | (_, Value::Missing | Value::Nil) => false,
            _ => return Err(Failed),
        };
        if same {
            return Ok(true);
        }
    }
    Ok(false)
}

fn compare(a: &Value<'_>, b: &Value<'_>) -> Done<Option<Ordering>> {
    match (a, b) {
        (Value::Int(a), Value::Int(b)) => Ok(Some(a.cmp(b))),
        (Value::Float(a), Value::Float(b)) => Ok(a.partial_cmp(b)),
        (Value::Text(a), Value::Text(b)) => Ok(Some(a.cmp(b))),
        _ => Err(Failed),
    }
}
