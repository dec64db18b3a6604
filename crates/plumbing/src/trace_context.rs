//! The `traceparent` header (W3C trace context).

/// Of a whole trace.
pub type TraceId = [u8; 16];
/// Of one span.
pub type SpanId = [u8; 8];

const SAMPLED: u8 = 1;
/// Bits of the flags that are passed on.
const KNOWN_FLAGS: u8 = 0x03;

/// Whose child something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Context {
    /// The trace.
    pub trace: TraceId,
    /// The span that is the parent.
    pub span: SpanId,
    /// The flags that are passed on.
    pub flags: u8,
}

impl Context {
    /// Reads the header. A later version may have more after the flags;
    /// whatever is malformed counts as absent.
    pub fn parse(header: &[u8]) -> Option<Context> {
        let mut parts = header.split(|byte| *byte == b'-');
        let version: [u8; 1] = bytes(parts.next()?)?;
        let trace: TraceId = bytes(parts.next()?)?;
        let span: SpanId = bytes(parts.next()?)?;
        let [flags]: [u8; 1] = bytes(parts.next()?)?;
        let more = parts.next().is_some();
        let known = version == [0];
        if version == [0xff] || known && more || known && flags > KNOWN_FLAGS {
            return None;
        }
        if trace == [0; 16] || span == [0; 8] {
            return None;
        }
        Some(Context { trace, span, flags: flags & KNOWN_FLAGS })
    }

    /// The header.
    pub fn header(&self) -> String {
        use std::fmt::Write;
        let mut out = String::with_capacity(55);
        out.push_str("00-");
        hex(&mut out, &self.trace);
        out.push('-');
        hex(&mut out, &self.span);
        let _ = write!(out, "-{:02x}", self.flags);
        out
    }

    /// True when the trace is recorded.
    pub fn is_sampled(&self) -> bool {
        self.flags & SAMPLED != 0
    }

    /// A new trace, of which nothing is recorded, and its first span.
    pub fn unsampled() -> Context {
        Context { trace: new_trace(), span: new_span(), flags: 0 }
    }

    /// The same trace with the decision made.
    pub fn decided(self, sampled: bool) -> Context {
        let rest = self.flags & !SAMPLED;
        Context { flags: if sampled { rest | SAMPLED } else { rest }, ..self }
    }

    /// A child's place, under a new span id.
    pub fn child(self) -> Context {
        Context { span: new_span(), ..self }
    }
}

/// Bytes in lower-case hexadecimal.
pub fn hex(out: &mut String, bytes: &[u8]) {
    use std::fmt::Write;
    for byte in bytes {
        let _ = write!(out, "{byte:02x}");
    }
}

/// Lower-case hexadecimal only, as the standard says.
fn bytes<const N: usize>(text: &[u8]) -> Option<[u8; N]> {
    if text.len() != 2 * N {
        return None;
    }
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    let mut out = [0; N];
    for (byte, pair) in out.iter_mut().zip(text.chunks_exact(2)) {
        *byte = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Some(out)
}

/// A new trace's id, never all zeros.
pub fn new_trace() -> TraceId {
    fastrand::u128(1..).to_be_bytes()
}

/// A new span's id, never all zeros.
pub fn new_span() -> SpanId {
    fastrand::u64(1..).to_be_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    #[test]
    fn a_header_reads_back() {
        let context = Context::parse(GOOD.as_bytes()).unwrap();
        assert!(context.is_sampled());
        assert_eq!(context.header(), GOOD);
        let child = context.child();
        assert_eq!(child.trace, context.trace);
        assert_ne!(child.span, context.span);
        assert!(child.decided(false).header().ends_with("-00"));
    }

    #[test]
    fn malformed_headers_count_as_absent() {
        for bad in [
            "",
            "00",
            "00-00000000000000000000000000000000-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
            "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-x",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-0",
            "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-04",
        ] {
            assert_eq!(Context::parse(bad.as_bytes()), None, "{bad}");
        }
        let later = "cc-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-what-is-this";
        assert!(Context::parse(later.as_bytes()).is_some());
    }
}
