//! `baseline-pingora http1|http2 LISTEN APP`: forwards everything to one app.

use async_trait::async_trait;
use pingora_core::Result;
use pingora_core::apps::HttpServerOptions;
use pingora_core::server::Server;
use pingora_core::server::configuration::ServerConf;
use pingora_core::upstreams::peer::{ALPN, HttpPeer};
use pingora_http::RequestHeader;
use pingora_proxy::{ProxyHttp, Session};
use std::sync::Arc;

struct Forward {
    app: String,
    http2: bool,
}

#[async_trait]
impl ProxyHttp for Forward {
    type CTX = ();

    fn new_ctx(&self) {}

    async fn upstream_peer(&self, _: &mut Session, (): &mut ()) -> Result<Box<HttpPeer>> {
        let mut peer = HttpPeer::new(self.app.as_str(), false, String::new());
        if self.http2 {
            peer.options.alpn = ALPN::H2;
            peer.options.max_h2_streams = 1000;
        }
        Ok(Box::new(peer))
    }

    async fn upstream_request_filter(
        &self,
        session: &mut Session,
        request: &mut RequestHeader,
        (): &mut (),
    ) -> Result<()> {
        if let Some(from) = session.client_addr().and_then(|from| from.as_inet()) {
            request.insert_header("x-forwarded-for", from.ip().to_string())?;
        }
        let host = session.req_header().headers.get("host").cloned();
        let host = host.map(|host| host.as_bytes().to_vec());
        let authority = || session.req_header().uri.authority().map(|authority| authority.as_str().as_bytes().to_vec());
        if let Some(host) = host.or_else(authority) {
            request.insert_header("x-forwarded-host", host)?;
        }
        request.insert_header("x-forwarded-proto", "http")
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, protocol, listen, app] = &arguments[..] else {
        eprintln!("baseline-pingora http1|http2 LISTEN APP");
        std::process::exit(1);
    };
    let conf =
        ServerConf { threads: 1, work_stealing: false, upstream_keepalive_pool_size: 1024, ..ServerConf::default() };
    let mut server = Server::new_with_opt_and_conf(None, conf);
    server.bootstrap();
    let http2 = protocol == "http2";
    let forward = Forward { app: app.clone(), http2 };
    let mut proxy = pingora_proxy::http_proxy(&server.configuration, forward);
    if http2 {
        let mut options = HttpServerOptions::default();
        options.h2c = true;
        proxy.server_options = Some(options);
    }
    let mut service = pingora_core::services::listening::Service::new("proxy".to_owned(), proxy);
    service.add_tcp(listen);
    let _ = Arc::strong_count(&server.configuration);
    server.add_service(service);
    server.run_forever();
}
