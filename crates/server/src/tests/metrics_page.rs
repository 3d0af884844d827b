//! `/metrics`, asked over HTTP.

use super::*;

const PAGE: &str = "node1:9216";

async fn get(fixture: &Fixture, request: &str) -> String {
    let mut stream = fixture.env.network().connect(PAGE).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

#[test]
fn u11_prometheus_reads_the_numbers_of_the_node() {
    run(async {
        let options = ServerOptions { metrics_addresses: vec![PAGE.into()], ..options(ReplicationMode::StandAlone) };
        let fixture = start_with(options).await;
        let mut client = fixture.connect().await;
        for _ in 0..3 {
            client.admin(doc! { "ping": 1 }).await;
        }
        let answer = get(&fixture, "GET /metrics HTTP/1.1\r\nHost: node1\r\n\r\n").await;
        let (head, page) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 200 OK\r\n") && head.contains("text/plain; version=0.0.4"), "{head}");
        assert!(head.contains(&format!("Content-Length: {}", page.len())), "{head}");
        for line in [
            "pando_metrics_commands_total{command=\"ping\"} 3",
            "pando_connections_current 1",
            "# TYPE pando_opcounters untyped",
        ] {
            assert!(page.lines().any(|found| found == line), "{line} is missing:\n{page}");
        }
        let is_sound = |line: &str| {
            line.starts_with("# TYPE ")
                || line.rsplit_once(' ').is_some_and(|(_, number)| number.parse::<f64>().is_ok())
        };
        assert!(page.lines().all(is_sound), "{page}");
        assert!(get(&fixture, "GET / HTTP/1.1\r\n\r\n").await.starts_with("HTTP/1.1 404"));
        assert!(get(&fixture, "DELETE /metrics HTTP/1.1\r\n\r\n").await.starts_with("HTTP/1.1 405"));
        // Nobody listens where nothing was said.
        let quiet = start().await;
        assert!(quiet.env.network().connect(PAGE).await.is_err());
    });
}
