//! The real clock, generator, threads and sockets do what their traits say.

use pando_env::Env;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

#[test]
fn time_goes_forward() {
    let env = Env::real();
    let before_ns = env.clock().monotonic_ns();
    env.clock().pause(Duration::from_millis(2));
    assert!(env.clock().monotonic_ns() >= before_ns + 2_000_000);
    assert!(env.clock().wall_ms() > 1_700_000_000_000);
}

#[test]
fn random_numbers_differ() {
    let env = Env::real();
    assert_ne!(env.random().next_u64(), env.random().next_u64());
    assert!((0..1000).all(|_| env.random().below(10) < 10));
    let mut bytes = [0; 64];
    env.random().fill(&mut bytes);
    assert_ne!(bytes, [0; 64]);
}

#[test]
fn threads_run_and_report_panics() {
    let env = Env::real();
    let count = Arc::new(AtomicU32::new(0));
    let shared = count.clone();
    let thread = env.tasks().spawn_thread("counter", Box::new(move || _ = shared.fetch_add(1, Ordering::SeqCst)));
    thread.unwrap().join().unwrap();
    assert_eq!(count.load(Ordering::SeqCst), 1);
    let failing = env.tasks().spawn_thread("failing", Box::new(|| std::panic::resume_unwind(Box::new(()))));
    assert!(failing.unwrap().join().unwrap_err().to_string().contains("failing"));
    assert!(env.tasks().parallelism() >= 1);
    assert!(env.tasks().spawn(Box::pin(async {})).is_err(), "there is no runtime here");
}

#[test]
fn blocking_calls_run_anywhere() {
    let env = Env::real();
    let mut count = 0;
    env.tasks().blocking(&mut || count += 1);
    let current = tokio::runtime::Builder::new_current_thread().build().unwrap();
    current.block_on(async { env.tasks().blocking(&mut || count += 1) });
    let multi = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
    multi.block_on(async { env.tasks().blocking(&mut || count += 1) });
    assert_eq!(count, 3);
}

#[test]
fn calls_aside_run_anywhere_and_their_panics_arrive() {
    let env = Env::real();
    let own = std::thread::current().id();
    let mut seen = Vec::new();
    env.tasks().aside(&mut || seen.push(std::thread::current().id()));
    let multi = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
    multi.block_on(async { env.tasks().aside(&mut || seen.push(std::thread::current().id())) });
    assert!(seen.len() == 2 && !seen.contains(&own), "{seen:?}");
    let panicking = || env.tasks().aside(&mut || std::panic::resume_unwind(Box::new(7)));
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(panicking));
    assert_eq!(panicked.unwrap_err().downcast_ref(), Some(&7));
}

#[cfg(target_os = "linux")]
#[test]
fn calls_aside_stand_back_and_what_comes_after_does_not() {
    let niceness = || rustix::process::getpriority_process(Some(rustix::thread::gettid())).unwrap();
    let env = Env::real();
    let (before, mut aside) = (niceness(), 0);
    env.tasks().aside(&mut || aside = niceness());
    assert_eq!((aside, niceness()), (before.max(10), before));
}

#[test]
fn sockets_carry_bytes_and_tasks_run() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let env = Env::real();
        let mut listener = env.network().listen("127.0.0.1:0").await.unwrap();
        let address = listener.local_address().unwrap().to_string();
        let connecting = env.network().connect(&address);
        let client = async move {
            let mut connection = connecting.await.unwrap();
            connection.write_all(b"ping").await.unwrap();
        };
        env.tasks().spawn(Box::pin(client)).unwrap();
        let mut connection = listener.accept().await.unwrap();
        let mut bytes = [0; 4];
        connection.read_exact(&mut bytes).await.unwrap();
        assert_eq!(&bytes, b"ping");
        assert_eq!(connection.local_address().unwrap(), listener.local_address().unwrap());
        env.clock().sleep(Duration::from_millis(1)).await;
    });
}

#[test]
fn sockets_in_the_file_system_take_over_old_ones_and_go_with_their_listener() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let env = Env::real();
        let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{}.sock", std::process::id()));
        let left = std::os::unix::net::UnixListener::bind(&path).unwrap();
        drop(left);
        let mut listener = env.network().listen_at_path(&path, 0o600).await.unwrap();
        let connecting = env.network().connect(path.to_str().unwrap());
        let client = async move {
            let mut connection = connecting.await.unwrap();
            connection.write_all(b"ping").await.unwrap();
        };
        env.tasks().spawn(Box::pin(client)).unwrap();
        let mut connection = listener.accept().await.unwrap();
        let mut bytes = [0; 4];
        connection.read_exact(&mut bytes).await.unwrap();
        assert_eq!(&bytes, b"ping");
        let (peer, local) = (connection.peer_address().unwrap(), connection.local_address().unwrap());
        assert_eq!((peer.to_string(), peer.is_local()), ("anonymous unix socket".to_owned(), true));
        assert_eq!((local.to_string(), local.internet()), (path.to_str().unwrap().to_owned(), None));
        drop(listener);
        assert!(!env.disk().exists(&path).unwrap());
    });
}

#[test]
fn processors_are_kept_busy_by_work() {
    let env = Env::real();
    let before_ns = env.clock().thread_processor_ns();
    let mut sum = 0_u64;
    while env.clock().thread_processor_ns() == before_ns {
        sum = sum.wrapping_add(std::hint::black_box(1));
    }
    assert!(sum > 0 || env.clock().thread_processor_ns() > before_ns);
}
