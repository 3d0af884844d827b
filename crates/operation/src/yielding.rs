//! Letting others run: what a long task does between two of its pieces.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

/// Lets other tasks run once.
pub async fn yield_now() {
    YieldNow(false).await;
}

struct YieldNow(bool);

impl Future for YieldNow {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if self.0 {
            return Poll::Ready(());
        }
        self.0 = true;
        context.waker().wake_by_ref();
        Poll::Pending
    }
}
