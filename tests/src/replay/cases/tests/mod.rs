//! The driver itself: its rows, its comparison, its apps and its clients.

mod recorded;
mod rows;
mod sockets;
