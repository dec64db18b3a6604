//! Every limit of the codec, in one place.

use std::time::Duration;

/// Fields that most heads stay below; these are parsed without allocating.
pub const FIELDS_USUAL: usize = 64;
/// Fields of one head; beyond: 431, or a bad answer.
pub const FIELDS_MAX: usize = 1024;
/// Bytes of an answer's head. (A request's: [`super::Settings::head_bytes_max`].)
pub const ANSWER_HEAD_BYTES_MAX: usize = 1 << 20;
/// Interim answers (1xx) before one final answer.
pub const INTERIM_MAX: usize = 64;

/// Bytes of the line that names a chunk's size, extensions included. The
/// reference's reader has the same limit.
pub const CHUNK_LINE_BYTES_MAX: usize = 4096;
/// Hex digits of a chunk's size: as many as 64 bits need.
pub const CHUNK_DIGITS_MAX: usize = 16;
/// Bytes of all trailers of a body.
pub const TRAILER_BYTES_MAX: usize = 16 * 1024;
/// Trailer fields of a body.
pub const TRAILERS_MAX: usize = 64;

/// Size classes of read buffers, in bytes: a first read, which most heads fit;
/// then bodies. A read that fills its buffer moves on to the next class. The
/// largest stays below what the allocator would map anew each time: larger ones
/// cost more in page faults than they save in calls.
pub const BUFFER_BYTES: [usize; 3] = [16 << 10, 64 << 10, 120 << 10];
/// Free buffers that a thread keeps, of each class.
pub const BUFFERS_KEPT: [usize; 3] = [128, 32, 16];
/// Buffers that were given back while a part of them was in use, and may come
/// free; of the smallest class alone.
pub const BUFFERS_LENT: usize = 16;

/// Bytes that are read ahead of a handler which does not read: enough to see
/// that a client left behind its (pipelined) request.
pub const READ_AHEAD_BYTES_MAX: usize = 16 << 10;
/// Bytes of a body that are collected, if they are there, before a write.
pub const QUEUED_BYTES_MAX: usize = 64 << 10;
/// A request up to this size, written at once, travels in one piece: one that
/// the other side's end does not confirm came after it, and was not read.
pub const UNREAD_BYTES_MAX: u64 = 1024;
/// Data up to this size is copied behind the head rather than written beside it.
pub const FLAT_BYTES_MAX: usize = 1024;

/// How often to look whether a client whose end was seen, or cannot be seen,
/// has gone.
pub const GONE_STEP: Duration = Duration::from_millis(25);
/// Bytes of an unread request body that are read away after an early answer,
/// to keep the connection.
pub const DRAIN_BYTES_MAX: u64 = 256 << 10;
/// How long that may take.
pub const DRAIN_TIME_MAX: Duration = Duration::from_secs(5);
/// How long a connection that we have ended goes on reading what its client
/// still sends: closing at once would reset it, and the reset may overtake our
/// answer.
pub const LINGER_TIME_MAX: Duration = Duration::from_secs(30);
/// It ends sooner when nothing comes for this long.
pub const LINGER_QUIET_MAX: Duration = Duration::from_secs(5);
