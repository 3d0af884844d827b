//! Where connections and answers run, in a simulation whose tasks know their place.

use super::*;
use pando_base::operation::{Slices, follow, slice};
use pando_base::{Client, OperationContext, OperationRegistry};
use pando_env::simulated::SimulatedTasks;
use pando_env::{Tasks, ThreadHandle};
use std::cell::Cell;
use std::future::poll_fn;
use std::io;
use std::sync::Mutex;
use std::sync::atomic::AtomicU64;

thread_local! {
    /// Of the task that is being polled.
    static PLACE: Cell<Option<Place>> = const { Cell::new(None) };
}

/// Everything runs on one thread, but tasks know where they would run.
struct Places;

impl Tasks for Places {
    fn spawn_thread(&self, name: &str, body: Box<dyn FnOnce() + Send>) -> io::Result<Box<dyn ThreadHandle>> {
        SimulatedTasks.spawn_thread(name, body)
    }

    fn spawn(&self, task: BoxedFuture<'static, ()>) -> io::Result<()> {
        self.spawn_at(Place::Requests, task)
    }

    fn spawn_at(&self, place: Place, mut task: BoxedFuture<'static, ()>) -> io::Result<()> {
        let there = poll_fn(move |context| {
            let before = PLACE.replace(Some(place));
            let poll = task.as_mut().poll(context);
            PLACE.set(before);
            poll
        });
        SimulatedTasks.spawn(Box::pin(there))
    }

    fn place(&self) -> Option<Place> {
        PLACE.get()
    }

    fn blocking(&self, call: &mut dyn FnMut()) {
        call();
    }

    fn aside(&self, call: &mut (dyn FnMut() + Send)) {
        call();
    }

    fn parallelism(&self) -> usize {
        1
    }
}

/// Operations may keep their thread for a thousand looks at the clock.
struct Endless;

impl Slices for Endless {
    fn length_ns(&self) -> Option<u64> {
        Some(1000)
    }
    fn pause(&self, _: &OperationContext, _: Option<u64>) {}
    fn end(&self, _: Option<u64>) {}
}

/// Tells where it was asked, and where each part of the answer was worked on. `work: n` takes n slices and `yield: n` yields as
/// often, each followed by a wait; `hang: 1` waits for ever.
struct Teller {
    operations: OperationRegistry,
    places: Arc<Mutex<Vec<Option<Place>>>>,
    dropped: Arc<AtomicUsize>,
}

/// Counts the answers that were dropped or done.
struct Dropped(Arc<AtomicUsize>);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

fn number(body: &Doc, name: &str) -> i64 {
    body.get(name).map_or(0, |value| value.to_i64_or_zero())
}

impl RequestHandler for Teller {
    type Connection = ();

    fn connected(&self, _: Peer) {}

    fn message_size_bytes_max(&self, (): &()) -> usize {
        usize::MAX
    }

    fn kind(&self, command: &Command) -> RequestKind {
        let name: &[u8] = command.name();
        let place = match name {
            b"hello" => Place::Control,
            b"validate" => Place::Lanes,
            _ => Place::Requests,
        };
        RequestKind { number: usize::from(name.first().copied().unwrap_or(0)), place }
    }

    fn handle(&self, (): &(), request: Request) -> BoxedFuture<'static, Response> {
        let (places, dropped) = (Arc::clone(&self.places), Dropped(Arc::clone(&self.dropped)));
        let operation = self.operations.start(&Arc::new(Client::internal("test")));
        Box::pin(async move {
            let body = request.command.body().to_doc();
            let _dropped = dropped;
            let note = || places.lock().unwrap().push(PLACE.get());
            let work = async {
                note();
                for _ in 0..number(&body, "work") {
                    (0..2000).for_each(|_| _ = operation.now_ns());
                    tokio::task::yield_now().await;
                    note();
                }
                for _ in 0..number(&body, "yield") {
                    slice::note_yield();
                    tokio::task::yield_now().await;
                    note();
                }
                if number(&body, "hang") > 0 {
                    std::future::pending::<()>().await;
                }
            };
            follow(&operation, work).await;
            Echo::replied(request, false, Next::Read)
        })
    }

    fn refused(&self, (): &(), _: &Refusal, _: Vec<u8>, _: i32) -> Response {
        Response { message: None, logical_bytes: 0, next: Next::Close }
    }

    fn abandoned(&self, (): &()) {}

    fn closed(&self, (): &()) {}
}

struct Told {
    env: Env,
    net: Net<Teller>,
    places: Arc<Mutex<Vec<Option<Place>>>>,
    dropped: Arc<AtomicUsize>,
}

