//! What templates work with, and what may be asked of it.

use std::borrow::Cow;

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value<'a> {
    /// A missing entry of a map.
    Missing,
    Nil,
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(Cow<'a, str>),
    List(Vec<Cow<'a, str>>),
    Object(Object),
}

impl Value<'_> {
    /// Bytes of its text.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Value::Text(text) => text.len(),
            Value::List(list) => list.iter().map(|text| text.len()).sum(),
            _ => 0,
        }
    }
}

/// What has members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Object {
    Root,
    Request,
    Response,
    Revision,
    Header,
    Url,
}

/// What a template can know of a value before it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Type {
    /// It depends.
    Any,
    Bool,
    Int,
    Float,
    Text,
    List,
    Object(Object),
}

/// What there is under a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Member {
    Field(Type),
    /// With the number of its arguments.
    Method(Type, usize),
    /// Go has it; we do not.
    Unsupported,
    /// Nobody has it: in Go it fails when the template runs.
    Unknown,
}

const REQUEST_UNSUPPORTED: [&str; 33] = [
    "AddCookie",
    "BasicAuth",
    "Body",
    "Cancel",
    "Clone",
    "Close",
    "Context",
    "Cookie",
    "Cookies",
    "CookiesNamed",
    "Form",
    "FormFile",
    "FormValue",
    "GetBody",
    "MultipartForm",
    "MultipartReader",
    "ParseForm",
    "ParseMultipartForm",
    "PathValue",
    "Pattern",
    "PostForm",
    "PostFormValue",
    "ProtoAtLeast",
    "Response",
    "SetBasicAuth",
    "SetPathValue",
    "TLS",
    "Trailer",
    "TransferEncoding",
    "WithContext",
    "Write",
    "WriteProxy",
    "HTTPVersion",
];

const URL_UNSUPPORTED: [&str; 16] = [
    "AppendBinary",
    "EscapedFragment",
    "ForceQuery",
    "Fragment",
    "JoinPath",
    "MarshalBinary",
    "OmitHost",
    "Opaque",
    "Parse",
    "Query",
    "RawFragment",
    "RawPath",
    "Redacted",
    "ResolveReference",
    "UnmarshalBinary",
    "User",
];

const HEADER_UNSUPPORTED: [&str; 6] = ["Add", "Clone", "Del", "Set", "Write", "WriteSubset"];

/// What an object has under a name.
pub(super) fn member(object: Object, name: &str) -> Member {
    let text = Member::Field(Type::Text);
    let whole = Member::Field(Type::Int);
    match (object, name) {
        (Object::Root, "Request") => Member::Field(Type::Object(Object::Request)),
        (Object::Root, "Response") => Member::Field(Type::Object(Object::Response)),
        (Object::Root, "Revision") => Member::Field(Type::Object(Object::Revision)),
        (Object::Root, "TraceID") => text,
        (Object::Request, "Method" | "RequestURI" | "Host" | "Proto" | "RemoteAddr") => text,
        (Object::Request, "UserAgent" | "Referer") => Member::Method(Type::Text, 0),
        (Object::Request, "ContentLength" | "ProtoMajor" | "ProtoMinor") => whole,
        (Object::Request, "Header") => Member::Field(Type::Object(Object::Header)),
        (Object::Request, "URL") => Member::Field(Type::Object(Object::Url)),
        (Object::Request, name) if REQUEST_UNSUPPORTED.contains(&name) => Member::Unsupported,
        (Object::Response, "Code" | "Size") => whole,
        (Object::Response, "Latency") => Member::Field(Type::Float),
        (Object::Revision, "Name" | "Namespace" | "Service" | "Configuration" | "PodName" | "PodIP") => text,
        (Object::Header, "Get") => Member::Method(Type::Text, 1),
        (Object::Header, "Values") => Member::Method(Type::List, 1),
        (Object::Header, name) if HEADER_UNSUPPORTED.contains(&name) => Member::Unsupported,
        // An entry of the map; it may be missing.
        (Object::Header, _) => Member::Field(Type::Any),
        (Object::Url, "Path" | "RawQuery" | "Host" | "Scheme") => text,
        (Object::Url, "String" | "RequestURI" | "EscapedPath" | "Hostname" | "Port") => Member::Method(Type::Text, 0),
        (Object::Url, "IsAbs") => Member::Method(Type::Bool, 0),
        (Object::Url, name) if URL_UNSUPPORTED.contains(&name) => Member::Unsupported,
        _ => Member::Unknown,
    }
}

impl Object {
    /// As templates name it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Object::Root => ".",
            Object::Request => ".Request",
            Object::Response => ".Response",
            Object::Revision => ".Revision",
            Object::Header => ".Request.Header",
            Object::Url => ".Request.URL",
        }
    }
}

/// A header's name as Go keeps it: `X-A-Bc`.
pub(super) fn is_canonical(name: &str) -> bool {
    let mut first = true;
    name.chars().all(|c| {
        let good = if first { !c.is_ascii_lowercase() } else { !c.is_ascii_uppercase() };
        first = c == '-';
        good
    })
}
