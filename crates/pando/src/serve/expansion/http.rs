//! One question to a web server on this machine.

use pando_env::real::answer_of;
use std::io::ErrorKind;
use std::time::Duration;

/// The body of what stands at the address. Only this machine is asked: what comes without encryption from elsewhere could be anybody's.
pub(super) fn get(url: &str, bytes_max: usize, patience: Duration) -> Result<String, String> {
    let (place, path) = parts(url)?;
    // By the old protocol the body comes in one piece.
    let request = format!("GET {path} HTTP/1.0\r\nHost: {place}\r\nAccept: */*\r\n\r\n");
    let answer = answer_of(&place, request.as_bytes(), bytes_max, patience, is_whole);
    let answer = answer.map_err(|error| match error.kind() {
        ErrorKind::TimedOut => "Timeout was reached".to_owned(),
        _ => error.to_string(),
    })?;
    body(&answer)
}

/// Host with port, and what is asked for.
fn parts(url: &str) -> Result<(String, String), String> {
    if url.starts_with("https://") {
        return Err("__rest asks servers on this machine without encryption; https is not built in".to_owned());
    }
    let rest = url.strip_prefix("http://").ok_or("__rest configuration expansion only supports http/https")?;
    let (place, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let (host, port) = match place.rsplit_once(':') {
        Some((host, port)) if !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit()) => (host, port),
        _ => (place, "80"),
    };
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    let is_here = bare == "localhost" || bare.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback());
    if !is_here {
        return Err(format!("Without https only this machine is asked, not {host}"));
    }
    if path.bytes().any(|byte| byte.is_ascii_whitespace()) {
        return Err(format!("{url} is no address"));
    }
    Ok((format!("{host}:{port}"), if path.is_empty() { "/".to_owned() } else { path.to_owned() }))
}

/// Head and body.
fn split(answer: &[u8]) -> Option<(&str, &[u8])> {
    let end = answer.windows(4).position(|four| four == b"\r\n\r\n")?;
    Some((std::str::from_utf8(answer.get(..end)?).ok()?, answer.get(end + 4..)?))
}

fn length(head: &str) -> Option<usize> {
    let mut fields = head.lines().skip(1).filter_map(|line| line.split_once(':'));
    fields
        .find(|(name, _)| name.eq_ignore_ascii_case("content-length"))
        .and_then(|(_, value)| value.trim().parse().ok())
}

fn is_whole(answer: &[u8]) -> bool {
    split(answer).is_some_and(|(head, body)| length(head).is_some_and(|length| body.len() >= length))
}

fn body(answer: &[u8]) -> Result<String, String> {
    let (head, body) = split(answer).ok_or("the server's answer is no HTTP")?;
    let status = head.split_ascii_whitespace().nth(1).unwrap_or_default();
    if !matches!(status, "200" | "201" | "202" | "203" | "204") {
        return Err(format!("Unexpected http status code from server: {status}"));
    }
    let body = body.get(..length(head).unwrap_or(body.len())).ok_or("the server's answer ends too early")?;
    String::from_utf8(body.to_vec()).map_err(|_| "the server's answer is not UTF-8".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn u12_only_this_machine_is_asked() {
        let good = [
            ("http://localhost:8000/a?b=c", "localhost:8000", "/a?b=c"),
            ("http://127.0.0.1", "127.0.0.1:80", "/"),
            ("http://[::1]:90/", "[::1]:90", "/"),
        ];
        for (url, place, path) in good {
            assert_eq!(parts(url), Ok((place.to_owned(), path.to_owned())));
        }
        for url in
            ["http://example.com/", "https://localhost/", "ftp://localhost/", "http://localhost/a b", "localhost"]
        {
            assert!(parts(url).is_err(), "{url}");
        }
    }

    #[test]
    fn u12_answers_are_taken_apart() {
        let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nConnection: keep-alive\r\n\r\nabcd";
        assert!(is_whole(answer) && !is_whole(answer.get(..answer.len() - 2).unwrap()));
        assert_eq!(body(answer).unwrap(), "abc");
        assert_eq!(body(b"HTTP/1.0 200 OK\r\n\r\nall").unwrap(), "all");
        let missing = body(b"HTTP/1.1 404 Not Found\r\n\r\n").unwrap_err();
        assert_eq!(missing, "Unexpected http status code from server: 404");
        assert!(body(b"nonsense").is_err() && body(b"HTTP/1.0 200 OK\r\ncontent-length: 9\r\n\r\nx").is_err());
    }
}
