//! The HTTP/1 codec over real sockets: our server with raw clients, our client
//! with raw servers, and a proxy of both.

mod bodies;
mod client;
mod differential;
mod early;
mod gone;
mod proxy;
mod raw;
mod served;
mod server;
mod upgrade;