async fn told() -> Told {
    let env = Simulation::new(1).env().with_tasks(Arc::new(Places));
    let options =
        NetOptions { addresses: vec![ADDRESS.into()], compressors: Compressors::all(), ..NetOptions::default() };
    let (places, dropped) = (Arc::default(), Arc::default());
    // Every look at the clock moves it.
    let now = AtomicU64::new(0);
    let clock = Arc::new(move || now.fetch_add(1, Ordering::Relaxed));
    let operations = OperationRegistry::with_slices(clock, Some(Box::new(Endless)));
    let handler = Teller { operations, places: Arc::clone(&places), dropped: Arc::clone(&dropped) };
    let (connections, network) = (Arc::default(), Arc::default());
    let net = Net::listen(&env, &options, handler, None, Log::silent(), connections, network).await.unwrap();
    Told { env, net, places, dropped }
}

impl Told {
    async fn connect(&self) -> Box<dyn Connection> {
        self.env.network().connect(ADDRESS).await.unwrap()
    }

    /// Where the answer to this was worked on.
    async fn places_of(&self, stream: &mut dyn Connection, body: Doc) -> Vec<Place> {
        ask(stream, &body).await.unwrap();
        std::mem::take(&mut *self.places.lock().unwrap()).into_iter().map(Option::unwrap).collect()
    }
}

use Place::{Control, Lanes, Requests};

#[test]
fn a_connection_moves_with_its_first_request_that_is_not_urgent_and_stays() {
    run(async {
        let told = told().await;
        let mut stream = told.connect().await;
        for _ in 0..3 {
            assert_eq!(told.places_of(&mut *stream, doc! { "hello": 1 }).await, [Control]);
        }
        assert_eq!(told.places_of(&mut *stream, doc! { "find": 1 }).await, [Requests]);
        assert_eq!(told.places_of(&mut *stream, doc! { "hello": 1 }).await, [Requests]);
        // Two messages at once: what was read before the move is not lost.
        let mut stream = told.connect().await;
        let both = [doc! { "hello": 1 }, doc! { "find": 1 }].map(|body| message(MsgFlags::NONE, &body, 1)).concat();
        stream.write_all(&both).await.unwrap();
        assert!(read_reply(&mut *stream).await.is_some() && read_reply(&mut *stream).await.is_some());
        assert_eq!(*told.places.lock().unwrap(), [Some(Control), Some(Requests)]);
    });
}

#[test]
fn an_answer_that_takes_long_moves_to_a_lane_and_the_next_begins_there() {
    run(async {
        let told = told().await;
        let mut stream = told.connect().await;
        let stream = &mut *stream;
        assert_eq!(told.places_of(stream, doc! { "find": 1, "work": 2 }).await, [Requests, Lanes, Lanes]);
        assert_eq!(told.places_of(stream, doc! { "find": 1 }).await, [Lanes], "the last one was long");
        assert_eq!(told.places_of(stream, doc! { "find": 1 }).await, [Requests], "it was not");
        assert_eq!(told.places_of(stream, doc! { "find": 1, "yield": 1 }).await, [Requests, Requests]);
        let yields = told.places_of(stream, doc! { "find": 1, "yield": 3 }).await;
        assert_eq!(yields, [Requests, Requests, Lanes, Lanes]);
        assert_eq!(told.places_of(stream, doc! { "count": 1 }).await, [Requests], "another command");
        assert_eq!(told.places_of(stream, doc! { "validate": 1 }).await, [Lanes], "always long");
    });
}

#[test]
fn a_large_message_is_read_and_answered_on_a_lane() {
    run(async {
        let told = told().await;
        let mut stream = told.connect().await;
        let body = doc! { "find": 1, "pad": "y".repeat(2 << 20) };
        let (mut reading, mut writing) = tokio::io::split(&mut *stream);
        let request = message(MsgFlags::NONE, &body, 1);
        let write = async { writing.write_all(&request).await.unwrap() };
        let mut reply = vec![0; request.len()];
        let read = async { reading.read_exact(&mut reply).await.map(|_| ()).unwrap() };
        tokio::join!(write, read);
        assert_eq!(*told.places.lock().unwrap(), [Some(Lanes)]);
    });
}

#[test]
fn shutdown_waits_for_answers_on_lanes_to_be_dropped() {
    run(async {
        let told = told().await;
        let mut stream = told.connect().await;
        stream.write_all(&message(MsgFlags::NONE, &doc! { "find": 1, "work": 1, "hang": 1 }, 1)).await.unwrap();
        while told.places.lock().unwrap().len() < 2 {
            tokio::task::yield_now().await;
        }
        assert_eq!(told.dropped.load(Ordering::Relaxed), 0);
        told.net.shut_down(Duration::ZERO).await;
        assert_eq!(told.dropped.load(Ordering::Relaxed), 1, "no answer is left behind");
        assert!(read_reply(&mut *stream).await.is_none());
    });
}
