//! Start and end: signals, the shutdown command, and a real socket.

use super::*;
use pando_commands::Control;
use pando_env::Signal;
use pando_env::simulated::SimulatedSignals;

#[test]
fn u12_signals_end_the_node_in_good_order() {
    for signal in [Signal::Terminate, Signal::Interrupt, Signal::HangUp] {
        run(async {
            let fixture = start().await;
            let mut client = fixture.connect().await;
            client.admin(doc! { "ping": 1 }).await;
            let (sender, mut signals) = SimulatedSignals::new();
            assert!(sender.send(Signal::User1) && sender.send(signal));
            fixture.server.run(&mut signals).await.unwrap();
            assert!(client.read().await.is_none());
            assert!(fixture.env.network().connect(ADDRESS).await.is_err());
        });
    }
}

#[test]
fn u12_the_shutdown_command_ends_the_node_without_a_reply() {
    run(async {
        let fixture = start().await;
        let mut client = fixture.connect().await;
        let (_sender, mut signals) = SimulatedSignals::new();
        let ask = async { client.try_ask(doc! { "shutdown": 1, "$db": "admin" }).await };
        let (ended, reply) = tokio::join!(fixture.server.run(&mut signals), ask);
        assert!(ended.is_ok() && reply.is_none());
    });
}

#[test]
fn u12_operations_that_wait_are_told() {
    run(async {
        let fixture = start().await;
        let mut waiting = fixture.connect().await;
        let never = doc! { "waitForFailPoint": "waitInHello", "timesEntered": 1_000_000, "$db": "admin" };
        waiting.send(MsgFlags::NONE, &never).await;
        while fixture.server.node().operations.count() == 0 {
            tokio::task::yield_now().await;
        }
        fixture.control.shut_down(1);
        let (_sender, mut signals) = SimulatedSignals::new();
        let (ended, reply) = tokio::join!(fixture.server.run(&mut signals), waiting.read());
        ended.unwrap();
        assert_eq!(number(&reply.unwrap().body().to_doc(), "code"), 11600.0);
    });
}

#[test]
fn u1_a_real_socket_is_served() {
    run(async {
        let env = Env::real();
        let control = Arc::new(ProcessControl::new(Arc::new(Nowhere)));
        let machine = Arc::new(SimulatedMachine::new("node1"));
        let net = NetOptions { addresses: vec!["127.0.0.1:0".into()], ..NetOptions::default() };
        let options = ServerOptions { net, ..options(ReplicationMode::StandAlone) };
        let server = Server::start(&env, machine, None, options, Log::silent(), control).await.unwrap();
        let address = server.addresses()[0].to_string();
        let mut client = Client { stream: env.network().connect(&address).await.unwrap(), last_id: 0 };
        for _ in 0..100 {
            client.admin(doc! { "ping": 1 }).await;
        }
        server.shut_down().await.unwrap();
        assert!(client.read().await.is_none());
        assert!(env.network().connect(&address).await.is_err());
    });
}
